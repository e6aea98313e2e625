// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/native_packet.h"

#include <cstring>

#include "gateway/wire/codec.h"

namespace rocegw::transport {

uint8_t* BuildPacket(const QpContext& qp, wire::Headers& headers, uint32_t payload,
                     port::TxPacket& packet) {
  const uint32_t pad = -payload & 3;
  headers.bth.dest_qpn = qp.attributes.dest_qpn;
  headers.bth.pkey = wire::kDefaultPkey;
  headers.bth.pad_count = static_cast<uint8_t>(pad);
  const size_t header_length = wire::EncodeHeaders(headers, packet.data);
  packet.path = qp.attributes.path;
  if (qp.ecn) {
    packet.path.traffic_class =
        static_cast<uint8_t>((packet.path.traffic_class & ~wire::kEcnMask) | wire::kEcnEct0);
  }
  packet.length = static_cast<uint32_t>(header_length) + payload + pad;
  packet.known_crc = {};
  uint8_t* body = packet.data + header_length;
  std::memset(body + payload, 0, pad);
  return body;
}

void BuildCnp(const QpContext& qp, uint8_t traffic_class, port::TxPacket& packet) {
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kCnp;
  headers.bth.migrated = false;
  headers.bth.becn = true;
  BuildPacket(qp, headers, 0, packet);
  packet.path.traffic_class = traffic_class;
}

}  // namespace rocegw::transport
