// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/channel_references.h"

#include <algorithm>

#include "gateway/tenant/quota_node.h"

namespace rocegw::worker {

using tenant::Resource;

void Rides::RemoveSession(Pool pool) {
  const auto known = pools_.find(pool);
  if (--known->second.sessions == 0) pools_.erase(known);
}

void Rides::RemoveEndpoint(Pool pool) {
  if (--pools_[pool].endpoints != 0) return;
  for (std::vector<Ride>& rides : by_channel_) {
    for (Ride& ride : rides) {
      if (ride.pool == pool) ride.by_endpoints = false;
    }
    Sweep(rides);
  }
}

bool Rides::Has(Pool pool, Slot channel) const {
  return channel < by_channel_.size() &&
         std::ranges::find(by_channel_[channel], pool, &Ride::pool) != by_channel_[channel].end();
}

const tenant::QuotaNode* Rides::Take(Pool pool) {
  if (pool == nullptr || pool->channel_quota == nullptr) return nullptr;
  const tenant::QuotaNode* const by = pool->channel_quota->Take(Resource::kChannels);
  if (by != nullptr) pool->channels_refused.fetch_add(1, std::memory_order_relaxed);
  return by;
}

void Rides::GiveBack(Pool pool) {
  if (pool != nullptr && pool->channel_quota != nullptr)
    pool->channel_quota->Give(Resource::kChannels);
}

Rides::Ride& Rides::RideOf(Pool pool, Slot channel) {
  if (channel >= by_channel_.size()) by_channel_.resize(channel + 1);
  std::vector<Ride>& rides = by_channel_[channel];
  const auto known = std::ranges::find(rides, pool, &Ride::pool);
  return known != rides.end() ? *known : rides.emplace_back(Ride{.pool = pool});
}

void Rides::End(Pool pool, Slot channel) {
  --RideOf(pool, channel).queue_pairs;
  Sweep(by_channel_[channel]);
}

void Rides::OnChannelGone(Slot channel) {
  if (channel >= by_channel_.size()) return;
  for (Ride& ride : by_channel_[channel]) ride.by_endpoints = false;
  Sweep(by_channel_[channel]);
}

void Rides::Sweep(std::vector<Ride>& rides) {
  std::erase_if(rides, [](const Ride& ride) {
    if (ride.over()) GiveBack(ride.pool);
    return ride.over();
  });
}

bool Rides::TellsNow(Pool pool, TimePoint now) {
  TimePoint& tell_again = pools_[pool].tell_again;
  if (now < tell_again) return false;
  tell_again = now + Seconds(1);
  return true;
}

}  // namespace rocegw::worker
