// SPDX-License-Identifier: Apache-2.0
// The extension headers of channels between gateways, behind BTH opcodes of the manufacturer range
// (0xC0 frame, 0xC1 acknowledgement, 0xC2 control): typed values, encode, decode. Byte by byte in
// docs/develop/wire_format.md. codec.h handles the BTH and the ICRC and leaves the extension at the
// front of RxPacket::payload; the functions here take it from there. Pure functions; lengths in
// bytes. Foreign input is validated here once: what decodes has no field that its kind does not
// allow.
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
// Channels side by side between the same two workers.
inline constexpr uint32_t kMostPaths = 16;
inline constexpr size_t kFrameBaseLength = 32;
inline constexpr size_t kAddressedFrameLength = 48;  // base, address, key and one word more
inline constexpr size_t kMaxFrameLength = 64;        // compare-swap and fetch-add
inline constexpr size_t kChannelAckLength = 24;
inline constexpr size_t kChannelControlLength = 40;
// Behind it, of a control packet with kControlTagged: sequence and tag.
inline constexpr size_t kSequenceLength = 8;
inline constexpr size_t kTagLength = 8;
inline constexpr size_t kMaxControlLength = kChannelControlLength + kSequenceLength + kTagLength;
inline constexpr size_t kMaxBitmapWords = 128;
// BTH and the longest header of a frame that a payload may follow.
inline constexpr size_t kMaxPayloadHeaderLength = kBthLength + kAddressedFrameLength;
// No message is longer (IBTA 9.7.2).
inline constexpr uint32_t kMaxMessageLength = 1u << 31;

enum class FrameKind : uint8_t {
  kVoid = 0,  // fills a PSN whose sender is gone; all fields 0
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
  kCount,
};

// A reply: the endpoint takes nothing yet, or is not there; | timer code as of a receiver that is
// not ready.
inline constexpr uint8_t kSyndromeNotReady = 0x40;

enum FrameFlag : uint8_t {
  kFrameImmediate = 1u << 0,
  kFrameSolicited = 1u << 1,
  kFrameLast = 1u << 2,     // set exactly when this frame ends its message
  kFrameOrdered = 1u << 3,  // with kFrameRelaxed the order of a message, see OrderOf
  kFrameAckNow = 1u << 4,
  // A request: with kFrameOrdered its order. A reply: speaks of that message alone.
  kFrameRelaxed = 1u << 5,
  kFrameInvalidate = 1u << 6,
  kFrameEndpoint = 1u << 7,  // for an endpoint, by whoever knows its key: `receive` is the key
};

// When a message may take effect at the receiver. The order of verbs has neither flag.
enum class MessageOrder : uint8_t {
  kStrong = 0,                               // after all before it but those of order kNone
  kAfterAll = kFrameOrdered,                 // after all before it
  kNone = kFrameRelaxed,                     // at any time; nobody waits for it
  kRelaxed = kFrameOrdered | kFrameRelaxed,  // at any time; those of strong order wait for it
};
constexpr MessageOrder OrderOf(uint8_t flags) {
  return static_cast<MessageOrder>(flags & (kFrameOrdered | kFrameRelaxed));
}

struct ChannelFrame {
  FrameKind kind = FrameKind::kVoid;
  uint8_t flags = 0;
  uint16_t epoch = 0;    // low 16 bits of the receiver's epoch
  uint32_t tenant = 0;   // tag
  Qpn destination;       // endpoint
  Qpn source;            // endpoint
  uint8_t syndrome = 0;  // reply: as in an AETH, or kSyndromeNotReady
  // Counts how often the sender's queue pair was told to offer its messages again; a reply that
  // tells so names the next.
  uint8_t attempt = 0;
  uint32_t message = 0;  // number; reply, READ response, atomic result: of the request answered
  uint32_t offset = 0;   // of the payload in its message
  // Of the message; READ request and FLUSH: what is asked for; atomics, reply: 0.
  uint32_t length = 0;
  // Which receive of the endpoint a SEND or WRITE with immediate takes; with kFrameEndpoint its
  // key.
  uint32_t receive = 0;
  // WRITE, READ request, atomics, FLUSH, ATOMIC WRITE.
  uint64_t address = 0;  // of the message's first byte
  uint32_t rkey = 0;
  // SEND and WRITE with their flags.
  uint32_t immediate = 0;  // opaque: the bytes as they lie on the wire
  uint32_t invalidate_rkey = 0;
  uint32_t feth = 0;  // FLUSH
  // Atomics and their result.
  uint64_t swap_or_add = 0;
  uint64_t compare = 0;
  uint64_t original = 0;

  bool has(FrameFlag flag) const { return (flags & flag) != 0; }
  // A reply of nobody's: the endpoint is not there.
  bool not_ready() const {
    return kind == FrameKind::kReply && (syndrome & 0x60) == kSyndromeNotReady;
  }
};

// What an acknowledgement says; the next PSN expected in order is the BTH's.
struct ChannelAck {
  uint16_t epoch = 0;         // low 16 bits of the receiver's epoch
  uint32_t marked_bytes = 0;  // running count of payload bytes that came with CE, mod 2^32
  uint8_t hint = 0;           // congestion hint
  uint32_t room = 0;          // packets beyond the BTH's PSN that are taken; 24 bits
  uint32_t held_ns = 0;       // between the newest arrival and this acknowledgement
  uint32_t probe = 0;         // number of the probe answered; 0: none
  uint16_t words = 0;         // of `bitmap` that are used
  uint8_t duplicates = 0;     // running count of packets that came again, mod 2^8
  // Bit k (bit 0 the least significant of word 0): the PSN k + 1 behind the BTH's has arrived.
  // Words beyond `words` hold anything.
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
  kReset = 6,  // stateless answer to a packet for a channel that is not known
  kCount,
};

// Why a channel was refused, reset or closed.
enum class ChannelReason : uint8_t {
  kNone = 0,
  kNotAllowed = 1,      // by policy or tenant
  kNoResources = 2,     // a limit of the gateway
  kUnsupported = 3,     // feature, congestion control or checksum mode
  kUnknownChannel = 4,  // no channel has this number
  kStaleEpoch = 5,      // the number belongs to another incarnation
  kIdle = 6,            // unused for long
  kShutdown = 7,        // the gateway stops or drains
  kPathFailed = 8,      // nothing comes through
  kProtocolError = 9,   // the peer sent what it must not
  kCount,
};
const char* ChannelReasonName(ChannelReason reason);

enum ControlFlag : uint8_t {
  kControlTagged = 1u << 0,  // sequence and tag follow (authentication.h)
};

struct ChannelControl {
  ControlKind kind = ControlKind::kOpen;
  ChannelReason reason = ChannelReason::kNone;  // refused, reset, close
  uint32_t channel = 0;                         // sender's number; refused: 0; reset: the unknown
  uint32_t epoch = 0;                           // the sender's, all of it
  uint32_t peer_epoch = 0;  // the receiver's as the sender knows it; open: 0. Its low half is also
                            // the 16-bit epoch at the front of the extension
  uint32_t probe = 0;       // probe: its number, never 0
  uint32_t instance = 0;    // random, new with every start of the gateway
  // Open and opened only, else 0.
  Psn initial_psn;            // the first that the sender of this packet will use
  uint8_t traffic_class = 0;  // DSCP and ECN
  uint32_t window = 0;        // packets that the sender takes; 24 bits, at least 1
  uint8_t path = 0;           // index
  uint32_t features = 0;      // bits
  uint8_t cc_kind = 0;        // congestion control, as numbered by flow
  uint8_t checksum_mode = 0;
  uint16_t worker = 0;  // index of the sender's
  // With a tag only, else 0. The tag is that of the packet it came with; SealControl makes another.
  bool tagged = false;
  uint64_t sequence = 0;  // counts the tagged control packets of the sender's worker, from 1 on
  uint64_t tag = 0;
};

// Bytes of a kind's header behind the BTH; a SEND's depends on its flags.
size_t FrameLength(FrameKind kind, uint8_t flags);

// kNone when a frame with `payload` bytes is one that may be on the wire.
[[nodiscard]] metrics::DropReason ValidateFrame(const ChannelFrame& frame, size_t payload);

// Each writes the bytes behind the BTH at `out` (room for kMaxFrameLength, kChannelAckLength and
// four per word, kMaxControlLength) and returns their number, a multiple of four. What is
// written decodes when the values are valid.
size_t EncodeFrame(const ChannelFrame& frame, uint8_t* out);
// In one that is written: these flags on top, and for a receiver of that epoch.
void StampFrame(uint8_t* frame, uint8_t flags, uint16_t epoch);
size_t EncodeAck(const ChannelAck& ack, uint8_t* out);
size_t EncodeControl(const ChannelControl& control, uint8_t* out);

// From what is between BTH and pad. kNone, or the one reason for which the packet is dropped; the
// values are complete only with kNone. `payload` is the rest of `body`, behind the header.
[[nodiscard]] metrics::DropReason DecodeFrame(std::span<const uint8_t> body, ChannelFrame& frame,
                                              std::span<const uint8_t>& payload);
[[nodiscard]] metrics::DropReason DecodeAck(std::span<const uint8_t> body, ChannelAck& ack);
[[nodiscard]] metrics::DropReason DecodeControl(std::span<const uint8_t> body,
                                                ChannelControl& control);

}  // namespace rocegw::wire
