// SPDX-License-Identifier: Apache-2.0
// The invariant CRC of RoCEv2 (IBTA annex A17.3.3): CRC-32 over eight 0xFF bytes, the IP, UDP and
// BTH headers with their variant fields set to ones, and the rest of the packet; stored least
// significant byte first.
//
// CRC states here are raw ("un-complemented") register values: Update(Update(s, a), b) is the state
// after a then b, and states are linear in the message, which three things use:
//  - a payload's CRC can be taken while it is copied, and joined with its headers later (Shift);
//  - on IPv4 the headers cover the IP ID, which a UDP socket does not show: a received ICRC is
//  right for some ID exactly
//    when its difference to that for ID 0 lies in a 16-dimensional space, and the ID falls out
//    (RecoverIpId);
//  - the sender may choose the ID last.
// The fastest of the implementations (table, PCLMULQDQ, VPCLMULQDQ) that the CPU has is chosen
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/wire/datagram.h"

namespace rocegw::wire {

// State after `bytes`, from `state`.
uint32_t CrcUpdate(uint32_t state, std::span<const uint8_t> bytes);

// The same, and copies the bytes to `destination` in the same pass. The CRC is that of the bytes
// written, also when the source changes meanwhile.
uint32_t CrcCopy(uint32_t state, uint8_t* destination, const uint8_t* source, size_t length);

// State after `length` zero bytes: Update(s, a ++ b) == Shift(Update(s, a), |b|) ^ Update(0, b).
uint32_t CrcShift(uint32_t state, size_t length);

// Name of the implementation in use: "vpclmul", "pclmul" or "table"; for metrics and benchmarks.
const char* CrcImplementation();

// CRC of part of a datagram, already known: state after `length` bytes from state 0.
struct KnownCrc {
  size_t offset = 0;  // from BTH
  size_t length = 0;  // 0: nothing known
  uint32_t crc = 0;
};

// Writes the ICRC behind `length` bytes at `datagram` (BTH .. pad); four more bytes must be there.
// ip_id is what the IPv4 header will carry (ignored for IPv6); DF is set, no options.
void SealIcrc(const Path& path, uint16_t ip_id, uint8_t* datagram, size_t length,
              const KnownCrc& known = {});

// True when the last four bytes are the right ICRC. With an unknown IPv4 ID every ID is tried at
// once; *ip_id is the one that fits (a random packet passes with 2^-16 then; the kernel has checked
// a non-zero UDP checksum before).
[[nodiscard]] bool VerifyIcrc(const RxMeta& meta, std::span<const uint8_t> datagram,
                              uint16_t* ip_id);

}  // namespace rocegw::wire
