// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::fleet_view {
namespace {

TEST(StoredKeys, EveryObject_RoundTrips) {
  for (const char* text :
       {"tenants/a", "tenants/a/pools/b", "gateways/g", "ccPolicies/c", "roleBindings/r"}) {
    for (const model::Part part : {model::Part::kIntent, model::Part::kStatus}) {
      const auto name = model::ParseResourceName(text);
      const auto stored = model::ParseKey(model::KeyOf(part, *name));
      ASSERT_TRUE(stored.has_value()) << text;
      EXPECT_EQ(stored->name, *name);
      EXPECT_EQ(stored->part, part);
    }
  }
  EXPECT_EQ(model::KeyPrefix(model::Part::kIntent, model::Collection::kPools, "a"),
            "intent/pools/a/");
  for (const char* key : {"", "intent/", "intent/pools/a", "intent/tenants/A", "election/leader",
                          "intent/tenants/a/b"}) {
    EXPECT_FALSE(model::ParseKey(key).has_value()) << key;
  }
}

TEST(Etag, OnlyOursAreRead) {
  EXPECT_EQ(model::RevisionOfEtag(model::EtagOf(77)), 77);
  for (const char* etag : {"", "77", "r", "r0", "r-1", "r7x", "rx"}) {
    EXPECT_FALSE(model::RevisionOfEtag(etag).has_value()) << etag;
  }
}

TEST(FleetView, StatusAndIntent_AreJoinedAndKeepTheIntentsEtag) {
  Fleet fleet;
  fleet.Put(PoolWith("a", "p", "z", 5));
  EXPECT_TRUE(fleet.changed.at(0).intent);
  types::v1::Pool status;
  status.set_name("tenants/a/pools/p");
  status.mutable_status()->set_gateways_applied(3);
  fleet.Put(status, model::Part::kStatus);
  EXPECT_FALSE(fleet.changed.at(0).intent);
  const auto& known = fleet.view.pools.at("tenants/a/pools/p");
  EXPECT_EQ(known.object.status().gateways_applied(), 3u);
  EXPECT_EQ(known.object.spec().quota().committed().qps(), 5u);
  EXPECT_EQ(known.object.meta().etag(), "r1");
  fleet.Put(PoolWith("a", "p", "z", 6));
  EXPECT_EQ(known.object.status().gateways_applied(), 3u) << "a new intent keeps the status";
  EXPECT_EQ(known.object.meta().etag(), "r3");
  fleet.Delete("tenants/a/pools/p");
  EXPECT_TRUE(fleet.view.pools.empty());
  fleet.Put(status, model::Part::kStatus);
  EXPECT_TRUE(fleet.view.pools.empty()) << "a status alone is no object";
}

TEST(FleetView, GatewayAddresses_AreToldApartFromOtherStatus) {
  Fleet fleet;
  fleet.Put(GatewayWith("g"));
  types::v1::Gateway gateway = GatewayWith("g");
  gateway.mutable_status()->set_connected(true);
  fleet.Put(gateway, model::Part::kStatus);
  EXPECT_FALSE(fleet.changed.at(0).addresses);
  gateway.mutable_status()->add_addresses("192.0.2.1");
  fleet.Put(gateway, model::Part::kStatus);
  EXPECT_TRUE(fleet.changed.at(0).addresses);
  fleet.Put(gateway, model::Part::kStatus);
  EXPECT_FALSE(fleet.changed.at(0).addresses);
  fleet.Delete("gateways/g", model::Part::kStatus);
  EXPECT_TRUE(fleet.changed.at(0).addresses);
}

TEST(FleetView, BindingsOfASubject_FollowEveryChange) {
  Fleet fleet;
  using Names = std::set<std::string>;
  const auto put = [&](const std::string& name, const std::string& subject) {
    types::v1::RoleBinding binding;
    binding.set_name(name);
    binding.mutable_spec()->set_subject(subject);
    fleet.Put(binding);
  };
  put("roleBindings/a", "spiffe://x/user/ann");
  put("roleBindings/b", "spiffe://x/user/ann");
  put("roleBindings/c", "spiffe://x/user/bob");
  EXPECT_EQ(fleet.view.bindings_of.at("spiffe://x/user/ann"),
            (Names{"roleBindings/a", "roleBindings/b"}));
  put("roleBindings/a", "spiffe://x/user/bob");
  EXPECT_EQ(fleet.view.bindings_of.at("spiffe://x/user/ann"), Names{"roleBindings/b"});
  EXPECT_EQ(fleet.view.bindings_of.at("spiffe://x/user/bob"),
            (Names{"roleBindings/a", "roleBindings/c"}));
  fleet.Delete("roleBindings/b");
  fleet.Delete("roleBindings/b");
  EXPECT_FALSE(fleet.view.bindings_of.contains("spiffe://x/user/ann"));
  fleet.Delete("roleBindings/a");
  fleet.Delete("roleBindings/c");
  EXPECT_TRUE(fleet.view.bindings_of.empty());
}

}  // namespace
}  // namespace rocegw::testing::fleet_view
