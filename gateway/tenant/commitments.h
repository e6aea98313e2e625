// SPDX-License-Identifier: Apache-2.0
// Check of committed amounts. They are always granted, so before quotas come into force their sums
// are compared with what exists: pools within their tenant's peak, tenants within the gateway's
// capacity. A tenant counts with its own committed amount, or its pools' sum if that is more. Plain
// bookkeeping, no clock, one thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "gateway/tenant/registry.h"

namespace rocegw::tenant {

struct Overflow {
  size_t limit = 0;    // index as in LimitName
  std::string tenant;  // tenant whose peak is exceeded; empty: the gateway's capacity
  uint64_t sum = 0;
  uint64_t bound = 0;
};

class Commitments {
 public:
  void SetCapacity(const Amounts& capacity) { capacity_ = capacity; }
  void SetTenant(const std::string& name, const Quota& quota) { tenants_[name] = quota; }
  void RemoveTenant(const std::string& name) { tenants_.erase(name); }
  void SetPool(const std::string& name, const Amounts& committed) { pools_[name] = committed; }
  void RemovePool(const std::string& name) { pools_.erase(name); }

  // Returns the first sum that does not fit.
  std::optional<Overflow> Check() const;

 private:
  Amounts capacity_ = Amounts::Of(kUnlimited);
  std::map<std::string, Quota> tenants_;
  std::map<std::string, Amounts> pools_;
};

// Returns an amount by its index: resources first, then rates.
inline uint64_t LimitOf(const Amounts& amounts, size_t limit) {
  return limit < kResources ? amounts.held[limit] : amounts.rates[limit - kResources];
}

}  // namespace rocegw::tenant
