// SPDX-License-Identifier: Apache-2.0
// Incrementally updated placement, compared with one computed afresh from the view, over random
// changes.
#include <gtest/gtest.h>

#include <random>

#include "controlplane/controllers/gateway_config.h"
#include "controlplane/model/label_selector.h"
#include "controlplane/model/objects_digest.h"
#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::placement {
namespace {

using controllers::Amounts;
using controllers::Names;

class PlacementModel : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, PlacementModel, ::testing::Range<uint32_t>(1, 21));

std::string Text(const types::v1::ConfigObject& object) {
  types::v1::ConfigObject copy = object;
  // A peer's status may change without its addresses.
  if (copy.has_peer()) copy.clear_revision();
  return copy.SerializeAsString();
}

void ExpectAsWorkedOutAnew(const Fleet& fleet) {
  std::map<std::string, Names> on;
  std::map<std::string, uint64_t> own_qps;
  for (const auto& [name, tenant] : fleet.view.tenants)
    own_qps[name] = tenant.object.spec().quota().committed().qps();
  std::map<std::pair<std::string, std::string>, uint64_t> tenant_qps;
  for (const auto& [pool_name, pool] : fleet.view.pools) {
    const std::string tenant = model::ParseResourceName(pool_name)->Tenant();
    Names gateways;
    for (const auto& [name, gateway] : fleet.view.gateways) {
      if (!model::Selects(pool.object.spec().gateways(), gateway.object)) continue;
      gateways.insert(name);
      on[name].insert(pool_name);
      tenant_qps[{name, tenant}] += pool.object.spec().quota().committed().qps();
    }
    EXPECT_EQ(fleet.placement.GatewaysOf(pool_name).Sorted(), gateways) << pool_name;
  }
  const size_t kind = 3;
  ASSERT_EQ(Amounts::Name(kind), "qps");
  for (const auto& [name, gateway] : fleet.view.gateways) {
    EXPECT_EQ(fleet.placement.PoolsOn(name).Sorted(), on[name]) << name;
    uint64_t all = 0;
    for (const auto& [key, pools] : tenant_qps) {
      if (key.first == name) all += std::max(pools, own_qps[key.second]);
    }
    EXPECT_EQ(fleet.placement.CommittedOn(name)[kind], all) << name;
    for (const auto& [tenant_name, tenant] : fleet.view.tenants) {
      const uint64_t own = tenant_qps[{name, tenant_name}];
      EXPECT_EQ(fleet.placement.CommittedOn(name, tenant_name)[kind], own) << name << tenant_name;
    }
  }
}

TEST_P(PlacementModel, KeptUpToDate_IsAsWorkedOutAnew) {
  std::mt19937 random(GetParam());
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  const auto below = [&](uint32_t bound) { return std::to_string(random() % bound); };
  Fleet fleet;
  // Configuration of each gateway if it applied the reported changes.
  std::map<std::string, std::map<std::string, std::string>> held;
  for (int step = 0; step < 300; ++step) {
    Names appeared = {"gateways/g0", "gateways/g1", "gateways/g2",
                      "gateways/g3", "gateways/g4", "gateways/g5"};
    for (const auto& [name, gateway] : fleet.view.gateways) appeared.erase(name);
    const uint32_t dice = random() % 10;
    if (dice < 2) {
      fleet.Put(GatewayWith("g" + below(6), random() % 3 == 0 ? "" : "z" + below(3)));
    } else if (dice == 2) {
      fleet.Delete("gateways/g" + below(6));
    } else if (dice == 3) {
      types::v1::Gateway seen = GatewayWith("g" + below(6));
      for (uint32_t i = random() % 3; i > 0; --i)
        seen.mutable_status()->add_addresses("192.0.2." + below(9));
      fleet.Put(seen, model::Part::kStatus);
    } else if (dice == 4) {
      fleet.Delete("tenants/t" + below(3) + "/pools/p" + below(3));
    } else if (dice == 5) {
      types::v1::Tenant tenant = TenantWith("t" + below(3));
      if (random() % 2 == 0)
        tenant.mutable_spec()->mutable_quota()->mutable_committed()->set_qps(random() % 20);
      fleet.Put(tenant);
    } else if (dice == 6) {
      fleet.Delete("tenants/t" + below(3));
    } else {
      types::v1::Pool pool = PoolWith("t" + below(3), "p" + below(3),
                                      random() % 4 == 0 ? "" : "z" + below(3), random() % 9);
      if (random() % 3 == 0)
        pool.mutable_spec()->mutable_gateways()->add_names("gateways/g" + below(6));
      fleet.Put(pool);
    }
    ExpectAsWorkedOutAnew(fleet);
    const auto touched =
        controllers::Touched(fleet.view, fleet.placement, fleet.changed, fleet.moves);
    for (const auto& [gateway, names] : touched) {
      for (const std::string& name : names) {
        const auto object = controllers::ConfigOf(fleet.view, fleet.placement, gateway,
                                                  *model::ParseResourceName(name));
        held[gateway].erase(name);
        if (!object.removed()) held[gateway][name] = Text(object);
      }
    }
    std::erase_if(held,
                  [&](const auto& entry) { return !fleet.view.gateways.contains(entry.first); });
    for (const auto& [name, gateway] : fleet.view.gateways) {
      std::map<std::string, std::string> full;
      model::ObjectsDigest digest;
      for (const auto& object : controllers::FullConfig(fleet.view, fleet.placement, name)) {
        full[object.name()] = Text(object);
        digest.Add(object);
      }
      EXPECT_EQ(controllers::ConfigDigest(fleet.view, fleet.placement, name), digest.value());
      // A new gateway gets everything.
      if (appeared.contains(name)) held[name] = full;
      EXPECT_EQ(held[name].size(), full.size()) << name << " at step " << step;
      EXPECT_TRUE(held[name] == full) << name << " at step " << step;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace rocegw::testing::placement
