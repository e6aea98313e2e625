// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/usage_book.h"

namespace rocegw::sync {
namespace {

void Add(const types::v1::GatewayTotals& more, types::v1::GatewayTotals& sum) {
  sum.set_sessions(sum.sessions() + more.sessions());
  sum.set_qps(sum.qps() + more.qps());
  sum.set_cqs(sum.cqs() + more.cqs());
  sum.set_mrs(sum.mrs() + more.mrs());
  sum.set_pds(sum.pds() + more.pds());
  sum.set_cm_ids(sum.cm_ids() + more.cm_ids());
  sum.set_registered_bytes(sum.registered_bytes() + more.registered_bytes());
  sum.set_segment_bytes(sum.segment_bytes() + more.segment_bytes());
}

void Add(const types::v1::ReadyReserve& more, types::v1::ReadyReserve& sum) {
  sum.set_wanted(sum.wanted() + more.wanted());
  sum.set_ready(sum.ready() + more.ready());
  sum.set_bytes(sum.bytes() + more.bytes());
  sum.set_hits(sum.hits() + more.hits());
  sum.set_misses(sum.misses() + more.misses());
}

}  // namespace

void UsageBook::Set(const std::string& gateway, const Pools& pools) {
  const std::lock_guard lock(mutex_);
  for (const std::string& pool : told_[gateway]) {
    const auto at = pools_.find(pool);
    at->second.erase(gateway);
    if (at->second.empty()) pools_.erase(at);
  }
  told_[gateway].clear();
  for (const types::v1::PoolTotals& pool : pools) {
    pools_[pool.pool()][gateway] = pool;
    told_[gateway].insert(pool.pool());
  }
  if (told_[gateway].empty()) told_.erase(gateway);
}

Usage UsageBook::SumOf(const std::string& first,
                       bool (*covers)(const std::string& asked, const std::string& pool)) const {
  const std::lock_guard lock(mutex_);
  Usage usage;
  std::set<std::string> gateways;
  for (auto pool = pools_.lower_bound(first); pool != pools_.end() && covers(first, pool->first);
       ++pool) {
    for (const auto& [gateway, told] : pool->second) {
      Add(told.totals(), usage.totals);
      Add(told.ready(), usage.ready);
      gateways.insert(gateway);
    }
  }
  usage.gateways = static_cast<uint32_t>(gateways.size());
  return usage;
}

Usage UsageBook::OfPool(const std::string& pool) const {
  return SumOf(pool,
               [](const std::string& asked, const std::string& name) { return asked == name; });
}

Usage UsageBook::OfTenant(const std::string& tenant) const {
  return SumOf(tenant + "/pools/", [](const std::string& asked, const std::string& name) {
    return name.starts_with(asked);
  });
}

}  // namespace rocegw::sync
