// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message/incoming_message.h"

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

}  // namespace rocegw::transport
