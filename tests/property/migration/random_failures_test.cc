// SPDX-License-Identifier: Apache-2.0
// Random plans, failures and persons: every run ends in a state that a person can leave, and none
// breaks an invariant. The record is written and read between any two events, so that a controller
// may be killed anywhere.
#include <gtest/gtest.h>

#include <algorithm>

#include "controlplane/migration/simulate/simulation.h"
#include "tests/support/migration/plans.h"
#include "tests/support/random.h"

namespace rocegw::migration {
namespace {

using S = MigrationState;
using testing::Random;

constexpr int kRuns = 400;
constexpr int kMostOrders = 400;

PlanShape RandomShape(Random& random) {
  PlanShape shape;
  switch (random.Below(4)) {
    case 0:
      shape = FlagDay(static_cast<uint32_t>(random.Between(2, 12)));
      break;
    case 1:
      shape = Rolling(static_cast<uint32_t>(random.Between(2, 24)));
      break;
    default:
      shape.nodes = static_cast<uint32_t>(random.Between(2, 24));
  }
  if (random.Coin()) shape.per_domain = "rack";
  shape.max_unavailable = static_cast<uint32_t>(random.Between(1, 5));
  shape.votes = static_cast<uint32_t>(random.Below(4));
  return shape;
}

Failure RandomFailure(Random& random, const Plan& plan) {
  Failure failure;
  failure.kind =
      static_cast<FailureKind>(random.Below(static_cast<size_t>(FailureKind::kGateUnknown) + 1));
  if (failure.kind == FailureKind::kGate || failure.kind == FailureKind::kGateUnknown) {
    failure.wave = static_cast<uint32_t>(random.Below(plan.waves.size()));
  } else {
    failure.node = static_cast<uint32_t>(random.Below(plan.nodes.size()));
    failure.step = static_cast<Step>(random.Below(static_cast<size_t>(Step::kVerifyOld) + 1));
  }
  failure.times = static_cast<uint32_t>(random.Between(1, 2));
  failure.back_after = random.Coin() ? static_cast<int64_t>(random.Between(1, 1000)) : 0;
  return failure;
}

bool IsEnd(S state) {
  return state == S::kRolledBack || state == S::kFinalized || state == S::kAborted;
}

// An order out of those that are accepted; once `tired`, one that leads to an end.
Order Choose(Random& random, const std::vector<Order>& exits, bool tired) {
  if (tired) {
    for (const Verb verb :
         {Verb::kSkip, Verb::kRollback, Verb::kFinalize, Verb::kResume, Verb::kApprove}) {
      const auto found = std::ranges::find(exits, verb, &Order::verb);
      if (found != exits.end()) return *found;
    }
  }
  return exits[random.Below(exits.size())];
}

class World {
 public:
  World(uint64_t seed) : random_(seed), plan_(TestPlan(RandomShape(random_))) {}

  void Run() {
    ASSERT_FALSE(plan_.nodes.empty());
    Simulation::Options options;
    options.seed = random_.Bits();
    options.stores = true;
    options.approves = random_.Coin();
    for (size_t i = random_.Below(5); i != 0; --i)
      options.failures.push_back(RandomFailure(random_, plan_));
    Simulation simulation(plan_, options);
    ASSERT_EQ(simulation.Begin(), "");
    int orders = 0;
    for (; orders < kMostOrders; ++orders) {
      simulation.RunUntilQuiet();
      ASSERT_FALSE(simulation.exhausted());
      const Record& record = simulation.record();
      if (IsEnd(record.state)) break;
      const std::vector<Order> exits = Exits(plan_, record);
      ASSERT_FALSE(exits.empty()) << WordOf(record.state) << " has no way out: " << record.reason;
      const bool tired = orders > 20;
      // A person repairs the cluster before the migration goes on.
      if (tired || random_.Coin()) {
        simulation.Bring(InventorySeen{plan_.inventory_hash});
        for (NodeFacts& node : simulation.cluster().facts()) {
          node.journal_intact = true;
          node.gateway_version = plan_.newest_version;
        }
      }
      (void)simulation.Give(Choose(random_, exits, tired));
    }
    EXPECT_TRUE(IsEnd(simulation.record().state))
        << "after " << orders << " orders " << WordOf(simulation.record().state) << " "
        << simulation.record().reason;
    EXPECT_EQ(simulation.unread(), "");
    for (const Violation& violation : simulation.violations()) {
      ADD_FAILURE() << "invariant " << violation.invariant << " at " << violation.time << ": "
                    << violation.text;
    }
  }

 private:
  Random random_;
  const Plan plan_;
};

TEST(Migration, RandomFailuresEndWhereAPersonCanLeave) {
  const uint64_t seed = testing::TestSeed(31);
  for (int run = 0; run < kRuns && !::testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    World(seed + static_cast<uint64_t>(run)).Run();
  }
}

}  // namespace
}  // namespace rocegw::migration
