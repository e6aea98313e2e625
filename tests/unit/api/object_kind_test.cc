// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/writes/object_kind.h"

#include <gtest/gtest.h>

#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::object_kind {
namespace {

using api::HoldersOf;
using api::RelationsOf;
using Texts = std::vector<std::string>;

sync::Fleet Wrap(const Fleet& fleet) {
  return {.view = fleet.view, .placement = fleet.placement, .guards = {}};
}

types::v1::RoleBinding Binding(types::v1::Role role, const std::string& tenant) {
  types::v1::RoleBinding binding;
  binding.set_name("roleBindings/r");
  binding.mutable_spec()->set_role(role);
  binding.mutable_spec()->set_tenant(tenant);
  return binding;
}

TEST(Relations, Pool_NeedsItsTenantAndPolicy_AndTakesPartInWhatItChanges) {
  Fleet fleet;
  types::v1::Pool pool = PoolWith("a", "p", "z");
  EXPECT_EQ(RelationsOf(Wrap(fleet), pool).needs, Texts{"tenants/a"});
  EXPECT_EQ(RelationsOf(Wrap(fleet), pool).guards, Texts{"guard/references/tenants/a"});
  fleet.Put(pool);
  EXPECT_EQ(RelationsOf(Wrap(fleet), pool).guards, Texts()) << "it is there already";
  pool.mutable_spec()->set_cc_policy("ccPolicies/c");
  EXPECT_EQ(RelationsOf(Wrap(fleet), pool).needs, (Texts{"tenants/a", "ccPolicies/c"}));
  EXPECT_EQ(RelationsOf(Wrap(fleet), pool).guards, Texts{"guard/references/ccPolicies/c"});
  fleet.Put(pool);
  EXPECT_EQ(RelationsOf(Wrap(fleet), pool).guards, Texts());
  pool.mutable_spec()->mutable_quota()->mutable_committed()->set_qps(1);
  EXPECT_EQ(RelationsOf(Wrap(fleet), pool).guards, Texts{"guard/capacity"});
  pool.mutable_spec()->set_cc_policy("ccPolicies/d");
  EXPECT_EQ(
      RelationsOf(Wrap(fleet), pool).guards,
      (Texts{"guard/references/ccPolicies/d", "guard/references/ccPolicies/c", "guard/capacity"}));
}

TEST(Relations, RoleBinding_TenantGoesWithTenantRolesOnly) {
  const sync::Fleet fleet;
  EXPECT_TRUE(RelationsOf(fleet, Binding(types::v1::TENANT_ADMIN, "tenants/a")).violations.empty());
  EXPECT_TRUE(RelationsOf(fleet, Binding(types::v1::VIEWER, "")).violations.empty());
  EXPECT_TRUE(RelationsOf(fleet, Binding(types::v1::ADMIN, "")).violations.empty());
  EXPECT_EQ(RelationsOf(fleet, Binding(types::v1::TENANT_ADMIN, "")).violations.size(), 1u);
  EXPECT_EQ(RelationsOf(fleet, Binding(types::v1::ADMIN, "tenants/a")).violations.size(), 1u);
  EXPECT_EQ(RelationsOf(fleet, Binding(types::v1::NODE, "")).violations.size(), 1u);
}

TEST(Holders, TenantIsHeldByItsPoolsAndBindings) {
  Fleet fleet;
  const auto holders = [&](const std::string& name) {
    return HoldersOf(Wrap(fleet), model::ParseResourceName(name).value()).names;
  };
  fleet.Put(PoolWith("ab", "p", "z"));
  EXPECT_EQ(holders("tenants/a"), Texts());
  fleet.Put(PoolWith("a", "p", "z"));
  fleet.Put(Binding(types::v1::TENANT_ADMIN, "tenants/a"));
  EXPECT_EQ(holders("tenants/a"), (Texts{"tenants/a/pools/p", "roleBindings/r"}));
  EXPECT_EQ(holders("gateways/g"), Texts());
}

TEST(Holders, PolicyIsHeldByPoolsThatNameIt) {
  Fleet fleet;
  types::v1::Pool pool = PoolWith("a", "p", "z");
  pool.mutable_spec()->set_cc_policy("ccPolicies/c");
  fleet.Put(pool);
  const auto name = model::ParseResourceName("ccPolicies/c").value();
  EXPECT_EQ(HoldersOf(Wrap(fleet), name).names, Texts{"tenants/a/pools/p"});
  EXPECT_EQ(HoldersOf(Wrap(fleet), name).guards, Texts{"guard/references/ccPolicies/c"});
}

}  // namespace
}  // namespace rocegw::testing::object_kind
