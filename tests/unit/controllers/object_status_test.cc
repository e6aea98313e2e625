// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/object_status.h"

#include <gtest/gtest.h>

#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::object_status {
namespace {

constexpr char kPool[] = "tenants/a/pools/p";
constexpr char kOther[] = "tenants/a/pools/q";

class ObjectStatusTest : public ::testing::Test {
 protected:
  ObjectStatusTest() {
    for (const char* gateway : {"g", "h", "i"}) fleet_.Put(GatewayWith(gateway, "z"));
    fleet_.Put(GatewayWith("elsewhere", "y"));
    fleet_.Put(TenantWith("a"));
    fleet_.Put(PoolWith("a", "p", "z"));
    fleet_.Put(PoolWith("a", "q", "z"));
  }
  // Reports as a gateway: everything up to now is applied, except what it rejects.
  void Report(const std::string& gateway, const std::string& rejects = {}) {
    types::v1::Gateway seen = GatewayWith(gateway);
    seen.mutable_status()->set_desired_revision(fleet_.view.revision);
    seen.mutable_status()->set_applied_revision(fleet_.view.revision);
    if (!rejects.empty()) {
      auto& rejection = *seen.mutable_status()->add_rejections();
      rejection.set_object(rejects);
      rejection.set_reason("ADDRESS_TAKEN");
      rejection.set_message("it is another's");
    }
    fleet_.Put(seen, model::Part::kStatus);
  }
  types::v1::PoolStatus Pool(const std::string& name = kPool) {
    return controllers::PoolStatusOf(fleet_.view, fleet_.placement, name);
  }
  types::v1::TenantStatus Tenant() {
    return controllers::TenantStatusOf(fleet_.view, fleet_.placement, "tenants/a");
  }

  Fleet fleet_;
};

TEST_F(ObjectStatusTest, Pool_CountsWhoIsSelectedHasAppliedAndRejects) {
  EXPECT_EQ(Pool().gateways_selected(), 3u);
  EXPECT_EQ(Pool().gateways_applied(), 0u);
  Report("g");
  Report("h", kPool);
  EXPECT_EQ(Pool().gateways_applied(), 1u);
  EXPECT_EQ(Pool().gateways_rejecting(), 1u);
  ASSERT_EQ(Pool().rejections_size(), 1);
  EXPECT_EQ(Pool().rejections(0).gateway(), "gateways/h");
  EXPECT_EQ(Pool().rejections(0).reason(), "ADDRESS_TAKEN");
  EXPECT_EQ(Pool(kOther).gateways_applied(), 2u) << "the rejection is not its";
  EXPECT_EQ(Pool("tenants/a/pools/none").gateways_selected(), 0u);
}

TEST_F(ObjectStatusTest, NewVersion_IsNotAppliedByOldReports) {
  for (const char* gateway : {"g", "h", "i"}) Report(gateway, kPool);
  fleet_.Put(PoolWith("a", "p", "z"));
  EXPECT_EQ(Pool().gateways_applied(), 0u);
  EXPECT_EQ(Pool().gateways_rejecting(), 0u) << "that was of the version before";
  Report("g");
  EXPECT_EQ(Pool().gateways_applied(), 1u);
}

TEST_F(ObjectStatusTest, GatewayThatIsSelectedLater_HasNotAppliedYet) {
  Report("elsewhere");
  fleet_.Put(GatewayWith("elsewhere", "z"));
  EXPECT_EQ(Pool().gateways_selected(), 4u);
  types::v1::Gateway behind = GatewayWith("elsewhere");
  behind.mutable_status()->set_applied_revision(fleet_.view.revision - 1);
  behind.mutable_status()->set_desired_revision(fleet_.view.revision);
  fleet_.Put(behind, model::Part::kStatus);
  EXPECT_EQ(Pool().gateways_applied(), 0u);
  Report("elsewhere");
  EXPECT_EQ(Pool().gateways_applied(), 1u);
}

TEST_F(ObjectStatusTest, Tenant_IsAppliedWhereAllOfItIs) {
  EXPECT_EQ(Tenant().pools(), 2u);
  EXPECT_EQ(Tenant().gateways_selected(), 3u);
  Report("g");
  Report("h", kOther);
  EXPECT_EQ(Tenant().gateways_applied(), 1u);
  EXPECT_EQ(Tenant().gateways_rejecting(), 1u);
  ASSERT_EQ(Tenant().rejections_size(), 1);
  EXPECT_EQ(Tenant().rejections(0).object(), kOther);
  fleet_.Put(PoolWith("a", "q", "z"));
  EXPECT_EQ(Tenant().gateways_applied(), 0u) << "one of its pools has changed";
  EXPECT_EQ(Tenant().gateways_rejecting(), 0u);
}

TEST_F(ObjectStatusTest, OfManyRejections_TheFirstAreTold) {
  for (int i = 0; i < 9; ++i) {
    const std::string name = "many-" + std::to_string(i);
    fleet_.Put(GatewayWith(name, "z"));
    Report(name, kPool);
  }
  EXPECT_EQ(Pool().gateways_rejecting(), 9u);
  EXPECT_EQ(Pool().rejections_size(), controllers::kMostRejections);
}

}  // namespace
}  // namespace rocegw::testing::object_status
