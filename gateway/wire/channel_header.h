// SPDX-License-Identifier: Apache-2.0
// Extension headers of channels between gateways, behind BTH opcodes of the manufacturer range
// (0xC0 frame, 0xC1 acknowledgement, 0xC2 control): typed values, encode, decode. Bytes:
// docs/develop/wire_format.md. codec.h handles BTH and ICRC and leaves the extension at the front
// of RxPacket::payload, where these functions read it. Pure functions; lengths in bytes. Input from
// the network is validated here once: a decoded value has no field that its kind does not allow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/wire/headers.h"

namespace rocegw::wire {

inline constexpr uint8_t kChannelVersion = 1;
// Limit of channels between the same two workers, one per path.
inline constexpr uint32_t kMostPaths = 16;
inline constexpr size_t kFrameBaseLength = 32;
inline constexpr size_t kAddressedFrameLength = 48;  // base, address, key and one further word
inline constexpr size_t kMaxFrameLength = 64;        // atomics
inline constexpr size_t kChannelAckLength = 24;
inline constexpr size_t kChannelControlLength = 40;
// Fields behind the base of a control packet with kControlTagged: sequence number and tag.
inline constexpr size_t kSequenceLength = 8;
inline constexpr size_t kTagLength = 8;
// Field of a control packet with kControlSeals, between the base and the sequence number.
inline constexpr size_t kSaltLength = 16;
inline constexpr size_t kSealOfferLength = kSaltLength + 4;
inline constexpr size_t kMaxControlLength =
    kChannelControlLength + kSealOfferLength + kSequenceLength + kTagLength;
inline constexpr size_t kMaxBitmapWords = 128;
// Length of the BTH and the longest frame header that a payload may follow.
inline constexpr size_t kMaxPayloadHeaderLength = kBthLength + kAddressedFrameLength;
// Longest message (IBTA 9.7.2).
inline constexpr uint32_t kMaxMessageLength = 1u << 31;

enum class FrameKind : uint8_t {
  kVoid = 0,  // fills the PSN of a frame that is not needed any more; all fields 0
  kSend = 1,
  kWrite = 2,
  kReadRequest = 3,
  kReadResponse = 4,
  kCompareSwap = 5,
  kFetchAdd = 6,
  kAtomicResult = 7,
  kReply = 8,
  kFlush = 9,
  kAtomicWrite = 10,
  kFetchOperate = 11,  // swap, load, store, and, or, xor, subtract
  kCount,
};

// Operation of a frame of kind kFetchOperate on eight bytes; its result is their value before. The
// numbers stand on the wire.
enum class AtomicOperation : uint8_t {
  kNone = 0,  // frames of other kinds
  kSwap = 1,
  kLoad = 2,
  kStore = 3,
  kAnd = 4,
  kOr = 5,
  kXor = 6,
  kSubtract = 7,
  kCount,
};
const char* AtomicOperationName(AtomicOperation operation);

// Syndrome of a reply from an endpoint that takes nothing yet or does not exist; the low bits are
// an RNR timer code.
inline constexpr uint8_t kSyndromeNotReady = 0x40;

enum FrameFlag : uint8_t {
  kFrameImmediate = 1u << 0,
  kFrameSolicited = 1u << 1,
  kFrameLast = 1u << 2,     // set if and only if this frame ends its message
  kFrameOrdered = 1u << 3,  // with kFrameRelaxed the order of a message, see OrderOf
  kFrameAckNow = 1u << 4,
  // In a request: with kFrameOrdered its order. In a reply: it concerns that message alone.
  kFrameRelaxed = 1u << 5,
  kFrameInvalidate = 1u << 6,
  kFrameEndpoint =
      1u << 7,  // for an endpoint, from a sender that knows its key: `receive` is the key
};

// With kFrameEndpoint, of a SEND or WRITE of one frame: the sender wants no reply, whatever becomes
// of the message. Endpoints that do not know it reply, which does no harm.
inline constexpr uint8_t kFrameNoReply = kFrameOrdered;

// Time at which a message may take effect at the receiver. The order of verbs sets neither flag.
enum class MessageOrder : uint8_t {
  kStrong = 0,                // after all earlier messages except those of order kNone
  kAfterAll = kFrameOrdered,  // after all earlier messages
  kNone = kFrameRelaxed,      // at any time; no later message waits for it
  kRelaxed =
      kFrameOrdered | kFrameRelaxed,  // at any time; later messages of strong order wait for it
};
constexpr MessageOrder OrderOf(uint8_t flags) {
  return static_cast<MessageOrder>(flags & (kFrameOrdered | kFrameRelaxed));
}

struct ChannelFrame {
  FrameKind kind = FrameKind::kVoid;
  uint8_t flags = 0;
  uint16_t epoch = 0;    // low 16 bits of the receiver's epoch
  uint32_t tenant = 0;   // tag of the tenant (tenant/tag.h)
  Qpn destination;       // endpoint
  Qpn source;            // endpoint
  uint8_t syndrome = 0;  // reply: as in an AETH, or kSyndromeNotReady
  // Counts how often the sender's queue pair was told to send its messages again. A reply that asks
  // for it carries the next number.
  uint8_t attempt = 0;
  uint32_t message = 0;  // message number; in responses that of the request
  uint32_t offset = 0;   // offset of the payload in its message
  // Length of the message; READ request and FLUSH: requested bytes; atomics and reply: 0.
  uint32_t length = 0;
  // Number of the receive that a SEND or WRITE with immediate takes at the endpoint; with
  // kFrameEndpoint the endpoint's key.
  uint32_t receive = 0;
  // Fields of WRITE, READ request, atomics, FLUSH and ATOMIC WRITE.
  uint64_t address = 0;  // address of the message's first byte
  uint32_t rkey = 0;
  // Fields of SEND and WRITE, by flag.
  uint32_t immediate = 0;  // opaque: the bytes in wire order
  uint32_t invalidate_rkey = 0;
  uint32_t feth = 0;  // FLUSH
  // Fields of atomics and their result.
  AtomicOperation operation = AtomicOperation::kNone;  // kFetchOperate
  uint64_t swap_or_add = 0;                            // or operand
  uint64_t compare = 0;
  uint64_t original = 0;

  bool has(FrameFlag flag) const { return (flags & flag) != 0; }
  // Returns true for a reply that says that the endpoint is not ready or does not exist.
  bool not_ready() const {
    return kind == FrameKind::kReply && (syndrome & 0x60) == kSyndromeNotReady;
  }
};

// Contents of an acknowledgement. The next PSN expected in order is in the BTH.
struct ChannelAck {
  uint16_t epoch = 0;         // low 16 bits of the receiver's epoch
  uint32_t marked_bytes = 0;  // running count of payload bytes in packets with CE, mod 2^32
  uint8_t hint = 0;           // congestion hint
  uint32_t room = 0;          // packets accepted beyond the BTH's PSN; 24 bits
  uint32_t held_ns = 0;       // time between the newest arrival and this acknowledgement
  uint32_t probe = 0;         // number of the probe answered; 0: none
  uint16_t words = 0;         // number of used words of `bitmap`
  uint8_t duplicates = 0;     // running count of duplicate packets, mod 2^8
  // Bitmap of arrived packets: bit k (bit 0 is the least significant of word 0) stands for the PSN
  // k + 1 behind the BTH's. Words from `words` on are undefined.
  std::array<uint32_t, kMaxBitmapWords> bitmap;

  std::span<const uint32_t> arrived() const { return {bitmap.data(), words}; }
};

enum class ControlKind : uint8_t {
  kOpen = 0,
  kOpened = 1,
  kRefused = 2,
  kProbe = 3,
  kClose = 4,
  kClosed = 5,
  kReset = 6,  // stateless answer to a packet for an unknown channel
  kRetry = 7,  // stateless answer to an opening whose sender must first prove its address
  kCount,
};

// Reason why a channel was refused, reset or closed.
enum class ChannelReason : uint8_t {
  kNone = 0,
  kNotAllowed = 1,      // forbidden by policy or tenant
  kNoResources = 2,     // a limit of the gateway
  kUnsupported = 3,     // feature, congestion control or checksum mode
  kUnknownChannel = 4,  // no channel has this number
  kStaleEpoch = 5,      // the number belongs to another instance
  kIdle = 6,            // unused for a long time
  kShutdown = 7,        // the gateway stops or drains
  kPathFailed = 8,      // no packets arrive
  kProtocolError = 9,   // the peer violated the protocol
  kCount,
};
const char* ChannelReasonName(ChannelReason reason);

enum ControlFlag : uint8_t {
  kControlTagged = 1u << 0,  // sequence number and tag follow (authentication.h)
  kControlSeals = 1u << 1,   // a seal offer follows; only with a tag, in open and opened
};

// Part of an opening or of its answer by which both ends make the keys of the channel's frames.
struct SealOffer {
  std::array<uint8_t, kSaltLength> salt{};  // random, drawn for this channel
  bool encrypts = false;                    // the sender wants encryption
  bool operator==(const SealOffer&) const = default;
};

struct ChannelControl {
  ControlKind kind = ControlKind::kOpen;
  ChannelReason reason = ChannelReason::kNone;  // set in refused, reset and close
  uint32_t channel = 0;     // sender's channel number; refused, retry: 0; reset: the unknown number
  uint32_t epoch = 0;       // full epoch of the sender; retry: cookie, never 0
  uint32_t peer_epoch = 0;  // the receiver's epoch as the sender knows it; open: 0, or the cookie
                            // of a retry. Its low half is also the 16-bit epoch at the front of the
                            // extension
  uint32_t probe = 0;       // probe: probe number, never 0
  uint32_t instance = 0;    // random, new at every start of the gateway
  // Set in open and opened only, else 0.
  Psn initial_psn;            // first PSN that the sender of this packet will use
  uint8_t traffic_class = 0;  // DSCP and ECN
  uint32_t window = 0;        // packets that the sender accepts ahead; 24 bits, at least 1
  uint8_t path = 0;           // path index
  uint32_t features = 0;      // wire::GatewayOption bits
  uint8_t cc_kind = 0;        // congestion control kind, numbered as in flow
  uint8_t checksum_mode = 0;
  uint16_t worker = 0;  // index of the sender's worker
  // Set with a tag only, else 0. `tag` is the received one; SealControl computes the one to send.
  bool tagged = false;
  uint64_t sequence = 0;  // number of the tagged control packet, counted per sending worker from 1
  uint64_t tag = 0;
  bool seals = false;  // `seal` is set
  SealOffer seal;
};

// Returns the length of a kind's header behind the BTH; a SEND's depends on its flags.
size_t FrameLength(FrameKind kind, uint8_t flags);

// Returns kNone if a frame with `payload` bytes is valid on the wire.
[[nodiscard]] metrics::DropReason ValidateFrame(const ChannelFrame& frame, size_t payload);

// Write the bytes behind the BTH at `out` (space for kMaxFrameLength; kChannelAckLength and four
// per word; kMaxControlLength). Return the length, a multiple of four. Valid values decode to
// themselves.
size_t EncodeFrame(const ChannelFrame& frame, uint8_t* out);
// Adds flags to an encoded frame and sets the receiver's epoch.
void StampFrame(uint8_t* frame, uint8_t flags, uint16_t epoch);
size_t EncodeAck(const ChannelAck& ack, uint8_t* out);
size_t EncodeControl(const ChannelControl& control, uint8_t* out);

// Decode the bytes between BTH and pad. Return kNone, or the reason for which the packet is
// dropped; values are complete only with kNone. `payload` is the part of `body` behind the header.
[[nodiscard]] metrics::DropReason DecodeFrame(std::span<const uint8_t> body, ChannelFrame& frame,
                                              std::span<const uint8_t>& payload);
[[nodiscard]] metrics::DropReason DecodeAck(std::span<const uint8_t> body, ChannelAck& ack);
[[nodiscard]] metrics::DropReason DecodeControl(std::span<const uint8_t> body,
                                                ChannelControl& control);

}  // namespace rocegw::wire
