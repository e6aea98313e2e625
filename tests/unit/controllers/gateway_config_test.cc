// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/gateway_config.h"

#include <gtest/gtest.h>

#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::gateway_config {
namespace {

using controllers::Touches;
using types::v1::ConfigObject;

std::vector<std::string> NamesOf(const std::vector<ConfigObject>& objects) {
  std::vector<std::string> names;
  for (const ConfigObject& object : objects)
    names.push_back((object.removed() ? "-" : "") + object.name());
  return names;
}

class GatewayConfigTest : public ::testing::Test {
 protected:
  GatewayConfigTest() {
    fleet_.Put(GatewayWith("g", "z"));
    fleet_.Put(GatewayWith("h", "y"));
    types::v1::CcPolicy policy;
    policy.set_name("ccPolicies/c");
    policy.mutable_spec()->set_window_bytes(65536);
    fleet_.Put(policy);
    fleet_.Put(TenantWith("a"));
    fleet_.Put(TenantWith("b"));
    fleet_.Put(PoolWith("a", "p", "z"));
    fleet_.Put(PoolWith("b", "q", ""));
    types::v1::Gateway seen = GatewayWith("h");
    seen.mutable_status()->add_addresses("192.0.2.7");
    fleet_.Put(seen, model::Part::kStatus);
  }
  std::vector<ConfigObject> Full(const std::string& gateway) {
    return controllers::FullConfig(fleet_.view, fleet_.placement, gateway);
  }
  Touches Touched() {
    return controllers::Touched(fleet_.view, fleet_.placement, fleet_.changed, fleet_.moves);
  }

  Fleet fleet_;
};

TEST_F(GatewayConfigTest, Full_HasWhatTheGatewayServesInTheOrderOfItsUse) {
  EXPECT_EQ(NamesOf(Full("gateways/g")),
            (std::vector<std::string>{"gateways/g", "ccPolicies/c", "tenants/a", "tenants/b",
                                      "tenants/a/pools/p", "tenants/b/pools/q", "gateways/h"}));
  EXPECT_EQ(
      NamesOf(Full("gateways/h")),
      (std::vector<std::string>{"gateways/h", "ccPolicies/c", "tenants/b", "tenants/b/pools/q"}))
      << "a peer without addresses is left out";
}

TEST_F(GatewayConfigTest, Objects_CarryWhatIsNeededAndNoSelectors) {
  const auto objects = Full("gateways/g");
  EXPECT_EQ(objects[1].cc_policy().window_bytes(), 65536u);
  EXPECT_EQ(objects[1].revision(), 3);
  EXPECT_FALSE(objects[4].pool().spec().has_gateways());
  ASSERT_EQ(objects[6].peer().addresses_size(), 1);
  EXPECT_EQ(objects[6].peer().addresses(0), "192.0.2.7");
}

TEST_F(GatewayConfigTest, EachChange_TouchesTheGatewaysThatNeedIt) {
  fleet_.Put(TenantWith("a"));
  EXPECT_EQ(Touched(), (Touches{{"gateways/g", {"tenants/a"}}}));
  fleet_.Put(PoolWith("b", "q", "", 4));
  EXPECT_EQ(Touched(), (Touches{{"gateways/g", {"tenants/b/pools/q"}},
                                {"gateways/h", {"tenants/b/pools/q"}}}));
  // The pool leaves one gateway and moves to another, and its tenant with it.
  fleet_.Put(PoolWith("a", "p", "y"));
  EXPECT_EQ(Touched(), (Touches{{"gateways/g", {"tenants/a", "tenants/a/pools/p"}},
                                {"gateways/h", {"tenants/a", "tenants/a/pools/p"}}}));
  const auto gone = controllers::ConfigOf(fleet_.view, fleet_.placement, "gateways/g",
                                          model::ParseResourceName("tenants/a/pools/p").value());
  EXPECT_TRUE(gone.removed());
  EXPECT_EQ(gone.revision(), fleet_.view.revision);
  // A gateway changes its zone, and with it its pools.
  fleet_.Put(GatewayWith("h", "z"));
  EXPECT_EQ(Touched(), (Touches{{"gateways/h", {"gateways/h", "tenants/a", "tenants/a/pools/p"}}}));
  fleet_.Delete("ccPolicies/c");
  EXPECT_EQ(Touched(),
            (Touches{{"gateways/g", {"ccPolicies/c"}}, {"gateways/h", {"ccPolicies/c"}}}));
}

TEST_F(GatewayConfigTest, Status_TouchesPeersOnlyByAddresses) {
  types::v1::Gateway seen = GatewayWith("g");
  seen.mutable_status()->set_connected(true);
  fleet_.Put(seen, model::Part::kStatus);
  EXPECT_EQ(Touched(), Touches());
  seen.mutable_status()->add_addresses("192.0.2.8");
  fleet_.Put(seen, model::Part::kStatus);
  EXPECT_EQ(Touched(), (Touches{{"gateways/h", {"gateways/g"}}}));
}

TEST_F(GatewayConfigTest, Removals_ComeLastAndTheOtherWayRound) {
  fleet_.Delete("tenants/a/pools/p");
  fleet_.Delete("tenants/a");
  std::vector<ConfigObject> objects;
  for (const char* name :
       {"tenants/a", "ccPolicies/none", "tenants/b/pools/q", "tenants/a/pools/p", "gateways/g"}) {
    objects.push_back(controllers::ConfigOf(fleet_.view, fleet_.placement, "gateways/g",
                                            model::ParseResourceName(name).value()));
  }
  controllers::SortForApply(objects);
  EXPECT_EQ(NamesOf(objects),
            (std::vector<std::string>{"gateways/g", "tenants/b/pools/q", "-tenants/a/pools/p",
                                      "-tenants/a", "-ccPolicies/none"}));
}

}  // namespace
}  // namespace rocegw::testing::gateway_config
