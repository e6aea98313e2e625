// SPDX-License-Identifier: Apache-2.0
// Channel references: the channels of this worker that the queue pairs of each pool use. A pool
// holds a reference to a channel from its first queue pair there to its last. Each reference counts
// once against the pool's quota (Resource::kChannels), however many queue pairs share it. Endpoints
// use a channel for one message at a time; for them the pool keeps the reference until the channel
// closes or its last endpoint is destroyed. Channels that peers opened and that only carry answers
// do not count. Belongs to one worker; quotas are shared with others.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/tenant/share.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::worker {

struct WorkerSession;

class ChannelReferences {
 public:
  using Pool = tenant::Share*;  // nullptr: no pool, not counted
  using Slot = uint32_t;        // slot of a channel

  // A pool is known between AddSession and RemoveSession.
  void AddSession(Pool pool) { ++pools_[pool].sessions; }
  void RemoveSession(Pool pool);
  void AddEndpoint(Pool pool) { ++pools_[pool].endpoints; }
  void RemoveEndpoint(Pool pool);

  bool Has(Pool pool, Slot channel) const;
  // Charges the quota before a pool's first reference to a channel. nullptr: granted; Begin or
  // GiveBack must follow. Otherwise returns the node whose limit is reached and counts the refusal.
  const tenant::QuotaNode* Take(Pool pool);
  static void GiveBack(Pool pool);
  // Add a queue pair, or endpoints, to the pool's reference to the channel.
  void Begin(Pool pool, Slot channel) { ++ReferenceOf(pool, channel).queue_pairs; }
  void BeginForEndpoints(Pool pool, Slot channel) {
    ReferenceOf(pool, channel).by_endpoints = true;
  }
  // Removes a queue pair from the reference.
  void End(Pool pool, Slot channel);
  // Drops all references to the channel. Its queue pairs have released it before.
  void OnChannelGone(Slot channel);

  // Charges the quota for a reference that the gateway before this one had, whatever the limits are
  // now. Begin or BeginForEndpoints must follow.
  void Adopt(Pool pool, Slot channel);
  void HandOver(hand_over::StateStream& state, std::span<WorkerSession* const> of_pools);

  // Returns true if a refusal is to be reported now: at most once a second for each pool.
  bool ReportsNow(Pool pool, TimePoint now);

 private:
  struct Reference {
    Pool pool = nullptr;
    uint32_t queue_pairs = 0;
    bool by_endpoints = false;

    bool unused() const { return queue_pairs == 0 && !by_endpoints; }
  };
  struct OfPool {
    uint32_t sessions = 0;
    uint32_t endpoints = 0;
    TimePoint report_again;
  };

  Reference& ReferenceOf(Pool pool, Slot channel);
  // Removes unused references.
  static void Sweep(std::vector<Reference>& references);

  std::vector<std::vector<Reference>> by_channel_;  // keeps its capacity
  std::unordered_map<Pool, OfPool> pools_;
};

}  // namespace rocegw::worker
