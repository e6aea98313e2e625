// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/nodes/free_qps.h"

#include <algorithm>

namespace rocegw::migrations {
namespace {

// No gateway has as many queue pairs. Sums of foreign numbers must not overflow.
constexpr uint64_t kMostQps = 1ULL << 40;

// A pool claims of the levels above what it holds, or what is committed to it if that is more
// (gateway/tenant/quota_node.h).
struct Pool {
  bool known = false;
  uint64_t used = 0;
  uint64_t claim = 0;
  std::optional<uint64_t> peak;
};

Pool ReadPool(const types::v1::PoolUsage& usage) {
  Pool pool;
  for (const types::v1::LimitUsage& limit : usage.limits()) {
    if (limit.limit() != "qps") continue;
    pool.known = true;
    pool.used = std::min<uint64_t>(limit.used(), kMostQps);
    pool.claim = std::max(pool.used, std::min<uint64_t>(limit.committed(), kMostQps));
    if (limit.has_peak()) pool.peak = limit.peak();
  }
  return pool;
}

std::string TenantOf(const std::string& pool) { return pool.substr(0, pool.find("/pools/")); }

}  // namespace

FreeQps FreeQpsOf(const QpLimits& limits, const std::string& pool,
                  const gateway::v1::ListPoolsResponse& reported) {
  if (!reported.next_page_token().empty())
    return {.unknown = "the gateway has too many pools for one answer", .free = {}};
  Pool own;
  std::map<std::string, uint64_t> claims;  // sums of the pools, by tenant
  for (const types::v1::PoolUsage& usage : reported.pools()) {
    const Pool read = ReadPool(usage);
    if (usage.pool() == pool) own = read;
    claims[TenantOf(usage.pool())] += read.claim;
  }
  if (!own.known) return {.unknown = "the gateway reports no queue pairs of " + pool, .free = {}};

  std::optional<uint64_t> least;
  const auto take = [&least](const std::optional<uint64_t>& limit, uint64_t taken) {
    if (!limit.has_value()) return;
    least = std::min(least.value_or(UINT64_MAX), *limit - std::min(taken, *limit));
  };
  take(own.peak, own.used);
  take(limits.pool_peak, own.used);
  // Unused parts of the amounts committed to the pool and its tenant are claimed already.
  const uint64_t of_pool = own.claim - own.used;
  uint64_t of_tenant = 0;
  uint64_t all = 0;
  for (const auto& [name, sum] : claims) {
    const auto known = limits.tenants.find(name);
    uint64_t claim = sum;
    if (known != limits.tenants.end())
      claim = std::max(sum, std::min(known->second.committed, kMostQps));
    all += claim;
    if (name != TenantOf(pool)) continue;
    of_tenant = claim - sum;
    if (known != limits.tenants.end()) take(known->second.peak, sum - of_pool);
  }
  take(limits.capacity, all - of_tenant - of_pool);
  return {.unknown = {}, .free = least};
}

}  // namespace rocegw::migrations
