// SPDX-License-Identifier: Apache-2.0
// Masked copy of the 64 bytes that an ICRC covers up to the end of the BTH, as eight words. IPv4
// has leading zeros, which do not count from state 0, so both IP versions have one size that fits a
// vector. Inline, since the fast kernel keeps the words in registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/wire/byte_order.h"
#include "gateway/wire/gid.h"

namespace rocegw::wire {

inline constexpr size_t kFrameBytes = 64;

struct FrameFields {
  const Gid* source;
  const Gid* destination;
  const uint8_t* bth;
  size_t size;  // size of the datagram with its ICRC
  uint16_t source_port;
  uint16_t ip_id;  // unused for IPv6
};

struct FrameWords {
  uint64_t w[8];
};

// Builds the words for a CRC that starts at state 0: of the eight 0xFF bytes that begin an ICRC,
// the first four cancel the initial state, and the words include the other four.
[[gnu::always_inline]] inline FrameWords MakeFrame(const FrameFields& fields) {
  constexpr uint64_t kUdpPort = 4791;
  constexpr size_t kIpv4Length = 20;
  constexpr size_t kUdpLength = 8;
  const auto be16 = [](size_t value) -> uint64_t {
    return __builtin_bswap16(static_cast<uint16_t>(value));
  };
  const auto high = [](uint32_t value) { return static_cast<uint64_t>(value) << 32; };
  const uint8_t* source = fields.source->bytes.data();
  const uint8_t* destination = fields.destination->bytes.data();
  const uint64_t ports = be16(fields.source_port) | be16(kUdpPort) << 16;
  const size_t udp_length = kUdpLength + fields.size;

  FrameWords f;
  if (fields.destination->IsV4()) {
    f.w[0] = 0;
    f.w[1] = 0;
    f.w[2] = high(0xFFFFFFFF);
    // Version 4 and header length, TOS, total length, ID, flag DF; TTL, protocol UDP, checksum.
    f.w[3] = 0xFF45 | be16(kIpv4Length + udp_length) << 16 | be16(fields.ip_id) << 32 |
             uint64_t{0x0040} << 48;
    f.w[4] = 0xFFFF11FF | high(LoadRaw<uint32_t>(source + 12));
  } else {
    // Version 6, traffic class, flow label; payload length, next header UDP, hop limit.
    f.w[0] = 0xFFFFFFFF | high(0xFFFFFF6F);
    f.w[1] = be16(udp_length) | uint64_t{0xFF11} << 16 | high(LoadRaw<uint32_t>(source));
    f.w[2] = LoadRaw<uint64_t>(source + 4);
    f.w[3] = LoadRaw<uint32_t>(source + 12) | high(LoadRaw<uint32_t>(destination));
    f.w[4] = LoadRaw<uint64_t>(destination + 4);
  }
  f.w[5] = LoadRaw<uint32_t>(destination + 12) | ports << 32;
  // UDP length and checksum; BTH with its fifth byte masked.
  f.w[6] = be16(udp_length) | uint64_t{0xFFFF} << 16 | high(LoadRaw<uint32_t>(fields.bth));
  f.w[7] = LoadRaw<uint64_t>(fields.bth + 4) | 0xFF;
  return f;
}

}  // namespace rocegw::wire
