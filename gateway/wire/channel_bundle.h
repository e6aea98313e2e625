// SPDX-License-Identifier: Apache-2.0
// Bundle (BTH opcode 0xC3): one datagram with several frames and acknowledgements of one channel,
// under one BTH and one ICRC. Each entry keeps its own opcode and PSN, so a bundle changes nothing
// but the number of datagrams: the receiver treats its entries as if each had come alone. Bytes:
// docs/develop/wire_format.md. Pure functions; lengths in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/base/psn.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/headers.h"

namespace rocegw::wire {

// Header in front of each entry.
inline constexpr size_t kBundleEntryLength = 8;
// Longest content behind the BTH, as of any channel packet.
inline constexpr size_t kMaxBundle = kMaxPayload + kMaxFrameLength;

struct BundleEntry {
  Opcode opcode = Opcode::kChannelFrame;  // or kChannelAck
  Psn psn;
  std::span<const uint8_t> body;  // bytes behind the BTH in a datagram of its own, without pad
};

// Returns true for a frame or an acknowledgement: a datagram that may become an entry.
bool MayBundle(std::span<const uint8_t> datagram);
// Returns the bytes that such a datagram (without ICRC) takes as an entry.
size_t EntryLength(std::span<const uint8_t> datagram);

// Turns a datagram without ICRC into a bundle that has it as its only entry, and returns the new
// length. `datagram` has space for kBundleEntryLength more bytes. A bundle is valid with two
// entries; the caller appends the second one.
size_t BeginBundle(uint8_t* datagram, size_t length);
// Appends a datagram without ICRC to a bundle and returns the bundle's new length.
size_t AppendToBundle(uint8_t* bundle, size_t length, std::span<const uint8_t> datagram);

// Checks the structure of everything behind a bundle's BTH: at least two entries, none empty. The
// entries' own headers are checked when they are decoded.
[[nodiscard]] metrics::DropReason CheckBundle(std::span<const uint8_t> content);
// Removes the first entry from the checked content of a bundle. Returns false if none is left.
bool TakeEntry(std::span<const uint8_t>& content, BundleEntry& entry);

// Return the queue pair that a frame names and the frame's kind, before the frame is checked: hints
// of what to prefetch, or of whose it is. `body`: the bytes behind its BTH. kInvalidQpn: too short.
// An acknowledgement names any number.
inline Qpn PeekDestination(std::span<const uint8_t> body) {
  constexpr size_t kAt = 8;  // as EncodeFrame
  if (body.size() < kAt + 3) return kInvalidQpn;
  return Qpn{static_cast<uint32_t>(body[kAt]) << 16 | static_cast<uint32_t>(body[kAt + 1]) << 8 |
             body[kAt + 2]};
}

inline FrameKind PeekKind(const BundleEntry& entry) {
  return entry.body.empty() ? FrameKind::kVoid : static_cast<FrameKind>(entry.body[0] & 0xF);
}

// Writes the entry as a datagram of its own, with the BTH fields of the bundle and space for an
// ICRC. Returns its length without ICRC.
size_t UnbundleTo(std::span<const uint8_t> bundle, const BundleEntry& entry,
                  std::vector<uint8_t>& out);

}  // namespace rocegw::wire
