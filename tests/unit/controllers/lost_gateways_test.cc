// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/lost_gateways.h"

#include <gtest/gtest.h>

#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::lost_gateways {
namespace {

using Names = std::vector<std::string>;

struct Case {
  const char* what;
  bool connected;
  const char* controller;
  bool lost;
  bool lost_at_a_start;
};

constexpr Case kCases[] = {
    {"connected to one that is there", true, "a", false, false},
    {"connected to one that is gone", true, "c", true, true},
    {"left one that is gone", false, "c", false, false},
    {"connected, as an older version says it", true, "", false, true},
    {"never came", false, "", false, false},
};

TEST(LostGateways, AreThoseOfControllersThatAreGone) {
  const controllers::Replicas replicas = {{"a", {}}, {"b", {}}};
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.what);
    Fleet fleet;
    fleet.Put(GatewayWith("g"));
    types::v1::Gateway status = GatewayWith("g");
    status.mutable_status()->set_connected(one.connected);
    status.mutable_status()->set_controller(one.controller);
    fleet.Put(status, model::Part::kStatus);
    EXPECT_EQ(controllers::LostGateways(fleet.view, replicas, false),
              one.lost ? Names{"gateways/g"} : Names());
    EXPECT_EQ(controllers::LostGateways(fleet.view, replicas, true),
              one.lost_at_a_start ? Names{"gateways/g"} : Names());
  }
}

}  // namespace
}  // namespace rocegw::testing::lost_gateways
