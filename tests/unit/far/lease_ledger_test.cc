// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/donor/lease_ledger.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace rocegw::far {
namespace {

LeaseLedger::Limits Limits(uint64_t donated) {
  LeaseLedger::Limits limits;
  limits.donated_bytes = donated;
  return limits;
}

TEST(LeaseLedger, GrantsUpToTheDonatedSize) {
  LeaseLedger ledger(Limits(100));
  ASSERT_EQ(ledger.AddSession(1, "a", 0), 0);
  EXPECT_EQ(ledger.Grant(1, 60).first, 0);
  EXPECT_EQ(ledger.Grant(1, 41).first, ENOSPC);
  EXPECT_EQ(ledger.Grant(1, 40).first, 0);
  EXPECT_EQ(ledger.leased_bytes(), 100u);
  EXPECT_EQ(ledger.FreeForSession(1), 0u);
}

TEST(LeaseLedger, KeepsEachTenantWithinItsQuota) {
  LeaseLedger::Limits limits = Limits(100);
  limits.tenant_bytes = 50;
  limits.tenants = {{"large", 80}, {"banned", 0}};
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "a", 0), 0);
  ASSERT_EQ(ledger.AddSession(3, "large", 0), 0);
  EXPECT_EQ(ledger.AddSession(4, "banned", 0), EDQUOT);
  EXPECT_EQ(ledger.Grant(1, 30).first, 0);
  EXPECT_EQ(ledger.Grant(2, 21).first, EDQUOT);  // both sessions are the tenant's
  EXPECT_EQ(ledger.Grant(2, 20).first, 0);
  EXPECT_EQ(ledger.FreeFor("large"), 50u);
  EXPECT_EQ(ledger.Grant(3, 50).first, 0);
}

TEST(LeaseLedger, FollowsTheFleetWithinItsOwnLimits) {
  LeaseLedger::Limits limits = Limits(100);
  limits.tenants = {{"small", 10}};
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "small", 0), 0);
  ASSERT_EQ(ledger.Grant(1, 30).first, 0);
  ledger.Follow({.draining = false, .tenants = {{"a", 40}, {"small", 20}}, .tenant_bytes = 0});
  EXPECT_EQ(ledger.FreeFor("a"), 10u);
  EXPECT_EQ(ledger.Grant(1, 11).first, EDQUOT);
  EXPECT_EQ(ledger.FreeFor("small"), 10u);  // the command line allows less than the fleet
  EXPECT_EQ(ledger.AddSession(3, "stranger", 0), EDQUOT);
  ledger.Follow({.draining = false, .tenants = {{"a", 20}}, .tenant_bytes = {}});
  EXPECT_EQ(ledger.FreeFor("a"), 0u);  // a lower quota takes nothing back
  EXPECT_EQ(ledger.leased_bytes(), 30u);
  EXPECT_EQ(ledger.AddSession(3, "stranger", 0), 0);
}

TEST(LeaseLedger, GrantsNothingWhileItDrains) {
  LeaseLedger ledger(Limits(100));
  ASSERT_EQ(ledger.AddSession(1, "a", 0), 0);
  const uint64_t lease = ledger.Grant(1, 30).second;
  ledger.Follow({.draining = true, .tenants = {}, .tenant_bytes = {}});
  EXPECT_EQ(ledger.Grant(1, 1).first, ESHUTDOWN);
  EXPECT_EQ(ledger.AddSession(2, "a", 0), ESHUTDOWN);
  EXPECT_EQ(ledger.FreeFor("a"), 0u);
  EXPECT_TRUE(ledger.Return(1, lease));
  ledger.Follow({});
  EXPECT_EQ(ledger.Grant(1, 100).first, 0);
}

TEST(LeaseLedger, LeasesEndWithTheirSession) {
  LeaseLedger ledger(Limits(100));
  ASSERT_EQ(ledger.AddSession(1, "a", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "b", 0), 0);
  const uint64_t first = ledger.Grant(1, 10).second;
  ASSERT_EQ(ledger.Grant(2, 20).first, 0);
  const uint64_t second = ledger.Grant(1, 30).second;
  EXPECT_EQ(ledger.RemoveSession(1), (std::vector<uint64_t>{first, second}));
  EXPECT_EQ(ledger.leased_bytes(), 20u);
  EXPECT_EQ(ledger.by_tenant().size(), 1u);
  EXPECT_EQ(ledger.Grant(1, 1).first, EINVAL);
}

TEST(LeaseLedger, SessionReturnsOnlyItsOwnLeases) {
  LeaseLedger ledger(Limits(100));
  ASSERT_EQ(ledger.AddSession(1, "a", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "b", 0), 0);
  const uint64_t lease = ledger.Grant(1, 10).second;
  EXPECT_FALSE(ledger.Return(2, lease));
  EXPECT_TRUE(ledger.Return(1, lease));
  EXPECT_FALSE(ledger.Return(1, lease));
  EXPECT_EQ(ledger.leased_bytes(), 0u);
}

TEST(LeaseLedger, SilentSessionsExpire) {
  LeaseLedger::Limits limits = Limits(100);
  limits.lease_seconds = 10;
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", 0), 0);
  ASSERT_EQ(ledger.AddSession(2, "a", 0), 0);
  ledger.Renew(2, 5);
  EXPECT_TRUE(ledger.Expired(10).empty());
  EXPECT_EQ(ledger.Expired(11), std::vector<uint64_t>{1});
  EXPECT_EQ(ledger.Expired(16).size(), 2u);
}

TEST(LeaseLedger, BoundsSessionsAndLeases) {
  LeaseLedger::Limits limits = Limits(100);
  limits.sessions = 1;
  limits.leases = 1;
  LeaseLedger ledger(limits);
  ASSERT_EQ(ledger.AddSession(1, "a", 0), 0);
  EXPECT_EQ(ledger.AddSession(2, "a", 0), EUSERS);
  ASSERT_EQ(ledger.Grant(1, 1).first, 0);
  EXPECT_EQ(ledger.Grant(1, 1).first, EUSERS);
}

}  // namespace
}  // namespace rocegw::far
