// SPDX-License-Identifier: Apache-2.0
// Transitions of the controller, one at a time.
#include "controlplane/migration/drive/controller.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "controlplane/migration/drive/procedure.h"
#include "tests/unit/migration/controller_fixture.h"

namespace rocegw::migration {
namespace {

TEST_F(ControllerTest, StartNeedsAPreflightThatIsYoungEnough) {
  EXPECT_EQ(Give(Verb::kStart), "not in the state DRAFT");
  BringTo(S::kPlanned);
  EXPECT_EQ(Give(Verb::kStart), "it needs a preflight first");
  On(PreflightResult{false, "no MTU"});
  EXPECT_EQ(Give(Verb::kStart), "it needs a preflight first (no MTU)");
  On(PreflightResult{true, ""});
  EXPECT_EQ(record_.state, S::kPreflighted);
  EXPECT_EQ(On(Tick{}).wake_at, now_ + plan_.knobs.preflight_valid + 1);
  On(Tick{}, plan_.knobs.preflight_valid + 1);
  EXPECT_EQ(record_.state, S::kPlanned);
  EXPECT_NE(Give(Verb::kStart), "");
}

TEST_F(ControllerTest, OneNodeGoesThroughEachStateOfTheTwoPaths) {
  BringTo(S::kRunning);
  std::vector<std::string> states;
  std::vector<Step> steps;
  while (IsBusy(Canary())) {
    steps.push_back(sent_.at(Canary()).step);
    On(Answer(Canary()), 1);
    states.emplace_back(WordOf(record_.nodes[Canary()].state));
  }
  EXPECT_EQ(steps,
            (std::vector<Step>{Step::kHealth, Step::kBackup, Step::kOkToStop, Step::kAddPath,
                               Step::kVerifyPath, Step::kSwitch, Step::kDrain, Step::kVerify}));
  EXPECT_EQ(states,
            (std::vector<std::string>{"PENDING", "READY", "READY", "PATH_ADDED", "PATH_VERIFIED",
                                      "PREFERRED", "OLD_DRAINED", "SOAKING"}));
  EXPECT_EQ(record_.waves[0].state, WaveState::kSoaking);
}

TEST_F(ControllerTest, AWaveSoaksPassesItsGatesAndWaitsForApproval) {
  BringTo(S::kRunning);
  EXPECT_EQ(record_.waves[0].state, WaveState::kCanary);
  Finish(Canary());
  On(Tick{}, plan_.knobs.soak - 1);
  EXPECT_EQ(gate_, 0U);
  On(Tick{}, 1);
  EXPECT_EQ(gate_, 1U);
  On(GateResult{99, Outcome::kDone, ""});
  EXPECT_EQ(record_.waves[0].state, WaveState::kSoaking)
      << "a result of another round decides nothing";
  On(GateResult{1, Outcome::kDone, ""});
  EXPECT_EQ(record_.waves[0].state, WaveState::kVerified);
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kDone);
  EXPECT_EQ(record_.state, S::kAwaitingApproval);
  On(Tick{}, 1'000'000);
  EXPECT_EQ(record_.state, S::kAwaitingApproval) << "an absent approver changes nothing";
  EXPECT_EQ(Give(Verb::kApprove, {}, 0), "the wave has begun already");
  EXPECT_EQ(Give(Verb::kApprove, {}, 1), "");
  EXPECT_EQ(record_.state, S::kRunning);
}

TEST_F(ControllerTest, AllWavesCompleteAndFinalizeRemovesOldPaths) {
  BringTo(S::kRunning);
  for (uint32_t wave = 0; wave < 3; ++wave) {
    if (wave != 0) {
      ASSERT_EQ(Give(Verb::kApprove, {}, wave), "");
    }
    PassWave();
  }
  ASSERT_EQ(record_.state, S::kCompleted);
  EXPECT_EQ(Give(Verb::kFinalize), "");
  for (uint32_t i = 0; i < 6; ++i) Finish(i);
  EXPECT_EQ(record_.state, S::kFinalized);
  EXPECT_NE(Give(Verb::kRollback).find("plan a migration back"), std::string::npos);
}

TEST_F(ControllerTest, AnOldPathInUseStays) {
  BringTo(S::kRunning);
  for (uint32_t wave = 0; wave < 3; ++wave) {
    if (wave != 0) Give(Verb::kApprove, {}, wave);
    PassWave();
  }
  Give(Verb::kFinalize);
  StepResult used = Answer(0);
  used.evidence.clients_on_old = 2;
  On(used);
  EXPECT_EQ(record_.nodes[0].reason, "remove-old: 2 clients still use the old path");
  On(Tick{}, plan_.knobs.step_deadline);
  used.command = sent_.at(0).command;
  On(used);
  EXPECT_EQ(record_.nodes[0].state, NodeState::kDone);
  for (uint32_t i = 1; i < 6; ++i) Finish(i);
  EXPECT_EQ(record_.state, S::kCompleted);
  EXPECT_EQ(Give(Verb::kFinalize), "");
  EXPECT_NE(Give(Verb::kRollback), "") << "other old paths are gone";
}

TEST_F(ControllerTest, AFailedStepBringsTheNodeBackAndPauses) {
  BringTo(S::kRunning);
  Until(Canary(), Step::kSwitch);
  On(Answer(Canary(), Outcome::kFailed));
  EXPECT_EQ(record_.state, S::kPaused);
  EXPECT_EQ(record_.pause_reason, PauseReason::kNodeFailed);
  EXPECT_EQ(record_.waves[0].state, WaveState::kHeld);
  EXPECT_EQ(sent_.at(Canary()).step, Step::kSwitchBack);
  Finish(Canary());
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kRolledBack);
  EXPECT_EQ(Give(Verb::kResume), "");
  EXPECT_EQ(record_.state, S::kPaused) << "the node needs a person first";
  EXPECT_EQ(Give(Verb::kRetry, Canary()), "");
  EXPECT_EQ(Give(Verb::kResume), "");
  EXPECT_EQ(sent_.at(Canary()).step, Step::kHealth);
}

TEST_F(ControllerTest, AFailureBeforeTheFirstChangeBlocks) {
  BringTo(S::kRunning);
  Until(Canary(), Step::kOkToStop);
  On(Answer(Canary(), Outcome::kFailed));
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kBlocked);
  EXPECT_EQ(record_.pause_reason, PauseReason::kNodeBlocked);
  EXPECT_EQ(Give(Verb::kSkip, Canary()), "");
  EXPECT_EQ(Give(Verb::kResume), "");
  EXPECT_EQ(record_.waves[0].state, WaveState::kSoaking);
}

TEST_F(ControllerTest, NotYetIsAskedAgainUntilTheDeadline) {
  BringTo(S::kRunning);
  Until(Canary(), Step::kDrain);
  StepResult busy = Answer(Canary());
  busy.evidence.outstanding = 7;
  On(busy);
  EXPECT_EQ(record_.nodes[Canary()].reason, "drain: 7 I/Os are outstanding");
  const uint64_t first = sent_.at(Canary()).command;
  On(Tick{}, plan_.knobs.retry_after);
  EXPECT_NE(sent_.at(Canary()).command, first);
  busy.command = sent_.at(Canary()).command;
  On(busy, plan_.knobs.step_deadline);
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kRollingBack);
}

TEST_F(ControllerTest, AnAnswerThatIsNotUnderstoodHoldsTheNode) {
  for (const Outcome outcome : {Outcome::kUnparsable, Outcome::kInconclusive}) {
    record_ = NewRecord(plan_);
    BringTo(S::kRunning);
    Until(Canary(), Step::kVerifyPath);
    On(Answer(Canary(), outcome));
    EXPECT_EQ(record_.pause_reason, PauseReason::kInconclusive);
    EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kPathAdded);
    EXPECT_TRUE(On(Tick{}, 100'000).intents.empty());
    EXPECT_EQ(Give(Verb::kResume), "");
    EXPECT_EQ(sent_.at(Canary()).step, Step::kVerifyPath);
    Finish(Canary());
    EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kSoaking);
  }
}

TEST_F(ControllerTest, ANodeThatGoesOnAsksTheStorageAgain) {
  BringTo(S::kRunning);
  Until(Canary(), Step::kAddPath);
  On(Answer(Canary(), Outcome::kInconclusive));
  Give(Verb::kResume);
  EXPECT_EQ(sent_.at(Canary()).step, Step::kOkToStop);
}

TEST_F(ControllerTest, ASilentAgentTimesOut) {
  BringTo(S::kRunning);
  Until(Canary(), Step::kSwitch);
  const Transition transition = On(Tick{});
  EXPECT_EQ(transition.wake_at,
            record_.nodes[Canary()].pending->deadline + plan_.knobs.retry_after);
  On(Tick{}, transition.wake_at - now_);
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kRollingBack);
}

TEST_F(ControllerTest, ALateResultChangesNothing) {
  BringTo(S::kRunning);
  const StepResult first = Answer(Canary());
  On(first);
  EXPECT_EQ(sent_.at(Canary()).step, Step::kBackup);
  EXPECT_TRUE(On(first).touched.empty());
  EXPECT_EQ(sent_.at(Canary()).step, Step::kBackup);
}

TEST_F(ControllerTest, ALostNodeIsQuarantinedAndComesBack) {
  BringTo(S::kRunning);
  Until(Canary(), Step::kDrain);
  On(NodeLost{Canary()});
  On(Tick{}, plan_.knobs.lost_after - 1);
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kPreferred);
  On(Tick{}, 1);
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kQuarantined);
  EXPECT_EQ(record_.pause_reason, PauseReason::kLostNode);
  EXPECT_EQ(Give(Verb::kRetry, Canary()), "the node cannot be reached");
  On(NodeBack{Canary()});
  EXPECT_EQ(Give(Verb::kRetry, Canary()), "");
  EXPECT_EQ(sent_.at(Canary()).step, Step::kDrain);
}

TEST_F(ControllerTest, ANodeThatWasAwayForAMomentGetsItsCommandAgain) {
  BringTo(S::kRunning);
  const uint64_t command = sent_.at(Canary()).command;
  On(NodeLost{Canary()});
  EXPECT_TRUE(On(Tick{}, 5).intents.empty());
  const Transition transition = On(NodeBack{Canary()});
  ASSERT_EQ(transition.intents.size(), 1U);
  EXPECT_EQ(std::get<CommandIntent>(transition.intents[0]).command, command);
}

TEST_F(ControllerTest, ANodeLostWhileItSoaksIsVerifiedAgain) {
  BringTo(S::kRunning);
  Finish(Canary());
  On(NodeLost{Canary()});
  On(Tick{}, plan_.knobs.lost_after);
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kQuarantined);
  On(NodeBack{Canary()});
  Give(Verb::kRetry, Canary());
  EXPECT_EQ(sent_.at(Canary()).step, Step::kVerify);
}

TEST_F(ControllerTest, ANewControllerSendsTheSameCommandWithAHigherEpoch) {
  BringTo(S::kRunning);
  const CommandIntent before = sent_.at(Canary());
  const Transition transition = On(TakeOver{});
  ASSERT_EQ(transition.intents.size(), 1U);
  const auto& after = std::get<CommandIntent>(transition.intents[0]);
  EXPECT_EQ(after.command, before.command);
  EXPECT_EQ(after.epoch, before.epoch + 1);
}

TEST_F(ControllerTest, AReplacedControllerStandsDownAndChangesNothing) {
  BringTo(S::kRunning);
  const std::string before = TextOf(record_);
  const Transition transition = On(Answer(Canary(), Outcome::kStaleEpoch));
  EXPECT_TRUE(transition.stand_down);
  EXPECT_TRUE(transition.intents.empty());
  EXPECT_EQ(TextOf(record_), before);
}

TEST_F(ControllerTest, GatesThatFailOrDecideNothingPause) {
  const std::vector<std::pair<Outcome, PauseReason>> rows = {
      {Outcome::kFailed, PauseReason::kGate},
      {Outcome::kInconclusive, PauseReason::kInconclusive},
      {Outcome::kTimedOut, PauseReason::kInconclusive}};
  for (const auto& [outcome, reason] : rows) {
    record_ = NewRecord(plan_);
    BringTo(S::kRunning);
    Finish(Canary());
    On(Tick{}, plan_.knobs.soak);
    On(GateResult{record_.gate_round, outcome, "p99"});
    EXPECT_EQ(record_.pause_reason, reason);
    EXPECT_EQ(record_.waves[0].state, WaveState::kHeld);
    EXPECT_EQ(Give(Verb::kResume), "");
    EXPECT_EQ(record_.waves[0].state, WaveState::kSoaking) << "the soak begins again";
  }
  On(Tick{}, plan_.knobs.soak);
  On(Tick{}, 120);
  EXPECT_EQ(record_.pause_reason, PauseReason::kInconclusive) << "no result at all";
}

TEST_F(ControllerTest, AnAlarmPausesAtOnce) {
  BringTo(S::kRunning);
  On(GateAlarm{"p99 is 9 ms"});
  EXPECT_EQ(record_.reason, "gate: p99 is 9 ms");
}

TEST_F(ControllerTest, AChangedInventoryPausesUntilItIsAsPlanned) {
  BringTo(S::kRunning);
  On(InventorySeen{"other"});
  EXPECT_EQ(record_.pause_reason, PauseReason::kDrift);
  EXPECT_NE(Give(Verb::kResume), "");
  On(InventorySeen{plan_.inventory_hash});
  EXPECT_EQ(Give(Verb::kResume), "");
}

TEST_F(ControllerTest, TheChangeWindowPausesAndResumes) {
  BringTo(S::kPreflighted);
  Knobs knobs = plan_.knobs;
  knobs.window_begin = now_ + 100;
  knobs.window_end = now_ + 200;
  EXPECT_EQ(On(Order{.verb = Verb::kSet, .knobs = knobs, .who = "alice"}).refusal, "");
  EXPECT_EQ(Give(Verb::kStart), "the change window is closed");
  On(Tick{}, 100);
  EXPECT_EQ(Give(Verb::kStart), "");
  On(Tick{}, 100);
  EXPECT_EQ(record_.pause_reason, PauseReason::kWindowClosed);
  EXPECT_NE(Give(Verb::kResume), "");
  knobs.window_begin = now_ + 50;
  knobs.window_end = now_ + 1000;
  const Transition set = On(Order{.verb = Verb::kSet, .knobs = knobs, .who = "alice"});
  EXPECT_EQ(set.wake_at, now_ + 50);
  On(Tick{}, 50);
  EXPECT_EQ(record_.state, S::kRunning);
}

TEST_F(ControllerTest, PauseLetsNodesInHandFinishAndStartsNone) {
  BringTo(S::kRunning);
  PassWave();
  Give(Verb::kApprove, {}, 1);
  const uint32_t node = plan_.waves[1].nodes[0];
  Until(node, Step::kSwitch);
  EXPECT_EQ(Give(Verb::kPause), "");
  EXPECT_EQ(Give(Verb::kPause), "not in the state PAUSED");
  Finish(node);
  EXPECT_EQ(record_.nodes[node].state, NodeState::kSoaking);
  EXPECT_FALSE(IsBusy(plan_.waves[1].nodes[1]));
  Give(Verb::kResume);
  EXPECT_TRUE(IsBusy(plan_.waves[1].nodes[1]));
}

TEST_F(ControllerTest, AbortBringsNodesInHandBackAndKeepsTheOthers) {
  BringTo(S::kRunning);
  PassWave();
  Give(Verb::kApprove, {}, 1);
  const uint32_t node = plan_.waves[1].nodes[0];
  Until(node, Step::kDrain);
  EXPECT_EQ(Give(Verb::kAbort), "");
  Finish(node);
  EXPECT_EQ(record_.state, S::kAborted);
  EXPECT_EQ(record_.nodes[node].state, NodeState::kRolledBack);
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kDone);
  EXPECT_EQ(Give(Verb::kRollback), "");
  Finish(Canary());
  EXPECT_EQ(record_.state, S::kRolledBack);
}

TEST_F(ControllerTest, RollbackOfOneWaveKeepsTheOthers) {
  BringTo(S::kRunning);
  PassWave();
  Give(Verb::kApprove, {}, 1);
  PassWave();
  EXPECT_EQ(Give(Verb::kRollback, {}, 1), "");
  for (const uint32_t node : plan_.waves[1].nodes) Finish(node);
  for (const uint32_t node : plan_.waves[1].nodes) Finish(node);
  EXPECT_EQ(record_.state, S::kPaused);
  EXPECT_EQ(record_.waves[1].state, WaveState::kHeld);
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kDone);
  EXPECT_EQ(Give(Verb::kRollback, {}, 2), "nothing of it was changed");
}

TEST_F(ControllerTest, ARollbackThatFailsEndsInAStateThatAPersonCanLeave) {
  BringTo(S::kRunning);
  Until(Canary(), Step::kDrain);
  Give(Verb::kRollback);
  On(Answer(Canary()));
  Until(Canary(), Step::kRestore);
  StepResult other = Answer(Canary());
  other.evidence.config_hash = "not the backup";
  On(other);
  EXPECT_EQ(record_.nodes[Canary()].state, NodeState::kRollbackFailed);
  EXPECT_EQ(record_.state, S::kFailed);
  Record left = record_;
  EXPECT_EQ(Give(Verb::kRetry, Canary()), "");
  Finish(Canary());
  EXPECT_EQ(record_.state, S::kRolledBack);
  record_ = left;
  EXPECT_EQ(Give(Verb::kSkip, Canary()), "");
  EXPECT_EQ(record_.state, S::kRolledBack);
}

TEST_F(ControllerTest, AnOrderThatIsRefusedChangesNothing) {
  BringTo(S::kRunning);
  const std::string before = TextOf(record_);
  for (const Verb verb : {Verb::kPlan, Verb::kStart, Verb::kApprove, Verb::kResume, Verb::kSet,
                          Verb::kFinalize, Verb::kRetry, Verb::kSkip}) {
    EXPECT_NE(Give(verb), "");
    EXPECT_EQ(TextOf(record_), before);
  }
}

TEST_F(ControllerTest, AClockThatGoesBackChangesNothing) {
  BringTo(S::kRunning);
  const int64_t seen = record_.now;
  On(Tick{}, -500);
  EXPECT_EQ(record_.now, seen);
}

TEST_F(ControllerTest, APreflightIsMeasuredAgainByOrder) {
  BringTo(S::kPlanned);
  EXPECT_TRUE(record_.preflight_wanted);
  On(PreflightResult{false, "n1: no adapter"});
  EXPECT_EQ(record_.state, S::kPlanned);
  EXPECT_FALSE(record_.preflight_wanted);
  EXPECT_EQ(Give(Verb::kStart), "it needs a preflight first (n1: no adapter)");
  EXPECT_EQ(Give(Verb::kPreflight), "");
  EXPECT_TRUE(record_.preflight_wanted);
  On(PreflightResult{true, "all answered"});
  EXPECT_EQ(record_.state, S::kPreflighted);
  EXPECT_EQ(Give(Verb::kStart), "");
  EXPECT_NE(Give(Verb::kPreflight), "");
}

}  // namespace
}  // namespace rocegw::migration
