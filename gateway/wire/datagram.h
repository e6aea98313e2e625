// SPDX-License-Identifier: Apache-2.0
// Packet attributes outside of the BTH: the path of a packet to send, and what the network reported
// about a received one.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/wire/gid.h"

namespace rocegw::wire {

inline constexpr uint16_t kRocePort = 4791;

// ECN bits of a traffic class (RFC 3168).
inline constexpr uint8_t kEcnMask = 3;
inline constexpr uint8_t kEcnEct0 = 2;
inline constexpr uint8_t kEcnCe = 3;
// Returns the DSCP alone. A sender sets its own ECN bits, and a received mark is about the path of
// that packet.
constexpr uint8_t WithoutEcn(uint8_t traffic_class) {
  return static_cast<uint8_t>(traffic_class & ~kEcnMask);
}

// Addresses and IP fields of sent packets. Fixed for a connected QP from RTR on; per packet for UD.
struct Path {
  Gid source;
  Gid destination;
  uint16_t source_port = 0xC000;  // UDP; constant per QP, so that ECMP keeps order
  uint8_t traffic_class = 0;      // DSCP and ECN, as sent
  uint8_t hop_limit = 64;
};

struct RxMeta {
  Gid source;
  Gid destination;
  uint16_t source_port = 0;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  bool ip_id_known = false;  // IPv4 over a UDP socket: the ID is not visible (icrc.h)
  uint16_t ip_id = 0;
};

// Received UDP payload, BTH first, ICRC last. The bytes belong to the port and are valid until its
// next Receive.
struct RxDatagram {
  RxMeta meta;
  std::span<const uint8_t> bytes;
};

}  // namespace rocegw::wire
