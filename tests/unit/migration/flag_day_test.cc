// SPDX-License-Identifier: Apache-2.0
// Barriers of a flag day: all nodes change together.
#include "tests/unit/migration/controller_fixture.h"

namespace rocegw::migration {
namespace {

class FlagDayTest : public ControllerTest {
 protected:
  FlagDayTest() : ControllerTest(FlagDay(3)) {}

  // All nodes are about to be cordoned.
  void ReadyAll() {
    for (const uint32_t node : {0U, 1U, 2U}) {
      Until(node, Step::kOkToStop);
      On(Answer(node));
    }
  }
  void DrainAll() {
    ReadyAll();
    for (const uint32_t node : {0U, 1U, 2U}) {
      Until(node, Step::kDrain);
      On(Answer(node));
    }
  }
};

TEST_F(FlagDayTest, NoNodeIsCordonedBeforeAllAreReady) {
  BringTo(S::kRunning);
  for (const uint32_t node : {0U, 1U}) {
    Until(node, Step::kOkToStop);
    On(Answer(node));
    EXPECT_FALSE(record_.nodes[node].pending.has_value());
  }
  Until(2, Step::kOkToStop);
  On(Answer(2));
  for (const uint32_t node : {0U, 1U, 2U}) EXPECT_EQ(sent_.at(node).step, Step::kCordon);
}

TEST_F(FlagDayTest, ABlockedNodeLeavesTheOthersInService) {
  BringTo(S::kRunning);
  for (const uint32_t node : {0U, 1U}) {
    Until(node, Step::kOkToStop);
    On(Answer(node));
  }
  On(Answer(2, Outcome::kFailed));
  EXPECT_EQ(record_.pause_reason, PauseReason::kNodeBlocked);
  On(Tick{}, 100'000);
  for (const uint32_t node : {0U, 1U}) {
    EXPECT_EQ(record_.nodes[node].state, NodeState::kReady);
    EXPECT_FALSE(record_.nodes[node].pending.has_value());
  }
  EXPECT_EQ(Give(Verb::kRetry, 2), "");
  EXPECT_EQ(Give(Verb::kResume), "");
  for (const uint32_t node : {0U, 1U})
    EXPECT_EQ(sent_.at(node).step, Step::kOkToStop) << "the answer is a day old";
  ReadyAll();
  for (const uint32_t node : {0U, 1U, 2U}) EXPECT_EQ(sent_.at(node).step, Step::kCordon);
}

TEST_F(FlagDayTest, ANodeThatIsLostWhenItIsReadyLeavesTheOthersInService) {
  BringTo(S::kRunning);
  for (const uint32_t node : {0U, 1U}) {
    Until(node, Step::kOkToStop);
    On(Answer(node));
  }
  On(NodeLost{0});
  Until(2, Step::kOkToStop);
  On(Answer(2));
  for (const uint32_t node : {1U, 2U}) EXPECT_FALSE(record_.nodes[node].pending.has_value());
  On(Tick{}, plan_.knobs.lost_after);
  EXPECT_EQ(record_.nodes[0].state, NodeState::kQuarantined);
  for (const uint32_t node : {1U, 2U}) EXPECT_FALSE(record_.nodes[node].pending.has_value());
  EXPECT_EQ(Give(Verb::kAbort), "");
  EXPECT_EQ(record_.state, S::kAborted) << "nothing was changed";
}

TEST_F(FlagDayTest, ANodeThatIsLostBeforeItStartedIsToldOfWhileOthersWait) {
  BringTo(S::kPreflighted);
  On(NodeLost{0});
  EXPECT_EQ(Give(Verb::kStart), "");
  for (const uint32_t node : {1U, 2U}) {
    Until(node, Step::kOkToStop);
    On(Answer(node));
  }
  EXPECT_EQ(record_.nodes[0].state, NodeState::kPending);
  On(Tick{}, plan_.knobs.lost_after);
  EXPECT_EQ(record_.nodes[0].state, NodeState::kQuarantined);
  EXPECT_EQ(record_.state, S::kPaused);
  EXPECT_EQ(record_.pause_reason, PauseReason::kLostNode);
  for (const uint32_t node : {1U, 2U}) EXPECT_FALSE(record_.nodes[node].pending.has_value());
}

TEST_F(FlagDayTest, AnAnswerThatIsOldWhenAllAreReadyIsAskedForAgain) {
  BringTo(S::kRunning);
  Until(0, Step::kOkToStop);
  On(Answer(0));
  for (const uint32_t node : {1U, 2U}) {
    Until(node, Step::kOkToStop);
    On(Answer(node, Outcome::kNotYet), plan_.knobs.step_deadline - 1);
  }
  for (const uint32_t node : {1U, 2U}) {
    On(Tick{}, plan_.knobs.retry_after);
    On(Answer(node));
  }
  EXPECT_EQ(sent_.at(0).step, Step::kOkToStop);
  EXPECT_TRUE(record_.nodes[0].pending.has_value());
  for (const uint32_t node : {1U, 2U}) EXPECT_FALSE(record_.nodes[node].pending.has_value());
  On(Answer(0));
  for (const uint32_t node : {0U, 1U, 2U}) EXPECT_EQ(sent_.at(node).step, Step::kCordon);
}

TEST_F(FlagDayTest, NoNodeStopsBeforeAllAreDrained) {
  BringTo(S::kRunning);
  ReadyAll();
  Until(0, Step::kDrain);
  On(Answer(0));
  EXPECT_FALSE(record_.nodes[0].pending.has_value());
  Until(1, Step::kDrain);
  On(Answer(1));
  EXPECT_FALSE(record_.nodes[1].pending.has_value());
  Until(2, Step::kDrain);
  On(Answer(2));
  for (const uint32_t node : {0U, 1U, 2U}) EXPECT_EQ(sent_.at(node).step, Step::kStop);
}

TEST_F(FlagDayTest, OnTheWayBackNoNodeStopsBeforeAllAreDrained) {
  BringTo(S::kRunning);
  ReadyAll();
  for (const Step step : {Step::kDrain, Step::kStop, Step::kSwitch, Step::kStart}) {
    for (const uint32_t node : {0U, 1U, 2U}) {
      Until(node, step);
      On(Answer(node));
    }
  }
  EXPECT_EQ(Give(Verb::kRollback), "");
  for (const uint32_t node : {0U, 1U, 2U}) On(Answer(node));  // the commands that ran
  for (const uint32_t node : {0U, 1U, 2U}) EXPECT_EQ(sent_.at(node).step, Step::kDrain);
  On(Answer(0));
  On(Answer(1));
  EXPECT_FALSE(record_.nodes[0].pending.has_value());
  On(Answer(2));
  for (const uint32_t node : {0U, 1U, 2U}) EXPECT_EQ(sent_.at(node).step, Step::kStop);
}

TEST_F(FlagDayTest, NoNodeSwitchesBeforeAllAreStoppedAndNoneStartsBeforeAllSwitched) {
  BringTo(S::kRunning);
  DrainAll();
  On(Answer(0));
  EXPECT_EQ(record_.nodes[0].state, NodeState::kStopped);
  EXPECT_FALSE(record_.nodes[0].pending.has_value());
  for (const uint32_t node : {1U, 2U}) {
    Until(node, Step::kStop);
    On(Answer(node));
  }
  for (const uint32_t node : {0U, 1U, 2U}) EXPECT_EQ(sent_.at(node).step, Step::kSwitch);
  On(Answer(0));
  On(Answer(1));
  EXPECT_FALSE(record_.nodes[0].pending.has_value());
  On(Answer(2));
  for (const uint32_t node : {0U, 1U, 2U}) EXPECT_EQ(sent_.at(node).step, Step::kStart);
}

TEST_F(FlagDayTest, OneFailureBringsAllBackTogether) {
  BringTo(S::kRunning);
  DrainAll();
  for (const uint32_t node : {0U, 1U, 2U}) {
    Until(node, Step::kStop);
    On(Answer(node));
  }
  for (const uint32_t node : {0U, 1U, 2U}) On(Answer(node));
  On(Answer(0));  // started
  On(Answer(1, Outcome::kFailed));
  EXPECT_EQ(record_.state, S::kRollingBack);
  On(Answer(2));
  for (int round = 0; round < 20; ++round) {
    for (const uint32_t node : {0U, 1U, 2U}) {
      if (record_.nodes[node].pending.has_value()) On(Answer(node));
      // No node restores while another one runs with the new transport.
      if (sent_.at(node).step == Step::kRestore) {
        for (const NodeRecord& other : record_.nodes) EXPECT_NE(other.activity, Activity::kForward);
      }
    }
  }
  EXPECT_EQ(record_.state, S::kRolledBack);
  EXPECT_EQ(Give(Verb::kRollback), "not in the state ROLLED_BACK");
}

}  // namespace
}  // namespace rocegw::migration
