// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/fleet_follower.h"

#include <gtest/gtest.h>

#include <future>

#include "controlplane/model/stored.h"
#include "controlplane/store/local/memory_store.h"
#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::fleet_follower {
namespace {

using model::Part;
using sync::FleetFollower;

class FleetFollowerTest : public ::testing::Test {
 protected:
  template <typename Object>
  store::Revision Put(const Object& object) {
    const auto name = model::ParseResourceName(object.name()).value();
    return Write(
        store::Operation::Put(model::KeyOf(Part::kIntent, name), object.SerializeAsString()));
  }
  store::Revision Write(const store::Operation& operation) {
    const auto result = store_->Txn({.compares = {}, .then = {operation}, .otherwise = {}});
    EXPECT_TRUE(result.ok());
    return result.ok() ? result.value().revision : 0;
  }
  std::unique_ptr<FleetFollower> Start() {
    auto follower = FleetFollower::Start(*store_);
    EXPECT_TRUE(follower.ok());
    return follower.ok() ? std::move(*follower) : nullptr;
  }
  static void Wait(FleetFollower& follower, store::Revision revision) {
    std::promise<void> reached;
    follower.WhenReached(revision, [&] { reached.set_value(); });
    reached.get_future().wait();
  }

  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
};

TEST_F(FleetFollowerTest, Start_HasReadWhatIsThere) {
  Put(GatewayWith("g", "z"));
  const store::Revision last = Put(PoolWith("a", "p", "z"));
  const auto follower = Start();
  follower->Read([&](const sync::Fleet& fleet) {
    EXPECT_EQ(fleet.view.revision, last);
    EXPECT_TRUE(fleet.placement.PoolsOn("gateways/g").contains("tenants/a/pools/p"));
  });
}

TEST_F(FleetFollowerTest, Changes_AreSeenInOrderAndTold) {
  const auto follower = Start();
  std::vector<std::string> told;
  follower->Listen([&](const sync::Fleet&, const sync::FleetChange& change) {
    for (const auto& changed : change.changed) told.push_back(changed.name.Text());
    for (const auto& move : change.moves) told.push_back(move.pool + " at " + move.gateway);
  });
  Put(GatewayWith("g", "z"));
  Put(PoolWith("a", "p", "z"));
  const store::Revision guarded = Write(store::Operation::Put("guard/capacity", ""));
  Wait(*follower, guarded);
  EXPECT_EQ(told, (std::vector<std::string>{"gateways/g", "tenants/a/pools/p",
                                            "tenants/a/pools/p at gateways/g"}));
  follower->Read([&](const sync::Fleet& fleet) {
    EXPECT_EQ(fleet.guards.at("guard/capacity"), guarded);
    EXPECT_EQ(fleet.view.revision, guarded);
  });
}

TEST_F(FleetFollowerTest, WhenReached_PastIsCalledAtOnce_FutureWhenItComes) {
  const auto follower = Start();
  const store::Revision first = Put(TenantWith("a"));
  Wait(*follower, first);
  bool at_once = false;
  follower->WhenReached(first, [&] { at_once = true; });
  EXPECT_TRUE(at_once);
  std::promise<void> reached;
  auto future = reached.get_future();
  follower->WhenReached(first + 1, [&] { reached.set_value(); });
  EXPECT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  Put(TenantWith("b"));
  future.wait();
}

TEST_F(FleetFollowerTest, EndsWhileOthersWait) {
  auto follower = Start();
  bool called = false;
  follower->WhenReached(1000, [&] { called = true; });
  follower.reset();
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace rocegw::testing::fleet_follower
