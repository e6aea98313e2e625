// SPDX-License-Identifier: Apache-2.0
// What lies outside of the BTH: where a packet goes, and what the network told about one that came.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/wire/gid.h"

namespace rocegw::wire {

inline constexpr uint16_t kRocePort = 4791;

// The low bits of a traffic class (RFC 3168).
inline constexpr uint8_t kEcnMask = 3;
inline constexpr uint8_t kEcnEct0 = 2;
inline constexpr uint8_t kEcnCe = 3;
// The DSCP alone: who sends decides about ECN himself, and a mark is about the way it has come.
constexpr uint8_t WithoutEcn(uint8_t traffic_class) {
  return static_cast<uint8_t>(traffic_class & ~kEcnMask);
}

// Fixed for a connected QP when it goes to RTR; per packet for UD.
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

// One received UDP payload, BTH first, ICRC last. The bytes belong to the port and stay valid until
// its next Receive.
struct RxDatagram {
  RxMeta meta;
  std::span<const uint8_t> bytes;
};

}  // namespace rocegw::wire
