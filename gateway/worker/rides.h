// SPDX-License-Identifier: Apache-2.0
// Which channels of this worker the queue pairs of each pool leave by. A pool rides on a channel
// from its first queue pair there to its last, and each such ride is one of the pool's quota
// (Resource::kChannels), however many queue pairs share it. Endpoints leave by a channel for one
// message at a time, and come back: for them a pool rides on until the channel is gone, or its last
// endpoint is. What peers bring by channels of their own choice is no ride. Belongs to one worker;
// quotas are shared with others.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/tenant/share.h"

namespace rocegw::worker {

class Rides {
 public:
  using Pool = tenant::Share*;  // nullptr: of no pool, nobody counts
  using Slot = uint32_t;        // of a channel

  // Between these two a pool is known.
  void AddSession(Pool pool) { ++pools_[pool].sessions; }
  void RemoveSession(Pool pool);
  void AddEndpoint(Pool pool) { ++pools_[pool].endpoints; }
  void RemoveEndpoint(Pool pool);

  bool Has(Pool pool, Slot channel) const;
  // Before the first ride of a pool on a channel. nullptr: granted, and Begin follows or GiveBack.
  // Else whose limit is reached; counted.
  const tenant::QuotaNode* Take(Pool pool);
  static void GiveBack(Pool pool);
  // A queue pair rides there from now on, or endpoints do.
  void Begin(Pool pool, Slot channel) { ++RideOf(pool, channel).queue_pairs; }
  void BeginForEndpoints(Pool pool, Slot channel) { RideOf(pool, channel).by_endpoints = true; }
  // A queue pair does not any more.
  void End(Pool pool, Slot channel);
  // Its queue pairs have let go of it.
  void OnChannelGone(Slot channel);

  // Whether a refusal is to be told now: at most once a second for each pool.
  bool TellsNow(Pool pool, TimePoint now);

 private:
  struct Ride {
    Pool pool = nullptr;
    uint32_t queue_pairs = 0;
    bool by_endpoints = false;

    bool over() const { return queue_pairs == 0 && !by_endpoints; }
  };
  struct OfPool {
    uint32_t sessions = 0;
    uint32_t endpoints = 0;
    TimePoint tell_again;
  };

  Ride& RideOf(Pool pool, Slot channel);
  // Those that are over.
  static void Sweep(std::vector<Ride>& rides);

  std::vector<std::vector<Ride>> by_channel_;  // keeps its room
  std::unordered_map<Pool, OfPool> pools_;
};

}  // namespace rocegw::worker
