// SPDX-License-Identifier: Apache-2.0
// Tombstones of destroyed endpoints, which still answer for messages that had arrived: programs
// often exit as soon as they have got what they waited for. Belongs to one worker.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "gateway/flow/frame_ref.h"
#include "gateway/transport/endpoint/endpoint_queue_pair.h"
#include "gateway/transport/endpoint/endpoint_tombstone.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::worker {

class Tombstones {
 public:
  // Keeps what an endpoint that is about to be destroyed has to remember.
  void Keep(const transport::EndpointQueuePair& endpoint, TimePoint now);
  // Writes the answer that the lost frame carried. Returns false if nobody remembers it.
  bool Answer(const flow::FrameRef& lost, wire::ChannelFrame& frame) const;
  void HandOver(hand_over::StateStream& state);

 private:
  struct Tombstone {
    std::unique_ptr<transport::EndpointTombstone> endpoint;
    TimePoint until;
  };
  // Limit, because programs may create and destroy endpoints at any rate.
  static constexpr size_t kMost = 1024;

  std::deque<Tombstone> kept_;  // oldest in front
};

}  // namespace rocegw::worker
