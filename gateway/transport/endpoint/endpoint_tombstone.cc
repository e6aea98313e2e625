// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/endpoint/endpoint_tombstone.h"

#include "gateway/transport/endpoint/endpoint_replies.h"
#include "gateway/transport/message/frame_packet.h"

namespace rocegw::transport {

using wire::FrameKind;

bool EndpointTombstone::Answer(const flow::FrameRef& lost, wire::ChannelFrame& frame) const {
  if (lost.owner != handle_ || !IsOfConnection(connection_, lost)) return false;
  if (FrameKindOf(lost) == FrameKind::kReply) {
    frame = EndpointReplies::ReplyOf(lost, number_, group_);
  } else {
    const auto found = results_.find(lost.message);
    if (FrameKindOf(lost) != FrameKind::kAtomicResult || found == results_.end()) return false;
    const Result& result = found->second;
    frame = {.kind = FrameKind::kAtomicResult,
             .flags = wire::kFrameLast,
             .destination = result.to,
             .source = result.as,
             .message = result.message,
             .original = result.original};
  }
  frame.tenant = tenant_;
  return true;
}

}  // namespace rocegw::transport
