// SPDX-License-Identifier: Apache-2.0
// A message that arrives on a channel, frame by frame in any order. The state lives until the
// message is whole and all earlier messages took effect. Belongs to its responder.
#pragma once

#include <cstdint>

#include "gateway/verbs/types.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

struct IncomingMessage {
  // Number of last bytes of a WRITE that are written when the message takes effect: programs poll
  // on them.
  static constexpr uint32_t kTail = 8;

  wire::FrameKind kind = wire::FrameKind::kVoid;  // kVoid: no frame has arrived
  uint8_t flags = 0;
  bool refused = false;  // a frame was dropped: the message must be offered again
  bool done = false;     // took effect, ahead of older messages
  bool in_ring = false;  // a SEND whose payload lies in the receive's slot of the ring
  uint8_t nak = 0;       // NAK code to answer with when the message takes effect; 0: none
  // Completion status of its receive, if `nak` is set.
  verbs::WcStatus receive_status = verbs::WcStatus::kSuccess;
  uint32_t length = 0;
  uint32_t arrived = 0;  // payload bytes
  uint32_t receive = 0;  // receive number in its frames
  // Number of the receive that the message fills, valid if `has_taken`. It differs from `receive`
  // on a shared receive queue, where the message takes the next posted receive.
  uint32_t taken = 0;
  bool has_taken = false;
  uint32_t immediate = 0;  // or FETH of a FLUSH, wire::AtomicOperation of kFetchOperate
  uint32_t rkey = 0;       // SEND: the key to invalidate
  uint64_t address = 0;
  uint64_t local = 0;        // WRITE: address of its first byte in the client's address space
  uint64_t swap_or_add = 0;  // or the data of an ATOMIC WRITE
  uint64_t compare = 0;
  // WRITE: number of bytes in `tail`, held back until the message takes effect.
  uint8_t tail_length = 0;
  uint64_t tail = 0;

  bool seen() const { return kind != wire::FrameKind::kVoid; }
  wire::MessageOrder order() const { return wire::OrderOf(flags); }
  bool invalidates() const { return (flags & wire::kFrameInvalidate) != 0; }
  bool carries_payload() const {
    return kind == wire::FrameKind::kSend || kind == wire::FrameKind::kWrite;
  }
  bool is_placement() const {
    return kind == wire::FrameKind::kFlush || kind == wire::FrameKind::kAtomicWrite;
  }
  // Returns true if a reply reports the message's effect. READs and atomics have responses of their
  // own.
  bool has_reply() const { return carries_payload() || is_placement(); }
  bool whole() const { return seen() && (!carries_payload() || arrived == length); }
  bool takes_receive() const {
    return kind == wire::FrameKind::kSend ||
           (kind == wire::FrameKind::kWrite && (flags & wire::kFrameImmediate) != 0);
  }

  void Begin(const wire::ChannelFrame& frame);
  // Returns true if the headers of a later frame agree with the message.
  bool Fits(const wire::ChannelFrame& frame) const;
};

}  // namespace rocegw::transport
