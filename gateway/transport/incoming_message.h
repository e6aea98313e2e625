// SPDX-License-Identifier: Apache-2.0
// A message that arrives on a channel, frame by frame in any order, until all before it are done
// and it is whole. Which bytes of a WRITE are in place is known exactly: an earlier WRITE whose
// frames come late must not overwrite what a later one has put there. Belongs to its responder.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/verbs/types.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

// Bytes [begin, end).
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool empty() const { return begin >= end; }
};

struct IncomingMessage {
  // Visible last, since programs poll on it.
  static constexpr uint32_t kTail = 8;

  wire::FrameKind kind = wire::FrameKind::kVoid;  // kVoid: no frame of it has come
  uint8_t flags = 0;
  bool refused = false;  // a frame was not taken: the message must be offered again
  bool done = false;     // has taken effect, ahead of its turn
  bool in_ring = false;  // a SEND that lies in the receive's payload slot
  uint8_t nak = 0;       // code that it will be answered with, when it is its turn
  verbs::WcStatus receive_status = verbs::WcStatus::kSuccess;  // of its receive, with a nak
  uint32_t length = 0;
  uint32_t arrived = 0;  // payload bytes
  uint32_t receive = 0;  // as its frames name it
  // The receive that it fills: that one, or of a shared queue any, from has_taken on.
  uint32_t taken = 0;
  bool has_taken = false;
  uint32_t immediate = 0;  // or FETH of a FLUSH
  uint32_t rkey = 0;       // of a SEND: what it invalidates
  uint64_t address = 0;
  uint64_t local = 0;        // of a WRITE: where its first byte goes, in the client's address space
  uint64_t swap_or_add = 0;  // or what an ATOMIC WRITE writes
  uint64_t compare = 0;
  uint8_t tail_length = 0;  // of a WRITE: bytes held back until the message's turn
  uint64_t tail = 0;
  uint32_t prefix = 0;             // of a WRITE: offsets [0, prefix) are placed
  std::vector<ByteRange> islands;  // and these, apart from each other and from the prefix

  bool seen() const { return kind != wire::FrameKind::kVoid; }
  wire::MessageOrder order() const { return wire::OrderOf(flags); }
  bool invalidates() const { return (flags & wire::kFrameInvalidate) != 0; }
  bool carries_payload() const {
    return kind == wire::FrameKind::kSend || kind == wire::FrameKind::kWrite;
  }
  bool is_placement() const {
    return kind == wire::FrameKind::kFlush || kind == wire::FrameKind::kAtomicWrite;
  }
  // A reply says that it has taken effect; READs and atomics have answers of their own.
  bool has_reply() const { return carries_payload() || is_placement(); }
  bool whole() const { return seen() && (!carries_payload() || arrived == length); }
  bool takes_receive() const {
    return kind == wire::FrameKind::kSend ||
           (kind == wire::FrameKind::kWrite && (flags & wire::kFrameImmediate) != 0);
  }

  void Begin(const wire::ChannelFrame& frame);
  // Does a later frame tell the same?
  bool Fits(const wire::ChannelFrame& frame) const;
  // Offsets [begin, end) of a WRITE are placed.
  void AddPlaced(uint32_t begin, uint32_t end);
  // Takes from `pieces`, addresses of the client, what this WRITE has placed there.
  void Subtract(std::vector<ByteRange>& pieces) const;
};

}  // namespace rocegw::transport
