// SPDX-License-Identifier: Apache-2.0
// Tombstones of destroyed endpoints, which still answer for messages that had arrived: programs
// often exit as soon as they have got what they waited for. Each pool has a share of its own.
// Belongs to one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "gateway/flow/frame_ref.h"
#include "gateway/transport/endpoint/endpoint_queue_pair.h"
#include "gateway/transport/endpoint/endpoint_tombstone.h"

namespace rocegw::hand_over {
class StateStream;
}
namespace rocegw::tenant {
class Share;
}

namespace rocegw::worker {

class Tombstones {
 public:
  // Limits of one pool, because programs may create and destroy endpoints at any rate. Beyond them
  // the pool's oldest are dropped.
  static constexpr size_t kMostOfPool = 1024;
  static constexpr size_t kMostResultsOfPool = 4096;

  // Keeps what an endpoint of the pool that is about to be destroyed has to remember.
  void Keep(const transport::EndpointQueuePair& endpoint, const tenant::Share* pool, TimePoint now);
  // Writes the answer that the lost frame carried. Returns false if nobody remembers it.
  bool Answer(const flow::FrameRef& lost, wire::ChannelFrame& frame) const;
  size_t size() const { return by_handle_.size(); }
  void HandOver(hand_over::StateStream& state);

 private:
  struct Tombstone {
    std::unique_ptr<transport::EndpointTombstone> endpoint;
    TimePoint until;
  };
  struct Pool {
    std::deque<Tombstone> kept;  // oldest in front
    size_t results = 0;
  };

  void Add(const tenant::Share* pool, Tombstone tombstone);
  void DropOldest(Pool& pool);

  // The pools are only compared, since one may have been closed.
  std::map<const tenant::Share*, Pool> pools_;
  std::unordered_map<uint64_t, const transport::EndpointTombstone*> by_handle_;
};

}  // namespace rocegw::worker
