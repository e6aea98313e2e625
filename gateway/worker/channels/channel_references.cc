// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/channels/channel_references.h"

#include <algorithm>

#include "gateway/tenant/quota_node.h"

namespace rocegw::worker {

using tenant::Resource;

void ChannelReferences::RemoveSession(Pool pool) {
  const auto known = pools_.find(pool);
  if (--known->second.sessions == 0) pools_.erase(known);
}

void ChannelReferences::RemoveEndpoint(Pool pool) {
  if (--pools_[pool].endpoints != 0) return;
  for (std::vector<Reference>& references : by_channel_) {
    for (Reference& reference : references) {
      if (reference.pool == pool) reference.by_endpoints = false;
    }
    Sweep(references);
  }
}

bool ChannelReferences::Has(Pool pool, Slot channel) const {
  return channel < by_channel_.size() &&
         std::ranges::find(by_channel_[channel], pool, &Reference::pool) !=
             by_channel_[channel].end();
}

const tenant::QuotaNode* ChannelReferences::Take(Pool pool) {
  if (pool == nullptr || pool->quota == nullptr) return nullptr;
  const tenant::QuotaNode* const by = pool->quota->Take(Resource::kChannels);
  if (by != nullptr) pool->channels_refused.fetch_add(1, std::memory_order_relaxed);
  return by;
}

void ChannelReferences::GiveBack(Pool pool) {
  if (pool != nullptr && pool->quota != nullptr) pool->quota->Give(Resource::kChannels);
}

ChannelReferences::Reference& ChannelReferences::ReferenceOf(Pool pool, Slot channel) {
  if (channel >= by_channel_.size()) by_channel_.resize(channel + 1);
  std::vector<Reference>& references = by_channel_[channel];
  const auto known = std::ranges::find(references, pool, &Reference::pool);
  return known != references.end() ? *known : references.emplace_back(Reference{.pool = pool});
}

void ChannelReferences::End(Pool pool, Slot channel) {
  --ReferenceOf(pool, channel).queue_pairs;
  Sweep(by_channel_[channel]);
}

void ChannelReferences::OnChannelGone(Slot channel) {
  if (channel >= by_channel_.size()) return;
  for (Reference& reference : by_channel_[channel]) reference.by_endpoints = false;
  Sweep(by_channel_[channel]);
}

void ChannelReferences::Sweep(std::vector<Reference>& references) {
  std::erase_if(references, [](const Reference& reference) {
    if (reference.unused()) GiveBack(reference.pool);
    return reference.unused();
  });
}

bool ChannelReferences::ReportsNow(Pool pool, TimePoint now) {
  TimePoint& report_again = pools_[pool].report_again;
  if (now < report_again) return false;
  report_again = now + Seconds(1);
  return true;
}

}  // namespace rocegw::worker
