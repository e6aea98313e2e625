// SPDX-License-Identifier: Apache-2.0
// Rules of both sides of a take-over, one event at a time.
#include <gtest/gtest.h>

#include "gateway/take_over/predecessor.h"
#include "gateway/take_over/successor.h"

namespace rocegw::take_over {
namespace {

using OldActions = std::vector<PredecessorAction>;
using NewActions = std::vector<SuccessorAction>;
using Old = PredecessorAction;
using New = SuccessorAction;

TEST(Predecessor, WholeTakeOver_CommitsThenLeaves) {
  Predecessor old;
  EXPECT_TRUE(old.OnConnected().actions.empty());
  EXPECT_EQ(old.OnHello(std::nullopt).actions, OldActions{Old::kOffer});
  EXPECT_EQ(old.OnPrepared().actions, OldActions{Old::kQuieten});
  EXPECT_EQ(old.OnQuiet().actions, OldActions{Old::kSendState});
  EXPECT_TRUE(old.is_gateway());
  EXPECT_EQ(old.OnReady().actions, OldActions{Old::kCommit});
  EXPECT_FALSE(old.is_gateway());
  EXPECT_EQ(old.OnServing().actions, OldActions{Old::kLeave});
}

TEST(Predecessor, RefusesHello_GoesOn) {
  Predecessor old;
  (void)old.OnConnected();
  const auto step = old.OnHello(Refusal::kPortMode);
  EXPECT_EQ(step.actions, (OldActions{Old::kRefuse, Old::kClose}));
  EXPECT_EQ(step.refusal, Refusal::kPortMode);
  EXPECT_EQ(old.state(), Predecessor::State::kServing);
}

TEST(Predecessor, NotQuiet_ResumesBehindTheRefusal) {
  Predecessor old;
  (void)old.OnConnected();
  (void)old.OnHello(std::nullopt);
  (void)old.OnPrepared();
  const auto step = old.OnNotQuiet(Refusal::kSessions);
  EXPECT_EQ(step.actions, (OldActions{Old::kRefuse, Old::kClose, Old::kResume}));
  EXPECT_TRUE(old.OnQuiet().actions.empty()) << "the answer came twice";
}

TEST(Predecessor, StateThatCannotBeWritten_IsRefused_AndTheGatewayGoesOn) {
  Predecessor old;
  (void)old.OnConnected();
  (void)old.OnHello(std::nullopt);
  (void)old.OnPrepared();
  (void)old.OnQuiet();
  const auto step = old.OnNotWritten(Refusal::kSessions);
  EXPECT_EQ(step.actions, (OldActions{Old::kRefuse, Old::kClose, Old::kResume}));
  EXPECT_EQ(step.refusal, Refusal::kSessions);
  EXPECT_TRUE(old.is_gateway());
}

TEST(Predecessor, StateThatDoesNotChange_CannotBeWritten_NothingWasStopped) {
  Predecessor old;
  (void)old.OnConnected();
  (void)old.OnHello(std::nullopt);
  const auto step = old.OnNotWritten(Refusal::kSessions);
  EXPECT_EQ(step.actions, (OldActions{Old::kRefuse, Old::kClose}));
}

TEST(Predecessor, SuccessorDiesBehindCommit_IsTheGatewayAgain) {
  Predecessor old;
  (void)old.OnConnected();
  (void)old.OnHello(std::nullopt);
  (void)old.OnPrepared();
  (void)old.OnQuiet();
  (void)old.OnReady();
  EXPECT_EQ(old.OnDeadline().actions, OldActions{Old::kKill});
  EXPECT_TRUE(old.OnRefused(Refusal::kStart).actions.empty()) << "it may be acting still";
  EXPECT_TRUE(old.OnServing().actions.empty()) << "it is being killed";
  EXPECT_EQ(old.OnClosed().actions, (OldActions{Old::kClose, Old::kResume}));
  EXPECT_TRUE(old.is_gateway());
}

TEST(Predecessor, MessageOutOfOrder_EndsTheTakeOver) {
  Predecessor old;
  (void)old.OnConnected();
  (void)old.OnHello(std::nullopt);
  const auto step = old.OnReady();
  EXPECT_EQ(step.actions, (OldActions{Old::kRefuse, Old::kClose}));
  EXPECT_EQ(step.refusal, Refusal::kProtocol);
}

TEST(Successor, WholeTakeOver_ActsOnlyBehindCommit) {
  Successor fresh;
  EXPECT_EQ(fresh.Begin().actions, NewActions{New::kSendHello});
  EXPECT_TRUE(fresh.OnOffer().actions.empty());
  EXPECT_EQ(fresh.OnState().actions, NewActions{New::kPrepare});
  EXPECT_EQ(fresh.OnPrepared().actions, NewActions{New::kSendPrepared});
  EXPECT_EQ(fresh.OnState().actions, NewActions{New::kBuild});
  EXPECT_EQ(fresh.OnBuilt().actions, NewActions{New::kSendReady});
  EXPECT_EQ(fresh.OnCommit().actions, NewActions{New::kAct});
  EXPECT_EQ(fresh.OnActing().actions, NewActions{New::kSendServing});
  EXPECT_TRUE(fresh.OnClosed().actions.empty());
}

TEST(Successor, CommitOutOfOrder_GivesUp) {
  Successor fresh;
  (void)fresh.Begin();
  (void)fresh.OnOffer();
  EXPECT_EQ(fresh.OnCommit().actions, (NewActions{New::kSendRefuse, New::kGiveUp}));
}

TEST(Successor, StateThatChanges_BeforeItIsPrepared_GivesUp) {
  Successor fresh;
  (void)fresh.Begin();
  (void)fresh.OnOffer();
  (void)fresh.OnState();
  EXPECT_EQ(fresh.OnState().actions, (NewActions{New::kSendRefuse, New::kGiveUp}));
}

TEST(Successor, PredecessorDies_StartsWithoutIt) {
  Successor fresh;
  (void)fresh.Begin();
  (void)fresh.OnOffer();
  (void)fresh.OnState();
  (void)fresh.OnPrepared();
  EXPECT_EQ(fresh.OnClosed().actions, NewActions{New::kStartOrdinary});
}

TEST(Successor, Refused_GivesUpWithTheReason) {
  Successor fresh;
  (void)fresh.Begin();
  const auto step = fresh.OnRefused(Refusal::kSessions);
  EXPECT_EQ(step.actions, NewActions{New::kGiveUp});
  EXPECT_EQ(step.refusal, Refusal::kSessions);
}

TEST(Refusals, HaveLabelsAndTexts) {
  for (const RefusalInfo& info : kRefusals) {
    EXPECT_STREQ(LabelOf(info.refusal), info.label);
    EXPECT_STREQ(TextOf(info.refusal), info.text);
  }
  EXPECT_STREQ(LabelOf(static_cast<Refusal>(60000)), "other");
}

}  // namespace
}  // namespace rocegw::take_over
