// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/donor/lease_ledger.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace rocegw::far {
namespace {

constexpr uint64_t kUnit = LeaseLedger::kSmallestLease;

LeaseLedger::Limits Limits(uint64_t donated_units) {
  LeaseLedger::Limits limits;
  limits.donated_bytes = donated_units * kUnit;
  return limits;
}

TEST(LeaseLedger, GrantsUpToTheDonatedSize) {
  LeaseLedger ledger(Limits(100));
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  EXPECT_EQ(ledger.Grant(1, 60 * kUnit).first, 0);
  EXPECT_EQ(ledger.Grant(1, 41 * kUnit).first, ENOSPC);
  EXPECT_EQ(ledger.Grant(1, 40 * kUnit).first, 0);
  EXPECT_EQ(ledger.leased_bytes(), 100 * kUnit);
  EXPECT_EQ(ledger.FreeForSession(1), 0u);
}

TEST(LeaseLedger, KeepsEachTenantWithinItsQuota) {
  LeaseLedger::Limits limits = Limits(100);
  limits.tenant_bytes = 50 * kUnit;
  limits.tenants = {{"large", 80 * kUnit}, {"banned", 0}};
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "a", "host", 0), 0);
  ASSERT_EQ(ledger.AddSession(3, "large", "host", 0), 0);
  EXPECT_EQ(ledger.AddSession(4, "banned", "host", 0), EDQUOT);
  EXPECT_EQ(ledger.Grant(1, 30 * kUnit).first, 0);
  EXPECT_EQ(ledger.Grant(2, 21 * kUnit).first, EDQUOT);  // both sessions are the tenant's
  EXPECT_EQ(ledger.Grant(2, 20 * kUnit).first, 0);
  EXPECT_EQ(ledger.FreeFor("large"), 50 * kUnit);
  EXPECT_EQ(ledger.Grant(3, 50 * kUnit).first, 0);
}

TEST(LeaseLedger, FollowsTheFleetWithinItsOwnLimits) {
  LeaseLedger::Limits limits = Limits(100);
  limits.tenants = {{"small", 10 * kUnit}};
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "small", "host", 0), 0);
  ASSERT_EQ(ledger.Grant(1, 30 * kUnit).first, 0);
  ledger.Follow({.draining = false,
                 .tenants = {{"a", 40 * kUnit}, {"small", 20 * kUnit}},
                 .tenant_bytes = 0});
  EXPECT_EQ(ledger.FreeFor("a"), 10 * kUnit);
  EXPECT_EQ(ledger.Grant(1, 11 * kUnit).first, EDQUOT);
  EXPECT_EQ(ledger.FreeFor("small"), 10 * kUnit);  // the command line allows less than the fleet
  EXPECT_EQ(ledger.AddSession(3, "stranger", "host", 0), EDQUOT);
  ledger.Follow({.draining = false, .tenants = {{"a", 20 * kUnit}}, .tenant_bytes = {}});
  EXPECT_EQ(ledger.FreeFor("a"), 0u);  // a lower quota takes nothing back
  EXPECT_EQ(ledger.leased_bytes(), 30 * kUnit);
  EXPECT_EQ(ledger.AddSession(3, "stranger", "host", 0), 0);
}

TEST(LeaseLedger, GrantsNothingWhileItDrains) {
  LeaseLedger ledger(Limits(100));
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  const uint64_t lease = ledger.Grant(1, 30 * kUnit).second;
  ledger.Follow({.draining = true, .tenants = {}, .tenant_bytes = {}});
  EXPECT_EQ(ledger.Grant(1, kUnit).first, ESHUTDOWN);
  EXPECT_EQ(ledger.AddSession(2, "a", "host", 0), ESHUTDOWN);
  EXPECT_EQ(ledger.FreeFor("a"), 0u);
  EXPECT_TRUE(ledger.Return(1, lease));
  ledger.Follow({});
  EXPECT_EQ(ledger.Grant(1, 100 * kUnit).first, 0);
}

TEST(LeaseLedger, LeasesEndWithTheirSession) {
  LeaseLedger ledger(Limits(100));
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "b", "host", 0), 0);
  const uint64_t first = ledger.Grant(1, 10 * kUnit).second;
  ASSERT_EQ(ledger.Grant(2, 20 * kUnit).first, 0);
  const uint64_t second = ledger.Grant(1, 30 * kUnit).second;
  EXPECT_EQ(ledger.RemoveSession(1), (std::vector<uint64_t>{first, second}));
  EXPECT_EQ(ledger.leased_bytes(), 20 * kUnit);
  EXPECT_EQ(ledger.by_tenant().size(), 1u);
  EXPECT_EQ(ledger.Grant(1, kUnit).first, EINVAL);
}

TEST(LeaseLedger, SessionReturnsOnlyItsOwnLeases) {
  LeaseLedger ledger(Limits(100));
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "b", "host", 0), 0);
  const uint64_t lease = ledger.Grant(1, 10 * kUnit).second;
  EXPECT_FALSE(ledger.Return(2, lease));
  EXPECT_TRUE(ledger.Return(1, lease));
  EXPECT_FALSE(ledger.Return(1, lease));
  EXPECT_EQ(ledger.leased_bytes(), 0u);
}

TEST(LeaseLedger, SilentSessionsExpire) {
  LeaseLedger::Limits limits = Limits(100);
  limits.lease_seconds = 10;
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "a", "host", 0), 0);
  ledger.Established(1);
  ledger.Renew(2, 5);
  EXPECT_TRUE(ledger.Expired(10).empty());
  EXPECT_EQ(ledger.Expired(11), std::vector<uint64_t>{1});
  EXPECT_EQ(ledger.Expired(16).size(), 2u);
}

TEST(LeaseLedger, ASessionThatGivesWayEndsWhenAnotherOneNeedsItsMemory) {
  LeaseLedger::Limits limits = Limits(100);
  limits.tenants["a"] = 60 * kUnit;
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "b", "host", 0), 0);
  ASSERT_EQ(ledger.Grant(1, 60 * kUnit).first, 0);
  ASSERT_EQ(ledger.Grant(2, 40 * kUnit).first, 0);
  EXPECT_EQ(ledger.WayFor(ENOSPC, "b", "host"), std::nullopt);
  ledger.GiveWay(1);
  // Its memory is free for others, and its own tenant's quota is free again.
  EXPECT_EQ(ledger.FreeFor("b"), 60 * kUnit);
  EXPECT_EQ(ledger.FreeFor("a"), 60 * kUnit);
  EXPECT_EQ(ledger.Grant(2, kUnit).first, ENOSPC);
  EXPECT_EQ(ledger.WayFor(ENOSPC, "b", "host"), 1u);
  EXPECT_EQ(ledger.WayFor(EDQUOT, "a", "host"), 1u);
  EXPECT_EQ(ledger.WayFor(EDQUOT, "b", "host"), std::nullopt);
  EXPECT_EQ(ledger.WayFor(EINVAL, "a", "host"), std::nullopt);
  ledger.RemoveSession(1);
  EXPECT_EQ(ledger.Grant(2, 60 * kUnit).first, 0);
}

TEST(LeaseLedger, ASessionThatIsBackGivesNoWay) {
  LeaseLedger ledger(Limits(100));
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  ASSERT_EQ(ledger.Grant(1, 100 * kUnit).first, 0);
  ledger.GiveWay(1);
  ledger.Renew(1, 5);
  EXPECT_EQ(ledger.WayFor(ENOSPC, "b", "host"), std::nullopt);
  EXPECT_EQ(ledger.FreeFor("b"), 0u);
  // Silent ones expire as all others.
  ledger.GiveWay(1);
  EXPECT_EQ(ledger.Expired(5 + ledger.limits().lease_seconds + 1), (std::vector<uint64_t>{1}));
}

TEST(LeaseLedger, TheOldestOfTheTenantOrTheHostGivesItsPlace) {
  LeaseLedger::Limits limits = Limits(100);
  limits.sessions = 4;
  LeaseLedger ledger(limits);
  for (uint64_t session = 1; session <= 3; ++session) {
    ASSERT_EQ(ledger.AddSession(session, "a", "host" + std::to_string(session), 0), 0);
    ledger.Renew(session, static_cast<int64_t>(10 - session));
  }
  ledger.GiveWay(1);
  ledger.GiveWay(2);
  EXPECT_EQ(ledger.WayFor(EUSERS, "a", "host4"), 2u);
  EXPECT_EQ(ledger.WayFor(EUSERS, "b", "host1"), 1u);
  EXPECT_EQ(ledger.WayFor(EUSERS, "b", "host4"), std::nullopt);
  // When there are as many sessions as may be, any of them helps.
  ASSERT_EQ(ledger.AddSession(4, "b", "host4", 10), 0);
  ASSERT_EQ(ledger.AddSession(5, "b", "host4", 10), EUSERS);
  EXPECT_EQ(ledger.WayFor(EUSERS, "b", "host4"), 2u);
}

TEST(LeaseLedger, BoundsSessionsAndLeases) {
  LeaseLedger::Limits limits = Limits(100);
  limits.sessions = 1;
  limits.leases = 1;
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  EXPECT_EQ(ledger.AddSession(2, "a", "host", 0), EUSERS);
  ASSERT_EQ(ledger.Grant(1, kUnit).first, 0);
  EXPECT_EQ(ledger.Grant(1, kUnit).first, EUSERS);
}

TEST(LeaseLedger, LeasesHaveSizesOfSlabs) {
  LeaseLedger ledger(Limits(100000));
  ASSERT_EQ(ledger.AddSession(1, "a", "host", 0), 0);
  EXPECT_EQ(ledger.Grant(1, 0).first, EINVAL);
  EXPECT_EQ(ledger.Grant(1, LeaseLedger::kSmallestLease - 4096).first, EINVAL);
  EXPECT_EQ(ledger.Grant(1, LeaseLedger::kSmallestLease + 1).first, EINVAL);
  EXPECT_EQ(ledger.Grant(1, LeaseLedger::kLargestLease + 4096).first, EINVAL);
  EXPECT_EQ(ledger.Grant(1, LeaseLedger::kLargestLease).first, 0);
}

// Adds sessions until one is refused. Returns how many were added.
uint64_t AddMany(LeaseLedger& ledger, uint64_t first, const std::string& tenant,
                 const std::string& host) {
  for (uint64_t number = first;; number++) {
    if (ledger.AddSession(number, tenant, host, 0) == EUSERS) return number - first;
    ledger.Established(number);
  }
}

TEST(LeaseLedger, OneTenantOrHostLeavesSessionsToOthers) {
  LeaseLedger ledger(Limits(100));
  const uint64_t greedy = AddMany(ledger, 1000, "greedy", "host");
  EXPECT_GT(greedy, 64u);
  EXPECT_LT(greedy, 128u);
  EXPECT_EQ(ledger.AddSession(1, "greedy", "elsewhere", 0), EUSERS);
  EXPECT_EQ(ledger.AddSession(1, "other name", "host", 0), EUSERS);
  for (uint64_t number = 0; number < LeaseLedger::kAlways; number++) {
    EXPECT_EQ(ledger.AddSession(number, "victim", "another host", 0), 0);
  }
}

TEST(LeaseLedger, OneTenantLeavesLeasesToOthers) {
  LeaseLedger::Limits limits = Limits(100000);
  limits.leases = 300;
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "greedy", "host", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "victim", "host", 0), 0);
  int granted = 0;
  while (ledger.Grant(1, kUnit).first == 0) granted++;
  EXPECT_EQ(granted, 100);
  for (int number = 0; number < 50; number++) EXPECT_EQ(ledger.Grant(2, kUnit).first, 0);
  // A session that ends gives its leases back.
  ledger.RemoveSession(1);
  EXPECT_EQ(ledger.lease_count(), 50u);
  ASSERT_EQ(ledger.AddSession(1, "greedy", "host", 0), 0);
  EXPECT_EQ(ledger.Grant(1, kUnit).first, 0);
}

TEST(LeaseLedger, ConnectionsThatAreNeverEstablishedMakeRoom) {
  LeaseLedger::Limits limits = Limits(100);
  limits.half_open = 4;
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", "patient", 0), 0);
  for (uint64_t number = 2; number < 5; number++) {
    EXPECT_EQ(ledger.Surplus(), std::nullopt);
    ASSERT_EQ(ledger.AddSession(number, "a", "flood", 0), 0);
  }
  EXPECT_EQ(ledger.Surplus(), 2u) << "the oldest of the host that has most";
  ledger.Established(1);
  EXPECT_EQ(ledger.Surplus(), std::nullopt);
  EXPECT_EQ(ledger.Expired(LeaseLedger::kOpenSeconds + 1).size(), 3u);
  EXPECT_TRUE(ledger.Expired(LeaseLedger::kOpenSeconds).empty());
}

}  // namespace
}  // namespace rocegw::far
