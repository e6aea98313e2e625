// SPDX-License-Identifier: Apache-2.0
// Each invariant is broken once, by a controller, an agent or a cluster that does wrong, and the
// check says so: a check that finds nothing proves something only if it would find it.
#include "controlplane/migration/check/invariants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "controlplane/migration/drive/controller.h"
#include "controlplane/migration/simulate/simulation.h"
#include "tests/support/migration/plans.h"

namespace rocegw::migration {
namespace {

using Tamper = std::function<void(Record&, Transition&)>;

bool Violates(const std::vector<Violation>& violations, int invariant) {
  return std::ranges::count(violations, invariant, &Violation::invariant) != 0;
}

std::vector<Violation> ViolationsOf(const PlanShape& shape, Tamper tamper,
                                    const std::function<void(Simulation&)>& prepare = {}) {
  const Plan plan = TestPlan(shape);
  Simulation::Options options;
  options.tamper = std::move(tamper);
  Simulation simulation(plan, options);
  if (prepare) prepare(simulation);
  simulation.Begin();
  simulation.RunUntilQuiet();
  if (simulation.record().state == MigrationState::kCompleted) {
    simulation.Give({.verb = Verb::kFinalize});
    simulation.RunUntilQuiet();
  }
  return simulation.violations();
}

// Returns a tamperer that changes the step of a command, in the record and in what is sent.
Tamper Replace(Step from, Step to) {
  return [=](Record& record, Transition& transition) {
    for (Intent& intent : transition.intents) {
      auto* const command = std::get_if<CommandIntent>(&intent);
      if (command == nullptr || command->step != from) continue;
      command->step = to;
      record.nodes[command->node].pending->step = to;
    }
  };
}

TEST(Invariants, AGoodRunBreaksNone) {
  for (const PlanShape& shape : {PlanShape{}, Rolling(6), FlagDay(6)})
    EXPECT_TRUE(ViolationsOf(shape, {}).empty());
}

TEST(Invariants, I01_DataThatDiffers) {
  const auto broken = [](Simulation& simulation) {
    for (NodeFacts& node : simulation.cluster().facts()) node.journal_intact = false;
  };
  const auto believe = [](Record& record, Transition&) {
    for (NodeRecord& node : record.nodes) {
      if (node.state == NodeState::kBlocked) node.state = NodeState::kSoaking;
    }
  };
  EXPECT_TRUE(Violates(ViolationsOf({}, believe, broken), 1));
  EXPECT_TRUE(ViolationsOf({}, {}, broken).empty());
}

TEST(Invariants, I02_StopWithoutDrain) {
  EXPECT_TRUE(Violates(ViolationsOf(Rolling(6), Replace(Step::kDrain, Step::kStop)), 2));
}

TEST(Invariants, I03_OldPathRemovedBeforeTheSoak) {
  EXPECT_TRUE(Violates(ViolationsOf({}, Replace(Step::kVerify, Step::kRemoveOld)), 3));
}

TEST(Invariants, I03_NoPathLeft) {
  EXPECT_TRUE(Violates(ViolationsOf({}, Replace(Step::kAddPath, Step::kRemoveOld)), 3));
}

TEST(Invariants, I04_TooManyNodes) {
  const auto start_all = [](Record& record, Transition&) {
    if (record.state != MigrationState::kRunning) return;
    for (NodeRecord& node : record.nodes) {
      if (node.state == NodeState::kPending) node.activity = Activity::kForward;
    }
  };
  EXPECT_TRUE(Violates(ViolationsOf({}, start_all), 4));
}

TEST(Invariants, I04_TwoDomainsAndTwoVotes) {
  const PlanShape shape{.per_domain = "rack", .max_unavailable = 6, .votes = 6};
  const auto start_two = [](Record& record, Transition&) {
    if (record.wave != 1 || record.state != MigrationState::kRunning) return;
    for (const uint32_t i : {1U, 2U}) {
      if (record.nodes[i].state == NodeState::kPending)
        record.nodes[i].activity = Activity::kForward;
    }
  };
  const std::vector<Violation> violations = ViolationsOf(shape, start_two);
  const auto says = [&](const char* text) {
    return std::ranges::any_of(violations, [&](const Violation& violation) {
      return violation.invariant == 4 && violation.text.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(says("failure domains"));
  EXPECT_TRUE(says("votes"));
}

TEST(Invariants, I04_WithoutTheStoragesAgreement) {
  EXPECT_TRUE(Violates(ViolationsOf(Rolling(6), Replace(Step::kOkToStop, Step::kHealth)), 4));
}

TEST(Invariants, I05_ACommandThatIsNotStored) {
  bool forgotten = false;
  const auto forget = [&](Record& record, Transition& transition) {
    for (const Intent& intent : transition.intents) {
      const auto* const command = std::get_if<CommandIntent>(&intent);
      if (command != nullptr && !std::exchange(forgotten, true))
        record.nodes[command->node].pending.reset();
    }
  };
  EXPECT_TRUE(Violates(ViolationsOf({}, forget), 5));
}

TEST(Invariants, I06_AnAgentThatObeysAReplacedController) {
  int sent = 0;
  const auto old_epoch = [&](Record&, Transition& transition) {
    for (Intent& intent : transition.intents) {
      auto* const command = std::get_if<CommandIntent>(&intent);
      if (command != nullptr && ++sent == 3) command->epoch = 0;
    }
  };
  EXPECT_TRUE(
      Violates(ViolationsOf({}, old_epoch,
                            [](Simulation& simulation) { simulation.cluster().ForgetFencing(); }),
               6));
  sent = 0;
  EXPECT_FALSE(Violates(ViolationsOf({}, old_epoch), 6)) << "the agent's book refuses it";
}

TEST(Invariants, I07_AChangeWithoutBackup) {
  EXPECT_TRUE(Violates(ViolationsOf({}, Replace(Step::kBackup, Step::kHealth)), 7));
}

TEST(Invariants, I07_ANodeThatIsNotAsBefore) {
  const Plan plan = TestPlan({});
  Simulation simulation(plan, {});
  simulation.Begin();
  simulation.RunUntilQuiet();
  for (NodeFacts& node : simulation.cluster().facts()) node.original_hash = "something else";
  simulation.record().nodes[0].backup_hash = "something else";
  simulation.Give({.verb = Verb::kRollback});
  simulation.RunUntilQuiet();
  for (NodeFacts& node : simulation.cluster().facts()) node.original_hash = "yet another";
  simulation.record().nodes[0].state = NodeState::kRolledBack;
  simulation.Bring(Tick{});
  EXPECT_TRUE(Violates(simulation.violations(), 7) || Violates(simulation.violations(), 11));
}

TEST(Invariants, I08_AStartInSpiteOfDrift) {
  const Plan plan = TestPlan({});
  Simulation::Options options;
  options.tamper = [](Record& record, Transition&) {
    if (record.state == MigrationState::kPaused) record.nodes[3].activity = Activity::kForward;
  };
  Simulation simulation(plan, options);
  simulation.Begin();
  simulation.Bring(InventorySeen{"other"});
  EXPECT_TRUE(Violates(simulation.violations(), 8));
}

TEST(Invariants, I09_AWaveBeforeTheGatesHeld) {
  const auto skip_gate = [](Record& record, Transition& transition) {
    for (Intent& intent : transition.intents) {
      if (!std::holds_alternative<GateIntent>(intent) || record.wave != 0) continue;
      record.waves[record.wave].state = WaveState::kVerified;
      ++record.wave;
      record.waves[record.wave].approved = true;
      record.gate_pending = false;
    }
  };
  EXPECT_TRUE(Violates(ViolationsOf({}, skip_gate), 9));
}

TEST(Invariants, I10_BytesThatTakeTheOldPath) {
  const auto believe = [](Record& record, Transition&) {
    for (NodeRecord& node : record.nodes) {
      if (node.state == NodeState::kPathAdded) node.state = NodeState::kSoaking;
    }
  };
  EXPECT_TRUE(Violates(ViolationsOf({}, believe), 10));
}

TEST(Invariants, I11_AChangeThatIsNotInTheChain) {
  const auto hide = [](Record&, Transition& transition) {
    if (transition.changes.size() > 1) transition.changes.pop_back();
  };
  EXPECT_TRUE(Violates(ViolationsOf({}, hide), 11));
  const auto edit = [](Record&, Transition& transition) {
    for (Change& change : transition.changes) change.who = "mallory";
  };
  EXPECT_TRUE(Violates(ViolationsOf({}, edit), 11));
}

TEST(Invariants, I12_AGatewayOfAnotherVersion) {
  const auto with_version = [](const char* version) {
    return [=](Simulation& simulation) {
      for (NodeFacts& node : simulation.cluster().facts()) node.gateway_version = version;
    };
  };
  // The version is neither asked for nor reported.
  const Tamper without_health = Replace(Step::kHealth, Step::kBackup);
  EXPECT_TRUE(Violates(ViolationsOf({}, without_health, with_version("")), 12));
  for (const char* version : {"", "9.0.0"}) {
    EXPECT_TRUE(ViolationsOf({}, {}, with_version(version)).empty())
        << "the controller asks before it changes anything";
  }
}

TEST(Invariants, EachHasAText) {
  for (int i = 1; i <= 12; ++i) EXPECT_STRNE(InvariantText(i), "?");
  EXPECT_STREQ(InvariantText(13), "?");
}

}  // namespace
}  // namespace rocegw::migration
