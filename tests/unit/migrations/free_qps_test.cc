// SPDX-License-Identifier: Apache-2.0
// Queue pairs that a gateway has left for a pool: each level has limits of its own, which other
// pools and tenants use, too.
#include "controlplane/migrations/nodes/free_qps.h"

#include <gtest/gtest.h>

namespace rocegw::migrations {
namespace {

constexpr char kPool[] = "tenants/a/pools/p";

void Add(gateway::v1::ListPoolsResponse& to, const std::string& name, uint64_t used,
         uint64_t committed = 0) {
  types::v1::PoolUsage& pool = *to.add_pools();
  pool.set_pool(name);
  types::v1::LimitUsage& memory = *pool.add_limits();
  memory.set_limit("mrs");
  memory.set_used(1'000'000);
  types::v1::LimitUsage& qps = *pool.add_limits();
  qps.set_limit("qps");
  qps.set_used(used);
  qps.set_committed(committed);
}

// The pool uses 10, its tenant 30, the gateway 100.
gateway::v1::ListPoolsResponse Shared() {
  gateway::v1::ListPoolsResponse pools;
  Add(pools, kPool, 10);
  Add(pools, "tenants/a/pools/other", 20);
  Add(pools, "tenants/b/pools/p", 70);
  return pools;
}

uint64_t Free(const QpLimits& limits, const gateway::v1::ListPoolsResponse& pools) {
  const FreeQps free = FreeQpsOf(limits, kPool, pools);
  EXPECT_EQ(free.unknown, "");
  return free.free.value_or(UINT64_MAX);
}

TEST(FreeQps, EachLevelHasTheUseOfAllPoolsBelowIt) {
  EXPECT_EQ(Free({}, Shared()), UINT64_MAX);
  EXPECT_EQ(Free({.pool_peak = 200}, Shared()), 190U);
  EXPECT_EQ(Free({.tenants = {{"tenants/a", {.peak = 200}}}}, Shared()), 170U);
  EXPECT_EQ(Free({.tenants = {{"tenants/b", {.peak = 1}}}}, Shared()), UINT64_MAX);
  EXPECT_EQ(Free({.capacity = 200}, Shared()), 100U);
  EXPECT_EQ(Free({.capacity = 90}, Shared()), 0U);
  gateway::v1::ListPoolsResponse peak = Shared();
  peak.mutable_pools(0)->mutable_limits(1)->set_peak(15);
  EXPECT_EQ(Free({.capacity = 200, .pool_peak = 50}, peak), 5U) << "as the gateway has it now";
}

TEST(FreeQps, CommittedAmountsAreTakenFromTheOthersOnly) {
  gateway::v1::ListPoolsResponse pools;
  Add(pools, kPool, 10, 40);
  Add(pools, "tenants/a/pools/other", 20, 25);
  Add(pools, "tenants/b/pools/p", 5);
  EXPECT_EQ(Free({.tenants = {{"tenants/a", {.peak = 100}}}}, pools), 100U - 10 - 25);
  const QpLimits limits{.capacity = 200,
                        .pool_peak = {},
                        .tenants = {{"tenants/a", {.committed = 80, .peak = {}}},
                                    {"tenants/b", {.committed = 50, .peak = {}}}}};
  EXPECT_EQ(Free(limits, pools), 200U - 10 - 25 - 50);
}

TEST(FreeQps, WhatIsNotReportedIsNotUnlimited) {
  gateway::v1::ListPoolsResponse pools = Shared();
  EXPECT_EQ(FreeQpsOf({.capacity = 9}, "tenants/a/pools/none", pools).unknown,
            "the gateway reports no queue pairs of tenants/a/pools/none");
  pools.mutable_pools(0)->clear_limits();
  EXPECT_NE(FreeQpsOf({.capacity = 9}, kPool, pools).unknown, "");
  pools = Shared();
  pools.set_next_page_token("more");
  EXPECT_NE(FreeQpsOf({.capacity = 9}, kPool, pools).unknown, "");
}

TEST(FreeQps, NumbersThatNoGatewayHasDoNotOverflow) {
  gateway::v1::ListPoolsResponse pools = Shared();
  for (types::v1::PoolUsage& pool : *pools.mutable_pools()) {
    pool.mutable_limits(1)->set_used(UINT64_MAX);
    pool.mutable_limits(1)->set_committed(UINT64_MAX);
  }
  EXPECT_EQ(Free({.capacity = 1000}, pools), 0U);
}

}  // namespace
}  // namespace rocegw::migrations
