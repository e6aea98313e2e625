// SPDX-License-Identifier: Apache-2.0
// Failure cases that are more than one injected failure of one step; the others are rows of
// simulation_test.cc. Case 5 (late commands) is in tests/unit/agent_migration, case 15 (a second
// migration of the cluster) in tests/unit/migrations and tests/e2e/migration, case 31 (secrets in
// logs) in redact_test.cc and adapter_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "controlplane/migration/drive/controller.h"
#include "controlplane/migration/simulate/simulation.h"
#include "tests/support/migration/plans.h"

namespace rocegw::migration {
namespace {

using S = MigrationState;

constexpr int64_t kDay = 86'400;
// Begin of simulated time.
constexpr int64_t kBegin = 1'000'000;

class FailureCase : public ::testing::Test {
 protected:
  // Starts a migration of the shape with the failure, if there is one.
  void Run(const PlanShape& shape, const char* failure = nullptr, bool approves = true) {
    plan_ = TestPlan(shape);
    Go(failure, approves);
  }
  void Go(const char* failure, bool approves) {
    Simulation::Options options;
    options.stores = true;
    options.approves = approves;
    std::string problem;
    if (failure != nullptr) options.failures.push_back(ReadFailure(failure, plan_, problem));
    ASSERT_EQ(problem, "");
    simulation_ = std::make_unique<Simulation>(plan_, options);
    ASSERT_EQ(simulation_->Begin(), "");
    simulation_->RunUntilQuiet();
  }
  void TearDown() override {
    if (simulation_ == nullptr) return;
    for (const Violation& violation : simulation_->violations())
      ADD_FAILURE() << violation.invariant << ": " << violation.text;
    EXPECT_EQ(simulation_->unread(), "");
  }

  const Record& record() const { return simulation_->record(); }
  NodeState StateOf(uint32_t node) const { return record().nodes[node].state; }
  std::string Give(Order order) {
    std::string refusal = simulation_->Give(std::move(order));
    simulation_->RunUntilQuiet();
    return refusal;
  }
  // Lets time pass in which nothing else happens.
  Transition PassTime(int64_t seconds) {
    return Handle(plan_, simulation_->record(), Tick{}, record().now + seconds);
  }
  size_t Count(NodeState state) const {
    return static_cast<size_t>(std::ranges::count(record().nodes, state, &NodeRecord::state));
  }

  Plan plan_;
  std::unique_ptr<Simulation> simulation_;
};

TEST_F(FailureCase, C04_ANodeIsLostWhileItsWaveSoaks) {
  // A gate that fails keeps the canary in its soak.
  Run({}, "wave=canary,kind=gate");
  ASSERT_EQ(record().pause_reason, PauseReason::kGate);
  const uint32_t canary = plan_.waves[0].nodes[0];
  ASSERT_EQ(StateOf(canary), NodeState::kSoaking);
  simulation_->Bring(NodeLost{canary});
  simulation_->RunUntilQuiet();
  EXPECT_EQ(StateOf(canary), NodeState::kQuarantined);
  EXPECT_EQ(record().nodes[canary].reason, "lost in SOAKING");
  simulation_->Bring(NodeBack{canary});
  EXPECT_EQ(Give({.verb = Verb::kRetry, .node = canary}), "");
  EXPECT_EQ(Give({.verb = Verb::kResume}), "");
  EXPECT_EQ(record().state, S::kCompleted);
}

TEST_F(FailureCase, C06_MtuMismatchThatOnlyLoadFinds) {
  // The path connects with small packets; the verification writes whole ones.
  Run({}, "node=n2,step=verify,kind=fail");
  EXPECT_EQ(record().state, S::kPaused);
  EXPECT_EQ(StateOf(1), NodeState::kRolledBack);
  EXPECT_EQ(simulation_->cluster().facts()[1].actual, Transport::kTcp);
  EXPECT_EQ(Count(NodeState::kPending), 4U) << "later nodes are as they were";
}

TEST_F(FailureCase, C07_UdpPort4791IsBlockedOneWay) {
  Run({}, "node=n2,step=verify-path,kind=fail");
  EXPECT_EQ(StateOf(1), NodeState::kRolledBack);
  // No I/O was on the new path yet: the preference never changed.
  EXPECT_FALSE(simulation_->cluster().facts()[1].prefers_new);
  EXPECT_EQ(record().pause_reason, PauseReason::kNodeFailed);
}

TEST_F(FailureCase, C09_HalfOfTheNodesAreSwitchedAndADayPasses) {
  Run({.nodes = 6, .waves = "half=50%,100%"}, nullptr, false);
  ASSERT_EQ(record().state, S::kAwaitingApproval);
  EXPECT_EQ(Give({.verb = Verb::kPause}), "");
  EXPECT_TRUE(PassTime(kDay).intents.empty());
  EXPECT_EQ(Count(NodeState::kDone), 3U);
  EXPECT_EQ(Count(NodeState::kPending), 3U);
  EXPECT_EQ(Give({.verb = Verb::kResume}), "");
  EXPECT_EQ(Give({.verb = Verb::kApprove, .wave = 1}), "");
  EXPECT_EQ(record().state, S::kCompleted);
}

TEST_F(FailureCase, C10_PeersThatCannotTalkAreFoundByThePlan) {
  PlanShape shape = FlagDay(6);
  shape.flag_day = false;
  EXPECT_FALSE(MakePlan(TestInventory(shape), TestRequest(shape)).problems.empty());
}

TEST_F(FailureCase, C17_ARollbackAfterFinalizeIsRefused) {
  Run({});
  ASSERT_EQ(record().state, S::kCompleted);
  EXPECT_EQ(Give({.verb = Verb::kFinalize}), "");
  ASSERT_EQ(record().state, S::kFinalized);
  EXPECT_EQ(Give({.verb = Verb::kRollback}), "the old path is removed; plan a migration back");
  EXPECT_EQ(Count(NodeState::kOldRemoved), record().nodes.size());
}

TEST_F(FailureCase, C18_TheCanaryWorkloadReadsOtherData) {
  Run({}, "node=n2,step=verify,kind=data");
  EXPECT_EQ(record().state, S::kPaused);
  // Its journal stays broken, so that the way back cannot be verified either.
  EXPECT_EQ(StateOf(1), NodeState::kRollbackFailed);
  EXPECT_EQ(Count(NodeState::kPending), 4U);
}

TEST_F(FailureCase, C19_TheQuotaIsExhaustedInTheThirdWave) {
  const Plan plan = TestPlan({});
  const std::string third = plan.nodes[plan.waves[2].nodes[0]].name;
  const std::string failure = "node=" + third + ",step=add-path,kind=fail";
  Run({}, failure.c_str());
  EXPECT_EQ(record().state, S::kPaused);
  EXPECT_EQ(record().wave, 2U);
  for (const uint32_t wave : {0U, 1U}) {
    EXPECT_EQ(record().waves[wave].state, WaveState::kVerified);
    for (const uint32_t node : plan_.waves[wave].nodes) EXPECT_EQ(StateOf(node), NodeState::kDone);
  }
}

TEST_F(FailureCase, C22_TheOldPathOfAClientStaysWhileItIsUsed) {
  Run({});
  simulation_->cluster().facts()[2].clients_on_old = 1;
  EXPECT_EQ(Give({.verb = Verb::kFinalize}), "");
  EXPECT_EQ(record().state, S::kCompleted) << "not finalized";
  EXPECT_TRUE(simulation_->cluster().facts()[2].old_path);
  EXPECT_TRUE(record().nodes[2].held);
  // Its client has gone: finalize removes the rest.
  simulation_->cluster().facts()[2].clients_on_old = 0;
  EXPECT_EQ(Give({.verb = Verb::kFinalize}), "");
  EXPECT_EQ(record().state, S::kFinalized);
}

TEST_F(FailureCase, C23_BothPathsCarryIoSoThatTheOldOneNeverDrains) {
  Run({}, "node=n2,step=drain,kind=never");
  EXPECT_EQ(StateOf(1), NodeState::kRolledBack);
  EXPECT_EQ(record().pause_reason, PauseReason::kNodeFailed);
  EXPECT_NE(record().reason.find("drain"), std::string::npos);
}

TEST_F(FailureCase, C24_ADeviceHasAnotherNameThanTheConfigurationSays) {
  Run({}, "node=n2,step=verify,kind=config");
  EXPECT_EQ(StateOf(1), NodeState::kRolledBack);
  EXPECT_NE(record().nodes[1].reason.find("verify"), std::string::npos);
}

TEST_F(FailureCase, C25_TheChangeWindowClosesInTheMiddleOfAWave) {
  plan_ = TestPlan({});
  plan_.knobs.window_begin = kBegin;
  plan_.knobs.window_end = kBegin + plan_.knobs.soak + 60;
  Go(nullptr, true);
  EXPECT_EQ(record().state, S::kPaused);
  EXPECT_EQ(record().pause_reason, PauseReason::kWindowClosed);
  // Nodes in hand were finished, and none is in the middle.
  for (const NodeRecord& node : record().nodes) EXPECT_EQ(node.activity, Activity::kNone);
  EXPECT_NE(Give({.verb = Verb::kResume}), "");
  Knobs knobs = record().knobs;
  knobs.window_end += kDay;
  EXPECT_EQ(Give({.verb = Verb::kSet, .knobs = knobs}), "");
  EXPECT_EQ(record().state, S::kCompleted);
}

TEST_F(FailureCase, C26_NobodyApprovesForAMonth) {
  Run({}, nullptr, false);
  ASSERT_EQ(record().state, S::kAwaitingApproval);
  const uint64_t commands = simulation_->commands();
  EXPECT_TRUE(PassTime(30 * kDay).intents.empty());
  EXPECT_EQ(record().state, S::kAwaitingApproval);
  EXPECT_EQ(simulation_->commands(), commands);
  EXPECT_EQ(Give({.verb = Verb::kApprove, .wave = record().wave}), "");
  EXPECT_EQ(record().waves[1].state, WaveState::kVerified);
}

TEST_F(FailureCase, C27_TheNextControllersClockIsAnHourBehind) {
  plan_ = TestPlan({});
  Record record = NewRecord(plan_);
  (void)Handle(plan_, record, TakeOver{}, kBegin);
  (void)Handle(plan_, record, Order{.verb = Verb::kPlan}, kBegin);
  (void)Handle(plan_, record, PreflightResult{.passed = true}, kBegin);
  const auto started = Handle(plan_, record, Order{.verb = Verb::kStart}, kBegin);
  const auto& sent = std::get<CommandIntent>(started.intents.at(0));
  const auto taken = Handle(plan_, record, TakeOver{}, kBegin - 3600);
  EXPECT_EQ(record.now, kBegin);
  const auto& again = std::get<CommandIntent>(taken.intents.at(0));
  EXPECT_EQ(again.command, sent.command);
  EXPECT_EQ(again.deadline, sent.deadline);
  StepResult result{.node = sent.node, .command = sent.command};
  result.evidence.gateway_version = plan_.newest_version;
  EXPECT_FALSE(Handle(plan_, record, result, kBegin - 3599).intents.empty()) << "it goes on";
}

TEST_F(FailureCase, C29_ThePreflightIsOlderThanItIsValid) {
  plan_ = TestPlan({});
  Record record = NewRecord(plan_);
  (void)Handle(plan_, record, Order{.verb = Verb::kPlan}, kBegin);
  (void)Handle(plan_, record, PreflightResult{.passed = true}, kBegin);
  const int64_t late = kBegin + plan_.knobs.preflight_valid + 1;
  // Without a tick in between: the order itself looks at the time.
  EXPECT_NE(Handle(plan_, record, Order{.verb = Verb::kStart}, late).refusal, "");
  EXPECT_NE(record.state, S::kRunning);
}

}  // namespace
}  // namespace rocegw::migration
