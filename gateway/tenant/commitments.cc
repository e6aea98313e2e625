// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/commitments.h"

#include <algorithm>

namespace rocegw::tenant {
namespace {

uint64_t Sum(uint64_t a, uint64_t b) { return b > kUnlimited - a ? kUnlimited : a + b; }

}  // namespace

std::optional<Overflow> Commitments::Check() const {
  for (size_t limit = 0; limit < kLimits; ++limit) {
    std::map<std::string, uint64_t> by_tenant;
    for (const auto& [name, committed] : pools_) {
      uint64_t& sum = by_tenant[TenantOf(name)];
      sum = Sum(sum, LimitOf(committed, limit));
    }
    uint64_t all = 0;
    for (const auto& [name, quota] : tenants_) {
      const uint64_t pools = by_tenant[name];
      const uint64_t committed = LimitOf(quota.committed, limit);
      const uint64_t peak = std::max(LimitOf(quota.peak, limit), committed);
      if (pools > peak) return Overflow{limit, name, pools, peak};
      all = Sum(all, std::max(pools, committed));
    }
    const uint64_t capacity = LimitOf(capacity_, limit);
    if (all > capacity) return Overflow{limit, "", all, capacity};
  }
  return std::nullopt;
}

}  // namespace rocegw::tenant
