// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/describe/describe.h"
#include "gateway/wire/seal/sealed_datagram.h"

namespace rocegw::wire {
namespace {

[[gnu::format(printf, 2, 3)]] void Put(std::string& text, const char* format, ...) {
  char piece[160];
  va_list arguments;
  va_start(arguments, format);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is the line above
  std::vsnprintf(piece, sizeof piece, format, arguments);
  va_end(arguments);
  text += piece;
}

constexpr const char* kFrameNames[] = {"void",  "SEND",         "WRITE",        "READ",
                                       "DATA",  "compare-swap", "fetch-add",    "atomic result",
                                       "reply", "FLUSH",        "ATOMIC WRITE", "fetch-operate"};
static_assert(sizeof kFrameNames / sizeof *kFrameNames == static_cast<size_t>(FrameKind::kCount));
constexpr const char* kControlNames[] = {"open",  "opened", "refused", "probe",
                                         "close", "closed", "reset",   "retry"};
static_assert(sizeof kControlNames / sizeof *kControlNames ==
              static_cast<size_t>(ControlKind::kCount));
constexpr const char* kFlagNames[] = {"imm",     "solicited", "last",       "ordered",
                                      "ack-now", "relaxed",   "invalidate", "endpoint"};

void Refused(std::string& text, metrics::DropReason reason) {
  Put(text, " malformed: %s", metrics::DropReasonName(reason));
}

void PutFrame(std::string& text, std::span<const uint8_t> body) {
  ChannelFrame f;
  std::span<const uint8_t> payload;
  const metrics::DropReason reason = DecodeFrame(body, f, payload);
  if (reason != metrics::DropReason::kNone) return Refused(text, reason);
  Put(text, " %s epoch=0x%04x", kFrameNames[static_cast<size_t>(f.kind)], unsigned{f.epoch});
  if (f.kind != FrameKind::kVoid) {
    Put(text, " from=0x%06" PRIx32 " to=0x%06" PRIx32 " tenant=0x%" PRIx32 " msg=%" PRIu32,
        f.source.value, f.destination.value, f.tenant, f.message);
  }
  if (f.attempt != 0) Put(text, " attempt=%d", int{f.attempt});
  switch (f.kind) {
    case FrameKind::kSend:
    case FrameKind::kWrite:
    case FrameKind::kReadResponse:
      Put(text, " off=%" PRIu32 " len=%" PRIu32, f.offset, f.length);
      break;
    case FrameKind::kFlush:
      Put(text, " flush=0x%" PRIx32, f.feth);
      [[fallthrough]];
    case FrameKind::kReadRequest:
      Put(text, " len=%" PRIu32, f.length);
      break;
    case FrameKind::kAtomicResult:
      Put(text, " original=0x%" PRIx64, f.original);
      break;
    case FrameKind::kReply:
      text += ' ';
      if (f.not_ready()) {
        Put(text, "not ready, timer %d", f.syndrome & 0x1F);
      } else {
        text += SyndromeText(f.syndrome);
      }
      break;
    default:
      break;
  }
  if (f.kind == FrameKind::kSend || f.has(kFrameImmediate)) Put(text, " recv=%" PRIu32, f.receive);
  if (FrameLength(f.kind, 0) >= FrameLength(FrameKind::kWrite, 0)) {
    Put(text, " va=0x%" PRIx64 " rkey=0x%" PRIx32, f.address, f.rkey);
  }
  if (f.kind == FrameKind::kFetchOperate)
    Put(text, " %s=0x%" PRIx64, AtomicOperationName(f.operation), f.swap_or_add);
  if (f.kind == FrameKind::kFetchAdd) Put(text, " add=0x%" PRIx64, f.swap_or_add);
  if (f.kind == FrameKind::kCompareSwap) {
    Put(text, " compare=0x%" PRIx64 " swap=0x%" PRIx64, f.compare, f.swap_or_add);
  }
  for (size_t bit = 0; bit < sizeof kFlagNames / sizeof *kFlagNames; ++bit) {
    if ((f.flags >> bit & 1) != 0) Put(text, " %s", kFlagNames[bit]);
  }
  if (f.has(kFrameImmediate)) Put(text, "=0x%08" PRIx32, __builtin_bswap32(f.immediate));
  if (f.has(kFrameInvalidate)) Put(text, "=0x%" PRIx32, f.invalidate_rkey);
  Put(text, " payload=%zu", payload.size());
}

void PutAck(std::string& text, std::span<const uint8_t> body) {
  ChannelAck ack;
  const metrics::DropReason reason = DecodeAck(body, ack);
  if (reason != metrics::DropReason::kNone) return Refused(text, reason);
  Put(text, " epoch=0x%04x room=%" PRIu32 " marked=%" PRIu32 " hint=%u held=%" PRIu32 "ns",
      unsigned{ack.epoch}, ack.room, ack.marked_bytes, unsigned{ack.hint}, ack.held_ns);
  if (ack.duplicates != 0) Put(text, " duplicates=%u", unsigned{ack.duplicates});
  if (ack.probe != 0) Put(text, " probe=%" PRIu32, ack.probe);
  size_t beyond = 0;
  for (const uint32_t word : ack.arrived()) beyond += static_cast<size_t>(__builtin_popcount(word));
  Put(text, " beyond=%zu/%u", beyond, unsigned{ack.words} * 32);
}

void PutControl(std::string& text, std::span<const uint8_t> body) {
  ChannelControl c;
  const metrics::DropReason reason = DecodeControl(body, c);
  if (reason != metrics::DropReason::kNone) return Refused(text, reason);
  Put(text, " %s from=0x%06" PRIx32 " epoch=0x%08" PRIx32 " peer-epoch=0x%08" PRIx32,
      kControlNames[static_cast<size_t>(c.kind)], c.channel, c.epoch, c.peer_epoch);
  Put(text, " instance=0x%08" PRIx32, c.instance);
  if (c.kind == ControlKind::kOpen || c.kind == ControlKind::kOpened) {
    Put(text, " first-psn=%" PRIu32 " tclass=0x%02x window=%" PRIu32 " path=%u",
        c.initial_psn.value, unsigned{c.traffic_class}, c.window, unsigned{c.path});
    Put(text, " features=0x%" PRIx32 " cc=%u checksum=%u", c.features, unsigned{c.cc_kind},
        unsigned{c.checksum_mode});
  }
  if (c.seals) Put(text, " seals%s", c.seal.encrypts ? " encrypted" : "");
  if (c.probe != 0) Put(text, " probe=%" PRIu32, c.probe);
  if (c.reason != ChannelReason::kNone) Put(text, " reason=%s", ChannelReasonName(c.reason));
}

void PutBundle(std::string& text, std::span<const uint8_t> content) {
  const metrics::DropReason reason = CheckBundle(content);
  if (reason != metrics::DropReason::kNone) return Refused(text, reason);
  BundleEntry entry;
  while (TakeEntry(content, entry)) {
    Put(text, " [%s psn=%" PRIu32, TraitsOf(entry.opcode).name, entry.psn.value);
    text += DescribeChannel(entry.opcode, entry.body) + ']';
  }
}

// The content of an encrypted datagram is not there to be described.
void PutSealed(std::string& text, std::span<const uint8_t> body) {
  RxPacket packet;
  packet.payload = body;
  SealedParts parts;
  const metrics::DropReason reason = DecodeSealed(packet, parts);
  if (reason != metrics::DropReason::kNone) return Refused(text, reason);
  const SealTrailer& trailer = parts.trailer;
  Put(text, " from=0x%06" PRIx32 " epoch=0x%04x key=0x%08" PRIx32 " sequence=%" PRIu64,
      trailer.channel.value, unsigned{trailer.epoch}, trailer.key_id, trailer.sequence);
  if (trailer.encrypted) {
    Put(text, " encrypted=%zu", parts.content.size());
    return;
  }
  Put(text, " [%s", TraitsOf(trailer.inner).name);
  text += DescribeChannel(trailer.inner, Unsealed(packet, trailer, parts.content).payload) + ']';
}

}  // namespace

std::string DescribeChannel(Opcode opcode, std::span<const uint8_t> body) {
  std::string text;
  if (opcode == Opcode::kChannelFrame) PutFrame(text, body);
  if (opcode == Opcode::kChannelAck) PutAck(text, body);
  if (opcode == Opcode::kChannelControl) PutControl(text, body);
  if (opcode == Opcode::kChannelBundle) PutBundle(text, body);
  if (opcode == Opcode::kChannelSealed) PutSealed(text, body);
  return text;
}

}  // namespace rocegw::wire
