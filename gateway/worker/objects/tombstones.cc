// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/tombstones.h"

#include <iterator>
#include <utility>

namespace rocegw::worker {
namespace {

// A handle as the owner of a frame, which has fewer bits of it.
uint64_t KeyOf(WorkerObject owner) {
  return uint64_t{owner.slot().index} << 32 | owner.slot().generation;
}

}  // namespace

void Tombstones::Keep(const transport::EndpointQueuePair& endpoint, const tenant::Share* pool,
                      TimePoint now) {
  for (auto at = pools_.begin(); at != pools_.end();) {
    Pool& one = at->second;
    while (!one.kept.empty() && one.kept.front().until < now) DropOldest(one);
    at = one.kept.empty() ? pools_.erase(at) : std::next(at);
  }
  Add(pool, {endpoint.MakeTombstone(), now + transport::EndpointTombstone::kAge});
}

void Tombstones::Add(const tenant::Share* pool, Tombstone tombstone) {
  Pool& of = pools_[pool];
  of.results += tombstone.endpoint->results();
  by_handle_[KeyOf(tombstone.endpoint->handle())] = tombstone.endpoint.get();
  of.kept.push_back(std::move(tombstone));
  while (of.kept.size() > kMostOfPool || (of.results > kMostResultsOfPool && of.kept.size() > 1))
    DropOldest(of);
}

void Tombstones::DropOldest(Pool& pool) {
  const transport::EndpointTombstone& oldest = *pool.kept.front().endpoint;
  pool.results -= oldest.results();
  const auto known = by_handle_.find(KeyOf(oldest.handle()));
  if (known != by_handle_.end() && known->second == &oldest) by_handle_.erase(known);
  pool.kept.pop_front();
}

bool Tombstones::Answer(const flow::FrameRef& lost, wire::ChannelFrame& frame) const {
  if (lost.owner.kind() != WorkerObject::Kind::kQueuePair) return false;
  const auto known = by_handle_.find(KeyOf(lost.owner));
  return known != by_handle_.end() && known->second->Answer(lost, frame);
}

}  // namespace rocegw::worker
