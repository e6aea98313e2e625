// SPDX-License-Identifier: Apache-2.0
// REQ of a peer for the host V4(2).
#pragma once

#include <cstdint>
#include <span>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm::testing {

// Returns a REQ of the peer for the program that listens at the port.
inline wire::CmMad RequestOf(const wire::Gid& peer, uint32_t number, uint16_t port = kPort) {
  wire::CmReq req;
  req.local_comm_id = number;
  req.service_id = wire::IpServiceId(static_cast<uint16_t>(PortSpace::kTcp), port);
  req.local_ca_guid = peer.bytes[15];
  req.local_qpn = Qpn{0x1000 + number};
  req.local_response_timeout = 20;
  req.path_mtu = 3;
  req.max_cm_retries = 15;
  req.primary.local_gid = peer;
  req.primary.remote_gid = V4(2);
  wire::IpCmHeader header;
  header.source_port = 40000;
  header.source = peer;
  header.destination = V4(2);
  wire::EncodeIpCm(header, std::span(req.private_data).first<wire::kIpCmHeaderLength>());
  return {number, 0, req};
}

}  // namespace rocegw::cm::testing
