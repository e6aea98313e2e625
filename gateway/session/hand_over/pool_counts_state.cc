// SPDX-License-Identifier: Apache-2.0
// Counts of pools for a gateway that takes over (gateway/hand_over/state_stream.h), so that no
// counter jumps back.
#include <string>
#include <string_view>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "gateway/session/hand_over/objects_state.h"
#include "gateway/session/session_server.h"

namespace rocegw::session {

using hand_over::StateStream;
using metrics::DurationHistogram;

namespace {

constexpr uint32_t kMostPools = 1u << 16;
constexpr uint32_t kMostLimits = 256;

void HandOver(StateStream& state, DurationHistogram& histogram) {
  auto buckets = histogram.counts();
  uint64_t count = histogram.count();
  int64_t sum_ns = histogram.sum_ns();
  for (uint64_t& bucket : buckets) state(bucket);
  state(count, sum_ns);
  if (state.reading()) histogram = DurationHistogram(buckets, count, sum_ns);
}

// Limits go by name: the reader may have others, and skips those that it does not know.
void HandOverRefused(StateStream& state, std::array<uint64_t, tenant::kLimits>& refused) {
  const uint32_t count = state.Count(refused.size(), kMostLimits);
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    std::string name(state.reading() ? std::string_view() : tenant::LimitName(i));
    HandOverText(state, name);
    const uint64_t value = state.Carry(state.reading() ? 0 : refused[i]);
    for (size_t limit = 0; limit < tenant::kLimits; ++limit)
      if (state.reading() && tenant::LimitName(limit) == name) refused[limit] = value;
  }
}

void HandOver(StateStream& state, tenant::PoolCounts& counts) {
  auto& [refused, peers, identities, bounds, attaches, sent_bytes, sent_packets, set_up,
         operations] = counts;
  HandOverRefused(state, refused);
  state(peers, identities, bounds, sent_bytes, sent_packets);
  for (uint64_t& attach : attaches) state(attach);
  HandOver(state, set_up);
  HandOver(state, operations);
}

}  // namespace

// Pools that leave have no name to be found by. A pool that the reader does not have was removed.
void SessionServer::HandOverPoolCounts(StateStream& state) {
  std::vector<std::string> names;
  services_.pools.ForEachPool([&](const tenant::Pool& pool) {
    if (!pool.leaving()) names.push_back(pool.name());
  });
  const uint32_t count = state.Count(names.size(), kMostPools);
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    std::string name = state.reading() ? std::string() : names[i];
    HandOverText(state, name);
    tenant::Pool* const pool = services_.pools.FindPool(name);
    const auto reserve = pool == nullptr ? nullptr : reserves_.Of(*pool);
    tenant::PoolCounts counts;
    uint64_t hits = 0;
    uint64_t misses = 0;
    if (!state.reading() && pool != nullptr) counts = pool->counts();
    if (!state.reading() && reserve != nullptr) {
      hits = reserve->hits();
      misses = reserve->misses();
    }
    HandOver(state, counts);
    state(hits, misses);
    if (!state.reading() || !state.ok()) continue;
    if (pool != nullptr) pool->AddCounts(counts);
    if (reserve != nullptr) reserve->AddCounts(hits, misses);
  }
}

}  // namespace rocegw::session
