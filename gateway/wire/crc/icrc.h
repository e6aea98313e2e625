// SPDX-License-Identifier: Apache-2.0
// Invariant CRC of RoCEv2 (IBTA annex A17.3.3): CRC-32 over eight 0xFF bytes, the IP, UDP and BTH
// headers with their variant fields set to ones, and the rest of the packet; stored least
// significant byte first.
//
// CRC states here are raw (not complemented) register values: Update(Update(s, a), b) is the state
// after a then b. States are linear in the message, with three uses:
// - A payload's CRC is computed while it is copied, and joined with its headers later (Shift).
// - On IPv4 the headers include the IP ID, which a UDP socket does not show. A received ICRC is
//   right for some ID exactly if its difference to that for ID 0 lies in a 16-dimensional space,
//   and the ID follows from the difference (RecoverIpId).
// - The sender may choose the ID last.
//
// The fastest implementation for the CPU (table, PCLMULQDQ, VPCLMULQDQ) is chosen once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/wire/datagram.h"

namespace rocegw::wire {

// Returns the state after `bytes`, from `state`.
uint32_t CrcUpdate(uint32_t state, std::span<const uint8_t> bytes);

// Returns the same while copying the bytes to `destination`. The CRC is that of the bytes written,
// even if the source changes meanwhile.
uint32_t CrcCopy(uint32_t state, uint8_t* destination, const uint8_t* source, size_t length);

// Returns the state after `length` zero bytes: Update(s, a ++ b) == Shift(Update(s, a), |b|) ^
// Update(0, b).
uint32_t CrcShift(uint32_t state, size_t length);

// Returns the name of the implementation in use, for metrics and benchmarks: "vpclmul", "pclmul" or
// "table".
const char* CrcImplementation();

// Known CRC of a part of a datagram: state after `length` bytes from state 0.
struct KnownCrc {
  size_t offset = 0;  // bytes from the BTH
  size_t length = 0;  // 0: nothing known
  uint32_t crc = 0;
};

// Writes the ICRC behind `length` bytes at `datagram` (BTH to pad); four more bytes must exist.
// `ip_id`: the ID of the IPv4 header (ignored for IPv6); DF is set, no options.
void SealIcrc(const Path& path, uint16_t ip_id, uint8_t* datagram, size_t length,
              const KnownCrc& known = {});

// Part of a datagram that lies outside of the datagram's buffer. The buffer has a gap of that size.
struct OutsidePart {
  const uint8_t* bytes = nullptr;  // nullptr: the buffer holds the whole datagram
  uint32_t offset = 0;             // bytes from the BTH
  uint32_t length = 0;
};

// As SealIcrc, for a datagram with an outside part. If these bytes change later, the ICRC is wrong
// and the receiver drops the datagram.
void SealIcrcAround(const Path& path, uint16_t ip_id, uint8_t* datagram, size_t length,
                    const OutsidePart& outside);

// Returns true if the last four bytes are the right ICRC. With an unknown IPv4 ID, *ip_id is the ID
// that fits; a random packet then passes with probability 2^-16, after the kernel has checked a
// non-zero UDP checksum.
[[nodiscard]] bool VerifyIcrc(const RxMeta& meta, std::span<const uint8_t> datagram,
                              uint16_t* ip_id);

}  // namespace rocegw::wire
