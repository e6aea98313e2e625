// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message/incoming_message.h"

#include <algorithm>

namespace rocegw::transport {
namespace {

uint32_t KeyIn(const wire::ChannelFrame& frame) {
  return frame.has(wire::kFrameInvalidate) ? frame.invalidate_rkey : frame.rkey;
}

// Returns the contents of `immediate`.
uint32_t WordIn(const wire::ChannelFrame& frame) {
  if (frame.kind == wire::FrameKind::kFlush) return frame.feth;
  if (frame.kind == wire::FrameKind::kFetchOperate) return static_cast<uint32_t>(frame.operation);
  return frame.immediate;
}

}  // namespace

void IncomingMessage::Begin(const wire::ChannelFrame& frame) {
  kind = frame.kind;
  // kFrameLast belongs to a frame, not to the message.
  flags = frame.flags & static_cast<uint8_t>(~wire::kFrameLast);
  length = frame.length;
  receive = taken = frame.receive;
  immediate = WordIn(frame);
  rkey = KeyIn(frame);
  address = frame.address;
  swap_or_add = frame.swap_or_add;
  compare = frame.compare;
}

bool IncomingMessage::Fits(const wire::ChannelFrame& frame) const {
  return kind == frame.kind && length == frame.length && receive == frame.receive &&
         rkey == KeyIn(frame) && invalidates() == frame.has(wire::kFrameInvalidate) &&
         address == frame.address;
}

void IncomingMessage::AddPlaced(uint32_t begin, uint32_t end) {
  if (begin == prefix) {
    prefix = end;
    std::erase_if(islands, [this](const ByteRange& island) {
      if (island.begin > prefix) return false;
      prefix = std::max(prefix, static_cast<uint32_t>(island.end));
      return true;
    });
    return;
  }
  for (ByteRange& island : islands) {
    if (island.end == begin) {
      island.end = end;
      return;
    }
  }
  // Sorted by begin, so that one pass from the front finds the ranges that a growing prefix
  // reaches.
  const auto at = std::lower_bound(islands.begin(), islands.end(), begin,
                                   [](const ByteRange& a, uint32_t b) { return a.begin < b; });
  islands.insert(at, {begin, end});
}

void IncomingMessage::Subtract(std::vector<ByteRange>& pieces) const {
  if (kind != wire::FrameKind::kWrite) return;
  const auto take = [&](uint64_t begin, uint64_t end) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      ByteRange& piece = pieces[i];
      if (end <= piece.begin || piece.end <= begin) continue;
      const ByteRange behind{std::max(end, piece.begin), piece.end};
      piece.end = std::min(piece.end, std::max(begin, piece.begin));
      if (!behind.empty()) pieces.push_back(behind);
    }
    std::erase_if(pieces, [](const ByteRange& piece) { return piece.empty(); });
  };
  if (prefix != 0) take(local, local + prefix);
  for (const ByteRange& island : islands) take(local + island.begin, local + island.end);
}

}  // namespace rocegw::transport
