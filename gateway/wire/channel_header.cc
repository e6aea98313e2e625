// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/channel_header.h"

#include <cstring>
#include <iterator>

#include "gateway/wire/byte_order.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;

constexpr uint8_t kKindMask = 0x0F;
constexpr int kVersionShift = 4;
constexpr size_t kResultLength = 40;
// Last word of a seal offer.
constexpr uint32_t kEncryptsBit = 0x01000000;

// Rules for the header of a frame kind. Offset, length and payload of a frame without data are 0,
// except the length of a READ request and a FLUSH, which is the requested length.
struct KindRule {
  uint8_t length;   // bytes of the header; of a SEND without immediate
  uint8_t allowed;  // flags that may be set
  bool data;        // has payload, offset and message length
  bool one_frame;   // a message is one frame of this kind
};
constexpr uint8_t kRequestFlags = kFrameLast | kFrameOrdered | kFrameAckNow;
constexpr uint8_t kReadFlags = kRequestFlags | kFrameRelaxed | kFrameEndpoint;
constexpr KindRule kRules[] = {
    {kFrameBaseLength, kFrameAckNow, false, false},  // void
    {kFrameBaseLength,
     kRequestFlags | kFrameImmediate | kFrameSolicited | kFrameRelaxed | kFrameInvalidate |
         kFrameEndpoint,
     true, false},  // SEND
    {kAddressedFrameLength,
     kRequestFlags | kFrameImmediate | kFrameSolicited | kFrameRelaxed | kFrameEndpoint, true,
     false},                                                                     // WRITE
    {kAddressedFrameLength, kReadFlags, false, true},                            // READ request
    {kFrameBaseLength, kFrameLast | kFrameAckNow | kFrameRelaxed, true, false},  // READ response
    {kMaxFrameLength, kReadFlags, false, true},                                  // compare-swap
    {kMaxFrameLength, kReadFlags, false, true},                                  // fetch-add
    {kResultLength, kFrameLast | kFrameAckNow, false, true},                     // atomic result
    {kFrameBaseLength, kFrameAckNow | kFrameRelaxed, false, false},              // reply
    {kAddressedFrameLength, kRequestFlags | kFrameRelaxed, false, true},         // FLUSH
    {kAddressedFrameLength, kRequestFlags | kFrameRelaxed, true, true},          // ATOMIC WRITE
    {kMaxFrameLength, kReadFlags, false, true},                                  // fetch-operate
};
static_assert(std::size(kRules) == static_cast<size_t>(FrameKind::kCount));

const KindRule& RuleOf(FrameKind kind) { return kRules[static_cast<size_t>(kind)]; }

bool HasWord(FrameKind kind, uint8_t flags) {
  return kind == FrameKind::kSend && (flags & (kFrameImmediate | kFrameInvalidate)) != 0;
}

// Returns true if address, key and one further word follow the base header.
bool IsAddressed(FrameKind kind) {
  const uint8_t length = RuleOf(kind).length;
  return length == kAddressedFrameLength || length == kMaxFrameLength;
}

bool IsAtomic(FrameKind kind) {
  return kind == FrameKind::kCompareSwap || kind == FrameKind::kFetchAdd ||
         kind == FrameKind::kFetchOperate;
}

bool OperationFits(const ChannelFrame& f) {
  if (f.kind != FrameKind::kFetchOperate) return f.operation == AtomicOperation::kNone;
  if (f.operation == AtomicOperation::kNone || f.operation >= AtomicOperation::kCount) return false;
  return f.operation != AtomicOperation::kLoad || f.swap_or_add == 0;
}

// Returns true for QPNs that IBTA reserves for no other use (none, GSI, multicast).
bool IsEndpoint(Qpn qpn) { return qpn.value > kGsiQpn.value && qpn.value < kMulticastQpn.value; }

bool IsReplySyndrome(uint8_t syndrome) {
  if (syndrome == kSyndromeAck) return true;
  if ((syndrome & 0xE0) == kSyndromeRnr || (syndrome & 0xE0) == kSyndromeNotReady) return true;
  return syndrome >= SyndromeOf(NakCode::kPsnSequence) &&
         syndrome <= SyndromeOf(NakCode::kInvalidRdRequest);
}

DropReason CheckFlags(const ChannelFrame& f) {
  const KindRule& rule = RuleOf(f.kind);
  if ((f.flags & ~rule.allowed) != 0) return DropReason::k_channel_flags;
  // A memory window is invalidated by the connected queue pair that it is bound to, never through
  // an endpoint.
  if (f.has(kFrameInvalidate) && (f.has(kFrameImmediate) || f.has(kFrameEndpoint)))
    return DropReason::k_channel_flags;
  // Only messages that take a receive raise a solicited event.
  if (f.kind == FrameKind::kWrite && f.has(kFrameSolicited) && !f.has(kFrameImmediate)) {
    return DropReason::k_channel_flags;
  }
  if (rule.one_frame && !f.has(kFrameLast)) return DropReason::k_channel_flags;
  return DropReason::kNone;
}

DropReason CheckExtent(const ChannelFrame& f, size_t payload) {
  const KindRule& rule = RuleOf(f.kind);
  if (f.length > kMaxMessageLength) return DropReason::k_channel_field;
  if (!rule.data) {
    if (payload != 0) return DropReason::k_bad_length;
    if (f.offset != 0) return DropReason::k_channel_field;
    const bool asks = f.kind == FrameKind::kReadRequest || f.kind == FrameKind::kFlush;
    if (f.length != 0 && !asks) return DropReason::k_channel_field;
    return DropReason::kNone;
  }
  if (payload > kMaxPayload) return DropReason::k_bad_length;
  if (f.offset > f.length || payload > f.length - f.offset) return DropReason::k_bad_length;
  if (f.kind == FrameKind::kAtomicWrite && (f.length != 8 || f.offset != 0))
    return DropReason::k_bad_length;
  // Only a zero-length message has a frame without payload.
  if (payload == 0 && f.length != 0) return DropReason::k_bad_length;
  const bool ends = payload == f.length - f.offset;
  return ends == f.has(kFrameLast) ? DropReason::kNone : DropReason::k_channel_flags;
}

bool FieldsFit(const ChannelFrame& f) {
  const FrameKind kind = f.kind;
  if (kind == FrameKind::kVoid) {
    return f.tenant == 0 && f.destination == kInvalidQpn && f.source == kInvalidQpn &&
           f.message == 0 && f.syndrome == 0 && f.attempt == 0 && f.receive == 0;
  }
  if (!IsEndpoint(f.destination) || !IsEndpoint(f.source)) return false;
  if (kind == FrameKind::kReply ? !IsReplySyndrome(f.syndrome) : f.syndrome != 0) return false;
  const bool answers = kind == FrameKind::kReadResponse || kind == FrameKind::kAtomicResult;
  if (answers && f.attempt != 0) return false;
  const bool takes_receive = kind == FrameKind::kSend || f.has(kFrameImmediate);
  if (!takes_receive && !f.has(kFrameEndpoint) && f.receive != 0) return false;
  if (kind == FrameKind::kWrite && !f.has(kFrameImmediate) && f.immediate != 0) return false;
  if ((f.feth & ~(kFlushTypeMask | kFlushLevelMask)) != 0) return false;
  if (!OperationFits(f)) return false;
  const bool compares = kind != FrameKind::kFetchAdd && kind != FrameKind::kFetchOperate;
  return compares || f.compare == 0;
}

// Checks the four bytes at the start of each extension header.
DropReason CheckPrefix(std::span<const uint8_t> body, size_t least) {
  if (body.size() < least) return DropReason::k_truncated;
  if (body[0] >> kVersionShift != kChannelVersion) return DropReason::k_channel_version;
  return DropReason::kNone;
}

void StorePrefix(uint8_t kind, uint8_t flags, uint16_t epoch, uint8_t* out) {
  StoreBe32(out,
            uint32_t{kChannelVersion} << 28 | uint32_t{kind} << 24 | uint32_t{flags} << 16 | epoch);
}

// Stores 24 bits with a byte in front or behind.
void StoreByteAnd24(uint8_t* out, uint8_t byte, uint32_t value) {
  StoreBe32(out, uint32_t{byte} << 24 | (value & 0xFFFFFF));
}
void Store24AndByte(uint8_t* out, uint32_t value, uint8_t byte) {
  StoreBe32(out, value << 8 | byte);
}

bool IsSetUp(ControlKind kind) {
  return kind == ControlKind::kOpen || kind == ControlKind::kOpened;
}

DropReason CheckControl(const ChannelControl& c) {
  const bool reasoned = c.kind == ControlKind::kRefused || c.kind == ControlKind::kReset ||
                        c.kind == ControlKind::kClose;
  if (c.reason >= ChannelReason::kCount) return DropReason::k_channel_field;
  if (reasoned != (c.reason != ChannelReason::kNone)) return DropReason::k_channel_field;
  const bool has_channel = c.kind != ControlKind::kRefused && c.kind != ControlKind::kRetry;
  if (has_channel ? !IsEndpoint(Qpn{c.channel}) : c.channel != 0) {
    return DropReason::k_channel_field;
  }
  if (c.kind == ControlKind::kRetry && c.epoch == 0) return DropReason::k_channel_field;
  if ((c.kind == ControlKind::kProbe) != (c.probe != 0)) return DropReason::k_channel_field;
  if (IsSetUp(c.kind)) return c.window != 0 ? DropReason::kNone : DropReason::k_channel_field;
  const bool clear = c.initial_psn.value == 0 && c.traffic_class == 0 && c.window == 0 &&
                     c.path == 0 && c.features == 0 && c.cc_kind == 0 && c.checksum_mode == 0 &&
                     c.worker == 0;
  return clear ? DropReason::kNone : DropReason::k_channel_field;
}

}  // namespace

const char* ChannelReasonName(ChannelReason reason) {
  switch (reason) {
    case ChannelReason::kNone:
      return "none";
    case ChannelReason::kNotAllowed:
      return "not allowed";
    case ChannelReason::kNoResources:
      return "no resources";
    case ChannelReason::kUnsupported:
      return "unsupported";
    case ChannelReason::kUnknownChannel:
      return "unknown channel";
    case ChannelReason::kStaleEpoch:
      return "stale epoch";
    case ChannelReason::kIdle:
      return "idle";
    case ChannelReason::kShutdown:
      return "shutdown";
    case ChannelReason::kPathFailed:
      return "path failed";
    case ChannelReason::kProtocolError:
      return "protocol error";
    case ChannelReason::kCount:
      break;
  }
  return "?";
}

const char* AtomicOperationName(AtomicOperation operation) {
  switch (operation) {
    case AtomicOperation::kSwap:
      return "swap";
    case AtomicOperation::kLoad:
      return "load";
    case AtomicOperation::kStore:
      return "store";
    case AtomicOperation::kAnd:
      return "and";
    case AtomicOperation::kOr:
      return "or";
    case AtomicOperation::kXor:
      return "xor";
    case AtomicOperation::kSubtract:
      return "subtract";
    case AtomicOperation::kNone:
    case AtomicOperation::kCount:
      break;
  }
  return "?";
}

size_t FrameLength(FrameKind kind, uint8_t flags) {
  return size_t{RuleOf(kind).length} + (HasWord(kind, flags) ? 4 : 0);
}

DropReason ValidateFrame(const ChannelFrame& frame, size_t payload) {
  if (frame.kind >= FrameKind::kCount) return DropReason::k_channel_kind;
  if (const DropReason reason = CheckFlags(frame); reason != DropReason::kNone) return reason;
  if (const DropReason reason = CheckExtent(frame, payload); reason != DropReason::kNone) {
    return reason;
  }
  return FieldsFit(frame) ? DropReason::kNone : DropReason::k_channel_field;
}

size_t EncodeFrame(const ChannelFrame& frame, uint8_t* out) {
  const FrameKind kind = frame.kind;
  StorePrefix(static_cast<uint8_t>(kind), frame.flags, frame.epoch, out);
  StoreBe32(out + 4, frame.tenant);
  Store24AndByte(out + 8, frame.destination.value, frame.syndrome);
  Store24AndByte(out + 12, frame.source.value, frame.attempt);
  StoreBe32(out + 16, frame.message);
  StoreBe32(out + 20, frame.offset);
  StoreBe32(out + 24, frame.length);
  StoreBe32(out + 28, frame.receive);
  uint8_t* const own = out + kFrameBaseLength;
  if (IsAddressed(kind)) {
    StoreBe64(own, frame.address);
    StoreBe32(own + 8, frame.rkey);
    if (kind == FrameKind::kFlush) {
      StoreBe32(own + 12, frame.feth);
    } else if (kind == FrameKind::kFetchOperate) {
      StoreBe32(own + 12, static_cast<uint32_t>(frame.operation));
    } else {
      StoreRaw<uint32_t>(own + 12, kind == FrameKind::kWrite ? frame.immediate : 0);
    }
  }
  if (IsAtomic(kind)) {
    StoreBe64(own + 16, frame.swap_or_add);
    StoreBe64(own + 24, frame.compare);
  } else if (kind == FrameKind::kAtomicResult) {
    StoreBe64(own, frame.original);
  } else if (HasWord(kind, frame.flags)) {
    if (frame.has(kFrameImmediate)) {
      StoreRaw(own, frame.immediate);
    } else {
      StoreBe32(own, frame.invalidate_rkey);
    }
  }
  return FrameLength(kind, frame.flags);
}

DropReason DecodeFrame(std::span<const uint8_t> body, ChannelFrame& frame,
                       std::span<const uint8_t>& payload) {
  if (const DropReason reason = CheckPrefix(body, kFrameBaseLength); reason != DropReason::kNone) {
    return reason;
  }
  const uint8_t* p = body.data();
  frame = ChannelFrame{};
  frame.kind = static_cast<FrameKind>(p[0] & kKindMask);
  if (frame.kind >= FrameKind::kCount) return DropReason::k_channel_kind;
  frame.flags = p[1];
  const size_t length = FrameLength(frame.kind, frame.flags);
  if (body.size() < length) return DropReason::k_truncated;
  frame.epoch = LoadBe16(p + 2);
  frame.tenant = LoadBe32(p + 4);
  frame.destination = Qpn{LoadBe32(p + 8) >> 8};
  frame.syndrome = p[11];
  frame.source = Qpn{LoadBe32(p + 12) >> 8};
  frame.attempt = p[15];
  frame.message = LoadBe32(p + 16);
  frame.offset = LoadBe32(p + 20);
  frame.length = LoadBe32(p + 24);
  frame.receive = LoadBe32(p + 28);
  const uint8_t* const own = p + kFrameBaseLength;
  if (IsAddressed(frame.kind)) {
    frame.address = LoadBe64(own);
    frame.rkey = LoadBe32(own + 8);
  }
  switch (frame.kind) {
    case FrameKind::kWrite:
      frame.immediate = LoadRaw<uint32_t>(own + 12);
      break;
    case FrameKind::kCompareSwap:
    case FrameKind::kFetchAdd:
      frame.swap_or_add = LoadBe64(own + 16);
      frame.compare = LoadBe64(own + 24);
      [[fallthrough]];
    case FrameKind::kReadRequest:
    case FrameKind::kAtomicWrite:
      if (LoadBe32(own + 12) != 0) return DropReason::k_channel_field;
      break;
    case FrameKind::kFetchOperate: {
      const uint32_t operation = LoadBe32(own + 12);
      if (operation >= static_cast<uint32_t>(AtomicOperation::kCount))
        return DropReason::k_channel_field;
      frame.operation = static_cast<AtomicOperation>(operation);
      frame.swap_or_add = LoadBe64(own + 16);
      frame.compare = LoadBe64(own + 24);
      break;
    }
    case FrameKind::kFlush:
      frame.feth = LoadBe32(own + 12);
      break;
    case FrameKind::kAtomicResult:
      frame.original = LoadBe64(own);
      break;
    default:
      if (!HasWord(frame.kind, frame.flags)) break;
      if (frame.has(kFrameImmediate)) {
        frame.immediate = LoadRaw<uint32_t>(own);
      } else {
        frame.invalidate_rkey = LoadBe32(own);
      }
  }
  payload = body.subspan(length);
  return ValidateFrame(frame, payload.size());
}

void StampFrame(uint8_t* frame, uint8_t flags, uint16_t epoch) {
  frame[1] |= flags;
  StoreBe16(frame + 2, epoch);
}

size_t EncodeAck(const ChannelAck& ack, uint8_t* out) {
  StorePrefix(0, 0, ack.epoch, out);
  StoreBe32(out + 4, ack.marked_bytes);
  StoreByteAnd24(out + 8, ack.hint, ack.room);
  StoreBe32(out + 12, ack.held_ns);
  StoreBe32(out + 16, ack.probe);
  StoreBe16(out + 20, ack.words);
  StoreBe16(out + 22, static_cast<uint16_t>(ack.duplicates << 8));
  uint8_t* p = out + kChannelAckLength;
  for (const uint32_t word : ack.arrived()) {
    StoreBe32(p, word);
    p += 4;
  }
  return static_cast<size_t>(p - out);
}

DropReason DecodeAck(std::span<const uint8_t> body, ChannelAck& ack) {
  if (const DropReason reason = CheckPrefix(body, kChannelAckLength); reason != DropReason::kNone) {
    return reason;
  }
  const uint8_t* p = body.data();
  if ((p[0] & kKindMask) != 0) return DropReason::k_channel_kind;
  if (p[1] != 0) return DropReason::k_channel_flags;
  if (p[23] != 0) return DropReason::k_channel_field;
  ack.epoch = LoadBe16(p + 2);
  ack.marked_bytes = LoadBe32(p + 4);
  ack.hint = p[8];
  ack.room = LoadBe24(p + 8);
  ack.held_ns = LoadBe32(p + 12);
  ack.probe = LoadBe32(p + 16);
  ack.words = LoadBe16(p + 20);
  ack.duplicates = p[22];
  if (ack.words > kMaxBitmapWords) return DropReason::k_channel_field;
  if (body.size() != kChannelAckLength + size_t{ack.words} * 4) return DropReason::k_bad_length;
  for (size_t i = 0; i < ack.words; ++i) ack.bitmap[i] = LoadBe32(p + kChannelAckLength + i * 4);
  return DropReason::kNone;
}

size_t EncodeControl(const ChannelControl& control, uint8_t* out) {
  const int flags = (control.tagged ? kControlTagged : 0) | (control.seals ? kControlSeals : 0);
  StorePrefix(static_cast<uint8_t>(control.kind), static_cast<uint8_t>(flags),
              static_cast<uint16_t>(control.peer_epoch), out);
  Store24AndByte(out + 4, control.channel, static_cast<uint8_t>(control.reason));
  StoreBe32(out + 8, control.epoch);
  StoreBe32(out + 12, control.peer_epoch);
  Store24AndByte(out + 16, control.initial_psn.value, control.traffic_class);
  Store24AndByte(out + 20, control.window, control.path);
  StoreBe32(out + 24, control.features);
  StoreBe32(out + 28, uint32_t{control.cc_kind} << 24 | uint32_t{control.checksum_mode} << 16 |
                          control.worker);
  StoreBe32(out + 32, control.probe);
  StoreBe32(out + 36, control.instance);
  size_t length = kChannelControlLength;
  if (control.seals) {
    std::memcpy(out + length, control.seal.salt.data(), kSaltLength);
    StoreBe32(out + length + kSaltLength, control.seal.encrypts ? kEncryptsBit : 0);
    length += kSealOfferLength;
  }
  if (!control.tagged) return length;
  StoreBe64(out + length, control.sequence);
  StoreBe64(out + length + kSequenceLength, control.tag);
  return length + kSequenceLength + kTagLength;
}

namespace {

size_t LengthOfControl(uint8_t flags) {
  return kChannelControlLength + ((flags & kControlSeals) != 0 ? kSealOfferLength : 0) +
         ((flags & kControlTagged) != 0 ? kSequenceLength + kTagLength : 0);
}

// Reads what follows the base of a control packet with flags.
DropReason DecodeControlTail(const uint8_t* p, ChannelControl& control) {
  if (control.seals) {
    std::memcpy(control.seal.salt.data(), p, kSaltLength);
    const uint32_t wishes = LoadBe32(p + kSaltLength);
    if ((wishes & ~kEncryptsBit) != 0) return DropReason::k_channel_field;
    control.seal.encrypts = wishes != 0;
    p += kSealOfferLength;
  }
  if (control.tagged) {
    control.sequence = LoadBe64(p);
    control.tag = LoadBe64(p + kSequenceLength);
    if (control.sequence == 0) return DropReason::k_channel_field;
  }
  return DropReason::kNone;
}

}  // namespace

DropReason DecodeControl(std::span<const uint8_t> body, ChannelControl& control) {
  if (const DropReason reason = CheckPrefix(body, kChannelControlLength);
      reason != DropReason::kNone) {
    return reason;
  }
  const uint8_t* p = body.data();
  control = ChannelControl{};
  control.kind = static_cast<ControlKind>(p[0] & kKindMask);
  if (control.kind >= ControlKind::kCount) return DropReason::k_channel_kind;
  if ((p[1] & ~(kControlTagged | kControlSeals)) != 0) return DropReason::k_channel_flags;
  control.tagged = (p[1] & kControlTagged) != 0;
  control.seals = (p[1] & kControlSeals) != 0;
  if (control.seals && !(control.tagged && IsSetUp(control.kind)))
    return DropReason::k_channel_flags;
  if (body.size() != LengthOfControl(p[1])) return DropReason::k_bad_length;
  control.channel = LoadBe32(p + 4) >> 8;
  control.reason = static_cast<ChannelReason>(p[7]);
  control.epoch = LoadBe32(p + 8);
  control.peer_epoch = LoadBe32(p + 12);
  if (LoadBe16(p + 2) != static_cast<uint16_t>(control.peer_epoch)) {
    return DropReason::k_channel_field;
  }
  control.initial_psn = Psn(LoadBe32(p + 16) >> 8);
  control.traffic_class = p[19];
  control.window = LoadBe32(p + 20) >> 8;
  control.path = p[23];
  control.features = LoadBe32(p + 24);
  control.cc_kind = p[28];
  control.checksum_mode = p[29];
  control.worker = LoadBe16(p + 30);
  control.probe = LoadBe32(p + 32);
  control.instance = LoadBe32(p + 36);
  if (const DropReason reason = DecodeControlTail(p + kChannelControlLength, control);
      reason != DropReason::kNone) {
    return reason;
  }
  return CheckControl(control);
}

}  // namespace rocegw::wire
