// SPDX-License-Identifier: Apache-2.0
// Whole migrations with failures: the cases of docs/operate/migration.md, by their numbers.
#include "controlplane/migration/simulate/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "controlplane/migration/drive/command_book.h"
#include "tests/support/migration/plans.h"

namespace rocegw::migration {
namespace {

using S = MigrationState;

struct Case {
  const char* name;
  PlanShape shape;
  std::vector<const char*> failures;
  S ends = S::kPaused;  // without a person
  PauseReason reason = PauseReason::kNone;
  NodeState second = NodeState::kDone;  // state of the node n2
};

std::string Explain(const Simulation& simulation) {
  return std::string(WordOf(simulation.record().state)) + " " + simulation.record().reason +
         (simulation.violations().empty() ? "" : "; " + simulation.violations()[0].text);
}

class FailureCases : public ::testing::TestWithParam<Case> {};

TEST_P(FailureCases, EndsWhereAPersonCanLeave) {
  const Case& row = GetParam();
  const Plan plan = TestPlan(row.shape);
  Simulation::Options options;
  options.stores = true;
  for (const char* text : row.failures) {
    std::string problem;
    options.failures.push_back(ReadFailure(text, plan, problem));
    ASSERT_EQ(problem, "");
  }
  Simulation simulation(plan, options);
  ASSERT_EQ(simulation.Begin(), "");
  simulation.RunUntilQuiet();
  EXPECT_EQ(simulation.record().state, row.ends) << Explain(simulation);
  EXPECT_EQ(simulation.record().pause_reason, row.reason) << Explain(simulation);
  EXPECT_EQ(simulation.record().nodes[1].state, row.second)
      << WordOf(simulation.record().nodes[1].state);
  EXPECT_TRUE(simulation.violations().empty()) << Explain(simulation);
  EXPECT_FALSE(simulation.exhausted());
  EXPECT_EQ(simulation.unread(), "");
  if (row.ends == S::kFinalized || row.ends == S::kRolledBack) return;
  EXPECT_FALSE(Exits(plan, simulation.record()).empty());
  if (row.ends == S::kCompleted) return;
  // The way back is always open.
  EXPECT_EQ(simulation.Give({.verb = Verb::kRollback}), "");
  simulation.RunUntilQuiet();
  for (int i = 0; i < 20 && simulation.record().state == S::kFailed; ++i) {
    const std::vector<Order> exits = Exits(plan, simulation.record());
    const auto skip = std::ranges::find(exits, Verb::kSkip, &Order::verb);
    ASSERT_NE(skip, exits.end()) << Explain(simulation);
    EXPECT_EQ(simulation.Give(*skip), "");
    simulation.RunUntilQuiet();
  }
  EXPECT_EQ(simulation.record().state, S::kRolledBack) << Explain(simulation);
  EXPECT_TRUE(simulation.violations().empty()) << Explain(simulation);
}

// `nodes`: of the simulated cluster.
std::vector<Case> Cases(uint32_t nodes) {
  using N = NodeState;
  using P = PauseReason;
  std::vector<Case> cases;
  for (const char* step :
       {"health", "backup", "ok-to-stop", "add-path", "verify-path", "switch", "drain", "verify"}) {
    static std::vector<std::string> texts;
    texts.reserve(64);
    texts.push_back(std::string("node=n2,kind=controller,step=") + step);
    cases.push_back({"01_controller_killed", {}, {texts.back().c_str()}, S::kCompleted});
    texts.push_back(std::string("node=n2,kind=agent,step=") + step);
    cases.push_back({"02_agent_killed", {}, {texts.back().c_str()}, S::kCompleted});
  }
  cases.push_back({"03_gateway_killed_while_it_switches",
                   {},
                   {"node=n2,step=switch,kind=hang"},
                   S::kPaused,
                   P::kNodeFailed,
                   N::kRolledBack});
  cases.push_back({"04_lost_when_cordoned",
                   Rolling(6),
                   {"node=n2,step=drain,kind=lost"},
                   S::kPaused,
                   P::kLostNode,
                   N::kQuarantined});
  cases.push_back({"04_lost_when_switched",
                   Rolling(6),
                   {"node=n2,step=start,kind=lost,back=9999"},
                   S::kPaused,
                   P::kLostNode,
                   N::kQuarantined});
  cases.push_back(
      {"04_lost_for_a_moment", {}, {"node=n2,step=switch,kind=lost,back=60"}, S::kCompleted});
  cases.push_back({"08_silent_fallback",
                   {},
                   {"node=n2,step=verify,kind=fallback"},
                   S::kPaused,
                   P::kNodeFailed,
                   N::kRolledBack});
  cases.push_back({"12_health_is_bad",
                   {},
                   {"node=n2,step=health,kind=never"},
                   S::kPaused,
                   P::kNodeBlocked,
                   N::kBlocked});
  cases.push_back({"11_quorum_at_risk",
                   {},
                   {"node=n2,step=ok-to-stop,kind=never"},
                   S::kPaused,
                   P::kNodeBlocked,
                   N::kBlocked});
  cases.push_back({"13_restarted_without_config",
                   Rolling(6),
                   {"node=n2,step=verify,kind=config"},
                   S::kPaused,
                   P::kNodeFailed,
                   N::kRolledBack});
  cases.push_back({"13_config_written_but_not_restarted",
                   Rolling(6),
                   {"node=n2,step=verify,kind=fallback"},
                   S::kPaused,
                   P::kNodeFailed,
                   N::kRolledBack});
  cases.push_back(
      {"14_drift", {}, {"node=n2,step=drain,kind=drift"}, S::kPaused, P::kDrift, N::kSoaking});
  cases.push_back({"16_rollback_fails",
                   {},
                   {"node=n2,step=verify,kind=fail", "node=n2,step=remove-new,kind=fail"},
                   S::kPaused,
                   P::kNodeFailed,
                   N::kRollbackFailed});
  cases.push_back({"20_out_of_descriptors",
                   {},
                   {"node=n2,step=add-path,kind=fail"},
                   S::kPaused,
                   P::kNodeFailed,
                   N::kRolledBack});
  cases.push_back(
      {"21_p99_gate", {}, {"wave=canary,kind=gate"}, S::kPaused, P::kGate, N::kPending});
  cases.push_back({"21_gate_without_answer",
                   {},
                   {"wave=canary,kind=gate-unknown"},
                   S::kPaused,
                   P::kInconclusive,
                   N::kPending});
  cases.push_back({"28_version_skew",
                   {},
                   {"node=n2,step=health,kind=version"},
                   S::kPaused,
                   P::kNodeBlocked,
                   N::kBlocked});
  cases.push_back({"30_tool_hangs",
                   {},
                   {"node=n2,step=health,kind=hang"},
                   S::kPaused,
                   P::kNodeBlocked,
                   N::kBlocked});
  cases.push_back({"32_unknown_output",
                   {},
                   {"node=n2,step=verify-path,kind=garbage"},
                   S::kPaused,
                   P::kInconclusive,
                   N::kPathAdded});
  cases.push_back({"flag_day", FlagDay(6), {}, S::kCompleted});
  cases.push_back({"flag_day_fails_at_its_start",
                   FlagDay(6),
                   {"node=n2,step=start,kind=fail"},
                   S::kRolledBack,
                   P::kNone,
                   N::kRolledBack});
  cases.push_back({"flag_day_waits_for_a_blocked_node",
                   FlagDay(6),
                   {"node=n2,step=ok-to-stop,kind=fail"},
                   S::kPaused,
                   P::kNodeBlocked,
                   N::kBlocked});
  cases.push_back({"flag_day_loses_a_node",
                   FlagDay(6),
                   {"node=n2,step=switch,kind=lost"},
                   S::kPaused,
                   P::kLostNode,
                   N::kQuarantined});
  cases.push_back({"rolling_restart", Rolling(6), {}, S::kCompleted});
  for (Case& row : cases) row.shape.nodes = nodes;
  return cases;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& row) {
  return std::string(row.param.name) + "_" + std::to_string(row.index);
}

INSTANTIATE_TEST_SUITE_P(SixNodes, FailureCases, ::testing::ValuesIn(Cases(6)), NameOf);
INSTANTIATE_TEST_SUITE_P(FiftyNodes, FailureCases, ::testing::ValuesIn(Cases(50)), NameOf);

TEST(Simulation, BrokenDataPausesAndAPersonDecides) {
  const Plan plan = TestPlan({});
  std::string problem;
  Simulation::Options options;
  options.failures.push_back(ReadFailure("node=n2,step=drain,kind=data", plan, problem));
  Simulation simulation(plan, options);
  simulation.Begin();
  simulation.RunUntilQuiet();
  // The journal stays broken, so that the way back cannot be verified either: a person has to look.
  EXPECT_EQ(simulation.record().nodes[1].state, NodeState::kRollbackFailed);
  EXPECT_EQ(simulation.Give({.verb = Verb::kSkip, .node = 1}), "");
  EXPECT_EQ(simulation.Give({.verb = Verb::kRollback}), "");
  simulation.RunUntilQuiet();
  EXPECT_EQ(simulation.record().state, S::kRolledBack);
}

TEST(Simulation, NodesOfOneDomainGoTogetherAndNoOthers) {
  const Plan plan = TestPlan({.nodes = 30, .per_domain = "rack", .max_unavailable = 4, .votes = 3});
  Simulation simulation(plan, {});
  simulation.Begin();
  simulation.RunUntilQuiet();
  EXPECT_EQ(simulation.record().state, S::kCompleted) << Explain(simulation);
  EXPECT_EQ(simulation.most_unavailable(), 4U);
  EXPECT_TRUE(simulation.violations().empty()) << Explain(simulation);
}

TEST(Simulation, AThousandNodesTakeLessThanTwoSeconds) {
  const PlanShape shape{
      .nodes = 1000, .waves = "canary=1,10%,50%,100%", .per_domain = "rack", .max_unavailable = 10};
  const auto begin = std::chrono::steady_clock::now();
  const Plan plan = TestPlan(shape);
  const auto planned = std::chrono::steady_clock::now() - begin;
  // The bound is for machines that are busy with other tests; docs/operate/migration.md has the
  // figure.
  EXPECT_LT(planned, std::chrono::seconds(2));
  Simulation simulation(plan, {});
  simulation.Begin();
  simulation.RunUntilQuiet();
  EXPECT_EQ(simulation.record().state, S::kCompleted);
  EXPECT_EQ(simulation.commands(), 8000U);
  EXPECT_TRUE(simulation.violations().empty());
}

TEST(Failure, IsReadOrRefused) {
  const Plan plan = TestPlan({});
  std::string problem;
  const Failure failure =
      ReadFailure("node=3,step=switch,kind=lost,times=2,back=60", plan, problem);
  EXPECT_EQ(problem, "");
  EXPECT_EQ(failure.node, 2U);
  EXPECT_EQ(failure.step, Step::kSwitch);
  EXPECT_EQ(failure.back_after, 60);
  for (const char* text : {"", "node", "node=n9", "node=0", "step=switch", "node=n1,kind=x",
                           "kind=gate", "node=n1,times=-1", "node=n1,color=red"}) {
    (void)ReadFailure(text, plan, problem);
    EXPECT_NE(problem, "") << text;
  }
}

TEST(CommandBook, RunsACommandOnceAndRefusesOldControllers) {
  using A = CommandBook::Admission;
  CommandBook book;
  EXPECT_EQ(book.Admit(1, 10), A::kRun);
  EXPECT_EQ(book.Admit(1, 10), A::kRunning);
  EXPECT_EQ(book.Admit(1, 11), A::kStale) << "one at a time";
  EXPECT_EQ(book.Admit(3, 10), A::kRunning);
  EXPECT_EQ(book.Admit(2, 10), A::kStale);
  book.Finish({.command = 10, .outcome = Outcome::kNotYet});
  EXPECT_EQ(book.Admit(3, 10), A::kKnown);
  EXPECT_EQ(book.ResultOf(10)->outcome, Outcome::kNotYet);
  EXPECT_EQ(book.Admit(3, 9), A::kStale);
  EXPECT_EQ(book.Admit(3, 12), A::kRun);
  book.ForgetRunning();
  EXPECT_EQ(book.Admit(3, 12), A::kRun) << "after a restart of the agent";
}

TEST(CommandBook, KeepsABoundedNumberOfResults) {
  CommandBook book;
  for (uint64_t command = 1; command <= 100; ++command) {
    EXPECT_EQ(book.Admit(1, command), CommandBook::Admission::kRun);
    book.Finish({.command = command});
  }
  EXPECT_EQ(book.ResultOf(100 - CommandBook::kKept), nullptr);
  EXPECT_NE(book.ResultOf(100 - CommandBook::kKept + 1), nullptr);
  EXPECT_EQ(book.Admit(1, 50), CommandBook::Admission::kStale);
}

}  // namespace
}  // namespace rocegw::migration
