// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/tombstones.h"

#include <utility>

namespace rocegw::worker {

void Tombstones::Keep(const transport::EndpointQueuePair& endpoint, TimePoint now) {
  std::unique_ptr<transport::EndpointTombstone> tombstone = endpoint.MakeTombstone();
  while (!kept_.empty() && (kept_.front().until < now || kept_.size() >= kMost)) kept_.pop_front();
  kept_.push_back({std::move(tombstone), now + transport::EndpointTombstone::kAge});
}

bool Tombstones::Answer(const flow::FrameRef& lost, wire::ChannelFrame& frame) const {
  for (const Tombstone& one : kept_)
    if (WorkerObject(one.endpoint->handle()) == lost.owner)
      return one.endpoint->Answer(lost, frame);
  return false;
}

}  // namespace rocegw::worker
