// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/channel_bundle.h"

#include <cstring>

#include "gateway/wire/byte_order.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;

// Entry header: opcode (1), PSN (3), reserved (2), length of the body (2).
constexpr size_t kReservedAt = 4;
constexpr size_t kLengthAt = 6;
// Bytes of the BTH.
constexpr size_t kFlagsAt = 1;
constexpr size_t kHintAt = 4;
constexpr size_t kPsnWordAt = 8;
constexpr uint8_t kPadMask = 0x30;
constexpr int kPadCountShift = 4;

size_t Padded(size_t length) { return (length + 3) & ~size_t{3}; }

bool IsEntryOpcode(uint8_t opcode) {
  return opcode == static_cast<uint8_t>(Opcode::kChannelFrame) ||
         opcode == static_cast<uint8_t>(Opcode::kChannelAck);
}

size_t PadOf(std::span<const uint8_t> datagram) {
  return (datagram[kFlagsAt] & kPadMask) >> kPadCountShift;
}

// The pad of the datagram becomes that of the entry: both bring the body to a multiple of four.
void WriteEntryHeader(uint8_t opcode, uint32_t psn, size_t body, uint8_t* out) {
  StoreBe32(out, uint32_t{opcode} << 24 | psn);
  StoreBe32(out + kReservedAt, static_cast<uint32_t>(body));
}

}  // namespace

bool MayBundle(std::span<const uint8_t> datagram) {
  return datagram.size() > kBthLength && IsEntryOpcode(datagram[0]);
}

size_t EntryLength(std::span<const uint8_t> datagram) {
  return kBundleEntryLength + datagram.size() - kBthLength;
}

size_t BeginBundle(uint8_t* datagram, size_t length) {
  const size_t pad = PadOf({datagram, length});
  uint8_t* const entry = datagram + kBthLength;
  std::memmove(entry + kBundleEntryLength, entry, length - kBthLength);
  WriteEntryHeader(datagram[0], LoadBe24(datagram + kPsnWordAt), length - kBthLength - pad, entry);
  datagram[0] = static_cast<uint8_t>(Opcode::kChannelBundle);
  datagram[kFlagsAt] &= static_cast<uint8_t>(~kPadMask);
  return length + kBundleEntryLength;
}

size_t AppendToBundle(uint8_t* bundle, size_t length, std::span<const uint8_t> datagram) {
  const std::span<const uint8_t> body = datagram.subspan(kBthLength);
  uint8_t* const entry = bundle + length;
  WriteEntryHeader(datagram[0], LoadBe24(datagram.data() + kPsnWordAt),
                   body.size() - PadOf(datagram), entry);
  std::memcpy(entry + kBundleEntryLength, body.data(), body.size());
  // Frames of a channel have one hint, acknowledgements have none.
  bundle[kHintAt] |= datagram[kHintAt];
  return length + kBundleEntryLength + body.size();
}

DropReason CheckBundle(std::span<const uint8_t> content) {
  size_t entries = 0;
  for (; !content.empty(); ++entries) {
    if (content.size() < kBundleEntryLength) return DropReason::k_truncated;
    if (!IsEntryOpcode(content[0])) return DropReason::k_channel_kind;
    if (LoadBe16(content.data() + kReservedAt) != 0) return DropReason::k_channel_field;
    const size_t length = LoadBe16(content.data() + kLengthAt);
    if (length == 0 || Padded(length) > content.size() - kBundleEntryLength)
      return DropReason::k_bad_length;
    for (size_t i = length; i < Padded(length); ++i)
      if (content[kBundleEntryLength + i] != 0) return DropReason::k_channel_field;
    content = content.subspan(kBundleEntryLength + Padded(length));
  }
  // A single packet has a datagram of its own.
  return entries >= 2 ? DropReason::kNone : DropReason::k_bad_length;
}

bool TakeEntry(std::span<const uint8_t>& content, BundleEntry& entry) {
  if (content.empty()) return false;
  const uint8_t* const p = content.data();
  const size_t length = LoadBe16(p + kLengthAt);
  entry = {.opcode = static_cast<Opcode>(p[0]),
           .psn = Psn(LoadBe24(p)),
           .body = content.subspan(kBundleEntryLength, length)};
  content = content.subspan(kBundleEntryLength + Padded(length));
  return true;
}

size_t UnbundleTo(std::span<const uint8_t> bundle, const BundleEntry& entry,
                  std::vector<uint8_t>& out) {
  const size_t length = kBthLength + Padded(entry.body.size());
  out.assign(length + kIcrcLength, 0);
  std::memcpy(out.data(), bundle.data(), kBthLength);
  out[0] = static_cast<uint8_t>(entry.opcode);
  out[kFlagsAt] |= static_cast<uint8_t>((-entry.body.size() & 3) << kPadCountShift);
  StoreBe32(out.data() + kPsnWordAt, entry.psn.value);
  std::memcpy(out.data() + kBthLength, entry.body.data(), entry.body.size());
  return length;
}

}  // namespace rocegw::wire
