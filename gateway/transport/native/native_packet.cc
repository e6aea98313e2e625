// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/native/native_packet.h"

#include <cstring>

#include "gateway/wire/codec.h"

namespace rocegw::transport {
namespace {

// Opcode offsets from RC: UC for SENDs and WRITEs, XRC for all packets.
constexpr uint8_t kUnreliable = 0x20;
constexpr uint8_t kXrc = 0xA0;

wire::Opcode ReliableOpcode(const verbs::SendRequest& request, bool first, bool last) {
  using wire::Opcode;
  const bool immediate = request.opcode == verbs::SendOpcode::kSendImm ||
                         request.opcode == verbs::SendOpcode::kWriteImm;
  if (request.invalidates() && last)
    return first ? Opcode::kRcSendOnlyInvalidate : Opcode::kRcSendLastInvalidate;
  if (request.is_send()) {
    if (first)
      return !last       ? Opcode::kRcSendFirst
             : immediate ? Opcode::kRcSendOnlyImm
                         : Opcode::kRcSendOnly;
    return !last ? Opcode::kRcSendMiddle : immediate ? Opcode::kRcSendLastImm : Opcode::kRcSendLast;
  }
  if (first)
    return !last       ? Opcode::kRcWriteFirst
           : immediate ? Opcode::kRcWriteOnlyImm
                       : Opcode::kRcWriteOnly;
  return !last       ? Opcode::kRcWriteMiddle
         : immediate ? Opcode::kRcWriteLastImm
                     : Opcode::kRcWriteLast;
}

}  // namespace

wire::Opcode DataOpcode(wire::Service service, const verbs::SendRequest& request, bool first,
                        bool last) {
  const auto code = static_cast<uint8_t>(ReliableOpcode(request, first, last));
  return static_cast<wire::Opcode>(service == wire::Service::kUc ? code | kUnreliable : code);
}

uint8_t* BuildPacket(const QpContext& qp, wire::Headers& headers, uint32_t payload,
                     port::TxPacket& packet) {
  const uint32_t pad = -payload & 3;
  if (verbs::IsXrc(qp.config.type) &&
      wire::TraitsOf(headers.bth.opcode).service == wire::Service::kRc)
    headers.bth.opcode = static_cast<wire::Opcode>(static_cast<uint8_t>(headers.bth.opcode) | kXrc);
  headers.bth.dest_qpn = qp.attributes.dest_qpn;
  headers.bth.pkey = wire::kDefaultPkey;
  headers.bth.pad_count = static_cast<uint8_t>(pad);
  const size_t header_length = wire::EncodeHeaders(headers, packet.data);
  packet.path = qp.attributes.path;
  if (qp.ecn) {
    packet.path.traffic_class = wire::WithoutEcn(packet.path.traffic_class) | wire::kEcnEct0;
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
