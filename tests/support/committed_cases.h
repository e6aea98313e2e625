// SPDX-License-Identifier: Apache-2.0
// Cases of committed quotas on which controller and gateway must agree: the controller decides
// before an object is stored, the gateway before it applies the object, whether all committed
// amounts fit. Each case counts one resource (queue pairs); all pools are on the gateway.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rocegw::testing {

struct CommittedCase {
  struct Tenant {
    std::string id;
    uint64_t committed = 0;
    uint64_t peak = 0;  // 0: no peak
  };
  struct Pool {
    std::string tenant;
    uint64_t committed = 0;
    uint32_t ready = 0;  // queue pairs kept ready; they count as committed
  };
  std::string name;  // name of the test
  uint64_t capacity = 0;
  std::vector<Tenant> tenants;
  std::vector<Pool> pools;
  bool fits = false;
};

inline std::vector<CommittedCase> CommittedCases() {
  return {
      {"NothingCommitted", 0, {{"a"}}, {{"a", 0}}, true},
      {"PoolsFillIt", 100, {{"a"}, {"b"}}, {{"a", 60}, {"b", 40}}, true},
      {"PoolsOfTwoTenantsAreOneTooMany", 100, {{"a"}, {"b"}}, {{"a", 60}, {"b", 41}}, false},
      {"PoolsOfOneTenantAreOneTooMany", 100, {{"a"}}, {{"a", 60}, {"a", 41}}, false},
      {"TenantFillsIt", 100, {{"a", 100}}, {{"a", 0}}, true},
      {"TenantIsOneTooMany", 100, {{"a", 101}}, {{"a", 0}}, false},
      {"TenantCoversItsPools", 100, {{"a", 100}}, {{"a", 60}, {"a", 40}}, true},
      {"TenantCoversItsPoolsAndLeavesRoom", 100, {{"a", 70}, {"b"}}, {{"a", 60}, {"b", 30}}, true},
      {"TenantCoversItsPoolsAndLeavesNoRoom",
       100,
       {{"a", 70}, {"b"}},
       {{"a", 60}, {"b", 31}},
       false},
      {"PoolsBeyondTheirTenantCount", 100, {{"a", 50}, {"b"}}, {{"a", 70}, {"b", 30}}, true},
      {"PoolsBeyondTheirTenantAreOneTooMany",
       100,
       {{"a", 50}, {"b"}},
       {{"a", 71}, {"b", 30}},
       false},
      {"TenantsFillIt", 100, {{"a", 50}, {"b", 50}}, {{"a", 1}, {"b", 50}}, true},
      {"TenantsAreOneTooMany", 100, {{"a", 50}, {"b", 51}}, {{"a", 1}, {"b", 1}}, false},
      {"PoolsUpToTheirTenantsPeak", 100, {{"a", 10, 60}}, {{"a", 30}, {"a", 30}}, true},
      {"PoolsBeyondTheirTenantsPeak", 100, {{"a", 10, 60}}, {{"a", 30}, {"a", 31}}, false},
      {"ReserveFillsIt", 100, {{"a"}, {"b"}}, {{"a", 0, 60}, {"b", 40}}, true},
      {"ReserveIsOneTooMany", 100, {{"a"}, {"b"}}, {{"a", 0, 60}, {"b", 41}}, false},
      {"ReserveWithinWhatIsCommitted", 100, {{"a"}}, {{"a", 100, 60}}, true},
      {"ReserveBeyondWhatIsCommitted", 100, {{"a"}}, {{"a", 60, 101}}, false},
      {"TenantCoversAReserve", 100, {{"a", 100}}, {{"a", 1, 100}}, true},
      {"ReserveBeyondTheTenantsPeak", 100, {{"a", 10, 60}}, {{"a", 30}, {"a", 0, 31}}, false},
  };
}

}  // namespace rocegw::testing
