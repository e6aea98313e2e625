// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/capacity.h"

#include <gtest/gtest.h>

#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::capacity {
namespace {

using controllers::CheckGateway;
using controllers::CheckPool;
using controllers::CheckTenant;
using model::Violation;

class CapacityTest : public ::testing::Test {
 protected:
  CapacityTest() {
    types::v1::Gateway gateway = GatewayWith("g", "z");
    gateway.mutable_spec()->mutable_capacity()->set_qps(100);
    fleet_.Put(gateway);
    fleet_.Put(GatewayWith("h", "z"));
    fleet_.Put(TenantWith("a"));
    fleet_.Put(TenantWith("b"));
    fleet_.Put(PoolWith("a", "p", "z", 60));
  }
  std::vector<Violation> Pool(const types::v1::Pool& pool) {
    return CheckPool(fleet_.view, fleet_.placement, pool);
  }

  Fleet fleet_;
};

TEST_F(CapacityTest, ExactlyFull_Fits_OneMore_DoesNot) {
  EXPECT_TRUE(Pool(PoolWith("b", "q", "z", 40)).empty());
  EXPECT_EQ(Pool(PoolWith("b", "q", "z", 41)),
            (std::vector<Violation>{
                {"pool.spec.quota.committed",
                 "brings the committed qps to 101; the capacity of gateways/g is 100"}}));
  EXPECT_TRUE(Pool(PoolWith("b", "q", "elsewhere", 1000)).empty()) << "no gateway is selected";
}

TEST_F(CapacityTest, ChangedPool_IsCountedOnce) {
  EXPECT_TRUE(Pool(PoolWith("a", "p", "z", 100)).empty());
  EXPECT_EQ(Pool(PoolWith("a", "p", "z", 101)).size(), 1u);
}

TEST_F(CapacityTest, WhatDoesNotFitAlready_MayShrinkAndNotGrow) {
  types::v1::Gateway smaller = GatewayWith("g", "z");
  smaller.mutable_spec()->mutable_capacity()->set_qps(50);
  fleet_.Put(smaller);
  EXPECT_TRUE(Pool(PoolWith("a", "p", "z", 59)).empty());
  EXPECT_TRUE(Pool(PoolWith("a", "p", "z", 60)).empty());
  EXPECT_EQ(Pool(PoolWith("a", "p", "z", 61)).size(), 1u);
}

TEST_F(CapacityTest, CapacityFromTheGatewaysOwnConfiguration_CountsWhereNothingElseIsSaid) {
  types::v1::Gateway status = GatewayWith("h");
  status.mutable_status()->mutable_capacity()->set_qps(70);
  fleet_.Put(status, model::Part::kStatus);
  const auto violations = Pool(PoolWith("b", "q", "z", 11));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_NE(violations[0].text.find("gateways/h is 70"), std::string::npos) << violations[0].text;
}

TEST_F(CapacityTest, TenantsPeak_BoundsWhatItsPoolsCommitOnOneGateway) {
  types::v1::Tenant tenant = TenantWith("a");
  tenant.mutable_spec()->mutable_quota()->mutable_peak()->set_qps(70);
  fleet_.Put(tenant);
  EXPECT_TRUE(Pool(PoolWith("a", "q", "z", 10)).empty());
  EXPECT_EQ(Pool(PoolWith("a", "q", "z", 11)).size(), 2u) << "on both gateways";
  EXPECT_TRUE(Pool(PoolWith("b", "q", "z", 11)).empty());
}

TEST_F(CapacityTest, FleetCap_CountsEveryGateway) {
  types::v1::Tenant tenant = TenantWith("a");
  tenant.mutable_spec()->mutable_fleet_cap()->set_qps(130);
  fleet_.Put(tenant);
  EXPECT_TRUE(Pool(PoolWith("a", "q", "z", 5)).empty()) << "60 + 5 on two gateways each";
  const auto violations = Pool(PoolWith("a", "q", "z", 6));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_NE(violations[0].text.find("to 132; the fleet cap of tenants/a is 130"), std::string::npos)
      << violations[0].text;
}

// 4 MiB for every 16 of them.
TEST_F(CapacityTest, ReserveTakesItsMemoryFromTheCapacity) {
  types::v1::Gateway gateway = GatewayWith("g", "z");
  gateway.mutable_spec()->mutable_capacity()->set_segment_bytes(8 << 20);
  fleet_.Put(gateway);
  types::v1::Pool pool = PoolWith("b", "q", "z");
  pool.mutable_spec()->set_ready_qps(32);
  EXPECT_EQ(Pool(pool), std::vector<Violation>());
  pool.mutable_spec()->set_ready_qps(33);
  const auto violations = Pool(pool);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].text,
            "brings the committed segment_bytes to 12582912; the capacity of gateways/g is 8388608 "
            "(what ready_qps keeps ready counts as committed)");
}

TEST_F(CapacityTest, TenantBelowWhatItsPoolsHave_IsRefused) {
  types::v1::Tenant tenant = TenantWith("a");
  tenant.mutable_spec()->mutable_quota()->mutable_peak()->set_qps(59);
  tenant.mutable_spec()->mutable_fleet_cap()->set_qps(119);
  const auto violations = CheckTenant(fleet_.view, fleet_.placement, tenant);
  ASSERT_EQ(violations.size(), 3u);
  EXPECT_EQ(violations[0],
            (Violation{"tenant.spec.quota.peak.qps",
                       "is less than its pools have committed on gateways/g, which is 60"}));
  EXPECT_EQ(violations[2],
            (Violation{"tenant.spec.fleet_cap.qps",
                       "is less than its pools have committed in the fleet, which is 120"}));
  tenant.mutable_spec()->mutable_quota()->mutable_peak()->set_qps(60);
  tenant.mutable_spec()->mutable_fleet_cap()->set_qps(120);
  EXPECT_TRUE(CheckTenant(fleet_.view, fleet_.placement, tenant).empty());
}

TEST_F(CapacityTest, GatewayThatComesIntoAPool_MustHaveRoom) {
  types::v1::Gateway gateway = GatewayWith("i", "z");
  gateway.mutable_spec()->mutable_capacity()->set_qps(59);
  EXPECT_EQ(CheckGateway(fleet_.view, fleet_.placement, gateway).size(), 1u);
  gateway.mutable_spec()->mutable_capacity()->set_qps(60);
  EXPECT_TRUE(CheckGateway(fleet_.view, fleet_.placement, gateway).empty());
}

}  // namespace
}  // namespace rocegw::testing::capacity
