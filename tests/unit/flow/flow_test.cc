// SPDX-License-Identifier: Apache-2.0
// Flow alone: bytes in flight, the effect of acknowledgements, and loss detection.
#include "gateway/flow/flow.h"

#include <gtest/gtest.h>

namespace rocegw::flow {
namespace {

constexpr uint32_t kMtu = 1000;
constexpr TimePoint kStart{1000000000};

FlowConfig Config() {
  FlowConfig config;
  config.cc.window_bytes = 10 * kMtu;
  config.timeout = Milliseconds(100);
  config.retry_count = 3;
  return config;
}

class FlowTest : public ::testing::Test {
 protected:
  FlowTest() { flow.Start(Config(), Psn(100), kStart); }
  void SendPackets(int count) {
    for (int i = 0; i < count; ++i) flow.OnSent(1, kMtu, now);
  }
  bool Ack(uint32_t upto) { return flow.OnAcked(Psn(upto), kMtu, now); }
  void Wait(Duration by) { now = now + by; }

  Flow flow;
  TimePoint now = kStart;
};

TEST(TransportTimer, Codes) {
  EXPECT_EQ(TransportTimeout(0).ns, 0);
  EXPECT_EQ(TransportTimeout(1).ns, 8192);
  EXPECT_EQ(TransportTimeout(14).ns, 67108864);
  EXPECT_EQ(TransportTimeout(31).ns, int64_t{4096} << 31);
  EXPECT_EQ(TransportTimeout(255), TransportTimeout(31));
}

TEST_F(FlowTest, Sent_EntersTheLedger) {
  EXPECT_TRUE(flow.idle());
  EXPECT_FALSE(flow.OnSent(1, 300, now)) << "first time";
  EXPECT_FALSE(flow.OnSent(4, 3500, now));
  EXPECT_EQ(flow.una(), Psn(100));
  EXPECT_EQ(flow.next(), Psn(105));
  EXPECT_EQ(flow.max(), Psn(105));
  EXPECT_EQ(flow.in_flight(), 3800u);
  EXPECT_FALSE(flow.idle());
}

TEST_F(FlowTest, Gate_OnePacketAlwaysThenTheWindow) {
  EXPECT_TRUE(flow.MaySend(1 << 30, now)) << "nothing is in flight";
  EXPECT_FALSE(flow.HasRoom(1 << 30, now));
  SendPackets(9);
  EXPECT_TRUE(flow.MaySend(kMtu, now));
  EXPECT_FALSE(flow.MaySend(kMtu + 1, now));
  SendPackets(1);
  EXPECT_FALSE(flow.MaySend(1, now));
  EXPECT_TRUE(flow.MaySend(0, now));
  Ack(101);
  EXPECT_TRUE(flow.MaySend(kMtu, now));
  EXPECT_EQ(flow.earliest(), kNever) << "no pacing: an acknowledgement must come";
}

TEST_F(FlowTest, Gate_NumberOfPackets) {
  FlowConfig config = Config();
  config.max_packets = 3;
  flow.Start(config, Psn(0), now);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(flow.MaySend(0, now));
    flow.OnSent(1, 0, now);
  }
  EXPECT_FALSE(flow.MaySend(0, now)) << "empty packets count too";
}

TEST_F(FlowTest, Ack_TakesWholePacketsOut) {
  SendPackets(5);
  EXPECT_TRUE(Ack(103));
  EXPECT_EQ(flow.una(), Psn(103));
  EXPECT_EQ(flow.in_flight(), 2u * kMtu);
  EXPECT_FALSE(Ack(103)) << "no progress";
  EXPECT_FALSE(Ack(102));
  EXPECT_TRUE(Ack(105));
  EXPECT_TRUE(flow.idle());
  EXPECT_EQ(flow.in_flight(), 0u);
}

TEST_F(FlowTest, Ack_OfPartOfARange) {
  flow.OnSent(4, 3 * kMtu + 200, now);
  flow.OnSent(1, 50, now);
  EXPECT_TRUE(Ack(101));
  EXPECT_EQ(flow.in_flight(), 2 * kMtu + 250u);
  EXPECT_TRUE(Ack(103));
  EXPECT_EQ(flow.in_flight(), 250u);
  EXPECT_TRUE(Ack(104));
  EXPECT_EQ(flow.in_flight(), 50u);
  EXPECT_TRUE(Ack(105));
  EXPECT_EQ(flow.in_flight(), 0u);
}

TEST_F(FlowTest, Ack_AcrossThePsnWrap) {
  flow.Start(Config(), Psn(0xFFFFFE), now);
  SendPackets(4);
  EXPECT_EQ(flow.next(), Psn(2));
  EXPECT_TRUE(Ack(1));
  EXPECT_EQ(flow.una(), Psn(1));
  EXPECT_EQ(flow.in_flight(), 1u * kMtu);
}

TEST_F(FlowTest, RoundTrip_FromTheNewestPacketAcknowledged) {
  SendPackets(1);
  Wait(Milliseconds(5));
  SendPackets(1);
  Wait(Milliseconds(1));
  Ack(102);
  EXPECT_EQ(flow.rtt().smoothed(), Milliseconds(1));
}

TEST_F(FlowTest, RoundTrip_OfARangeFromItsFirstPieceOnly) {
  flow.OnSent(4, 4 * kMtu, now);
  Wait(Milliseconds(2));
  Ack(101);
  EXPECT_EQ(flow.rtt().smoothed(), Milliseconds(2));
  Wait(Milliseconds(40));
  Ack(102);
  Ack(104);
  EXPECT_EQ(flow.rtt().smoothed(), Milliseconds(2));
}

TEST_F(FlowTest, RoundTrip_NeverFromWhatWasSentAgain) {
  SendPackets(2);
  Wait(Milliseconds(1));
  ASSERT_TRUE(flow.OnLoss(now));
  EXPECT_TRUE(flow.OnSent(1, kMtu, now)) << "again";
  EXPECT_TRUE(flow.OnSent(1, kMtu, now));
  EXPECT_FALSE(flow.OnSent(1, kMtu, now)) << "new";
  Wait(Milliseconds(7));
  Ack(102);
  EXPECT_FALSE(flow.rtt().has_sample());
  Ack(103);
  EXPECT_EQ(flow.rtt().smoothed(), Milliseconds(7));
}

TEST_F(FlowTest, Loss_GoesBackAndSpendsARetry) {
  SendPackets(5);
  Ack(102);
  const uint32_t rewinds = flow.rewinds();
  EXPECT_TRUE(flow.OnLoss(now));
  EXPECT_EQ(flow.next(), Psn(102));
  EXPECT_EQ(flow.max(), Psn(105));
  EXPECT_EQ(flow.in_flight(), 0u);
  EXPECT_EQ(flow.rewinds(), rewinds + 1);
  EXPECT_EQ(flow.retries_left(), 2u);
  EXPECT_TRUE(flow.OnLoss(now)) << "it has gone back already";
  EXPECT_EQ(flow.retries_left(), 2u);
  for (int i = 1; i >= 0; --i) {
    SendPackets(1);
    EXPECT_TRUE(flow.OnLoss(now));
    EXPECT_EQ(flow.retries_left(), static_cast<uint32_t>(i));
  }
  SendPackets(1);
  EXPECT_FALSE(flow.OnLoss(now));
  Ack(103);
  EXPECT_EQ(flow.retries_left(), 3u) << "progress";
}

TEST_F(FlowTest, AfterALoss_StartsSmallAndDoubles) {
  FlowConfig config = Config();
  config.cc.window_bytes = 1000 * kMtu;
  flow.Start(config, Psn(100), now);
  SendPackets(200);
  EXPECT_TRUE(flow.MaySend(kMtu, now));
  ASSERT_TRUE(flow.OnLoss(now));
  uint32_t una = 100;
  for (int allowed = 16; allowed < 1024; allowed *= 2) {
    SendPackets(allowed - 1);
    EXPECT_TRUE(flow.MaySend(1, now)) << allowed;
    SendPackets(1);
    EXPECT_FALSE(flow.MaySend(1, now)) << allowed;
    una += static_cast<uint32_t>(allowed);
    ASSERT_TRUE(Ack(una));
  }
  // The limit is never exceeded.
  SendPackets(1000);
  EXPECT_FALSE(flow.HasRoom(1, now)) << "the window";
}

TEST_F(FlowTest, AfterALoss_OneRangeAtATime) {
  FlowConfig config = Config();
  config.cc.window_bytes = 4096 * kMtu;
  flow.Start(config, Psn(100), now);
  flow.OnSent(500, 500 * kMtu, now);
  EXPECT_TRUE(flow.MaySend(500 * kMtu, now));
  flow.OnSent(500, 500 * kMtu, now);
  ASSERT_TRUE(flow.OnLoss(now));
  flow.OnSent(500, 500 * kMtu, now);
  EXPECT_FALSE(flow.MaySend(500 * kMtu, now));
  ASSERT_TRUE(Ack(350));
  EXPECT_TRUE(flow.MaySend(500 * kMtu, now)) << "as many again as have come";
}

TEST_F(FlowTest, ReceiverNotReady_KeepsTheWindow) {
  FlowConfig config = Config();
  config.cc.window_bytes = 1000 * kMtu;
  flow.Start(config, Psn(100), now);
  SendPackets(200);
  flow.OnReceiverNotReady();
  EXPECT_EQ(flow.next(), Psn(100));
  SendPackets(199);
  EXPECT_TRUE(flow.MaySend(kMtu, now)) << "nothing was lost";
}

TEST_F(FlowTest, ProbeAnsweredInPart_RestStartsSmall) {
  FlowConfig config = Config();
  config.cc.window_bytes = 1000 * kMtu;
  flow.Start(config, Psn(100), now);
  SendPackets(200);
  now = flow.deadline();
  ASSERT_EQ(flow.OnDeadline(now), LossVerdict::kProbe);
  EXPECT_TRUE(Ack(101));
  SendPackets(15);
  EXPECT_TRUE(flow.MaySend(kMtu, now));
  SendPackets(1);
  EXPECT_FALSE(flow.MaySend(kMtu, now));
}

TEST_F(FlowTest, AckBeyondWhatWasSentAgain_NextFollows) {
  SendPackets(5);
  flow.Rewind();
  SendPackets(1);
  EXPECT_TRUE(Ack(104));
  EXPECT_EQ(flow.una(), Psn(104));
  EXPECT_EQ(flow.next(), Psn(104));
  EXPECT_EQ(flow.in_flight(), 0u);
  EXPECT_TRUE(flow.OnSent(1, kMtu, now));
  EXPECT_EQ(flow.next(), flow.max());
}

TEST_F(FlowTest, Rewind_SpendsNothingAndStartsSmall) {
  FlowConfig config = Config();
  config.cc.window_bytes = 1000 * kMtu;
  flow.Start(config, Psn(100), now);
  SendPackets(50);
  flow.Rewind();
  EXPECT_EQ(flow.retries_left(), 3u);
  EXPECT_EQ(flow.next(), flow.una());
  SendPackets(15);
  EXPECT_TRUE(flow.MaySend(kMtu, now));
  SendPackets(1);
  EXPECT_FALSE(flow.MaySend(kMtu, now));
}

TEST_F(FlowTest, Answers_AWindowPerRound) {
  EXPECT_TRUE(flow.MayAnswer(20 * kMtu, now)) << "the first packet of a round";
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(flow.MayAnswer(kMtu, now)) << i;
    flow.OnAnswered(kMtu, now);
  }
  EXPECT_FALSE(flow.MayAnswer(1, now));
  EXPECT_EQ(flow.NextAnswer(now), kStart + Microseconds(50));
  Wait(Microseconds(49));
  EXPECT_FALSE(flow.MayAnswer(1, now));
  EXPECT_EQ(flow.NextAnswer(now), kStart + Microseconds(50));
  Wait(Microseconds(1));
  EXPECT_TRUE(flow.MayAnswer(kMtu, now));
  // The next round begins with its first packet.
  Wait(Microseconds(30));
  flow.OnAnswered(10 * kMtu, now);
  EXPECT_FALSE(flow.MayAnswer(1, now + Microseconds(49)));
  EXPECT_TRUE(flow.MayAnswer(1, now + Microseconds(50)));
}

// Nothing acknowledges them: a round without a CNP counts as one that was delivered.
TEST_F(FlowTest, Answers_MakeANewFlowsWindowGrow) {
  CcProfile profile;
  profile.link_bits_per_second = 8'000'000'000;
  profile.Set(CcKind::kDcqcn, "initial_window", 4);  // KiB
  FlowConfig config = Config();
  config.cc = {.kind = CcKind::kDcqcn,
               .window_bytes = 100 * kMtu,
               .packet_bytes = kMtu,
               .profile = &profile};
  flow.Start(config, Psn(100), now);
  int most = 0;
  for (int round = 0; round < 20; ++round) {
    most = 0;
    while (flow.MayAnswer(kMtu, now)) {
      flow.OnAnswered(kMtu, now);
      ++most;
    }
    if (round == 0) {
      EXPECT_LE(most, 4);
    }
    Wait(Microseconds(50));
  }
  EXPECT_EQ(most, 100);
}

TEST_F(FlowTest, Answers_LeaveTheLedgerAloneAndRequestsTheirRound) {
  flow.OnAnswered(10 * kMtu, now);
  EXPECT_TRUE(flow.idle());
  EXPECT_EQ(flow.next(), Psn(100));
  EXPECT_EQ(flow.deadline(), kNever);
  SendPackets(10);
  EXPECT_FALSE(flow.MaySend(1, now));
  Wait(Microseconds(50));
  EXPECT_TRUE(flow.MayAnswer(10 * kMtu, now)) << "what waits for acknowledgements blocks no answer";
}

TEST_F(FlowTest, Answers_ShortRoundTripShortensTheRound) {
  SendPackets(1);
  Wait(Microseconds(20));
  Ack(101);
  flow.OnAnswered(10 * kMtu, now);
  EXPECT_FALSE(flow.MayAnswer(1, now + Microseconds(19)));
  EXPECT_TRUE(flow.MayAnswer(1, now + Microseconds(20)));
}

TEST_F(FlowTest, Answers_BeforeTheFirstRequest) {
  Flow fresh;
  fresh.Open(Config().cc, now);
  fresh.OnAnswered(9 * kMtu, now);
  EXPECT_TRUE(fresh.MayAnswer(kMtu, now));
  EXPECT_FALSE(fresh.MayAnswer(kMtu + 1, now));
}

TEST_F(FlowTest, Idle_NoDeadline) {
  EXPECT_EQ(flow.deadline(), kNever);
  EXPECT_EQ(flow.OnDeadline(now + Seconds(100)), LossVerdict::kNothing);
  SendPackets(1);
  Ack(101);
  EXPECT_EQ(flow.deadline(), kNever);
}

TEST_F(FlowTest, Silence_ProbeThenGoBackThenTheTimer) {
  SendPackets(3);
  EXPECT_EQ(flow.deadline(), kStart + Milliseconds(50));
  EXPECT_EQ(flow.OnDeadline(kStart + Milliseconds(49)), LossVerdict::kNothing);
  EXPECT_EQ(flow.OnDeadline(kStart + Milliseconds(50)), LossVerdict::kProbe);
  EXPECT_EQ(flow.next(), Psn(103));
  EXPECT_EQ(flow.deadline(), kStart + Milliseconds(100)) << "the timer comes before the next probe";
  EXPECT_EQ(flow.OnDeadline(kStart + Milliseconds(100)), LossVerdict::kRewind);
  EXPECT_EQ(flow.retries_left(), 2u);
}

TEST_F(FlowTest, SecondProbeUnanswered_GoesBackWithoutSpendingARetry) {
  FlowConfig config = Config();
  config.timeout = Seconds(10);
  flow.Start(config, Psn(100), now);
  SendPackets(3);
  EXPECT_EQ(flow.OnDeadline(kStart + Milliseconds(50)), LossVerdict::kProbe);
  EXPECT_EQ(flow.deadline(), kStart + Milliseconds(150));
  EXPECT_EQ(flow.OnDeadline(kStart + Milliseconds(150)), LossVerdict::kRewind);
  EXPECT_EQ(flow.retries_left(), 3u);
  EXPECT_EQ(flow.next(), Psn(100));
  now = kStart + Milliseconds(151);
  SendPackets(3);
  // Going back is no progress: the timer still runs from the beginning.
  EXPECT_EQ(flow.deadline(), kStart + Milliseconds(350));
  EXPECT_EQ(flow.OnDeadline(kStart + Seconds(10)), LossVerdict::kRewind);
  EXPECT_EQ(flow.retries_left(), 2u);
}

TEST_F(FlowTest, ProbesBackOff_UpToSixtyFourTimes) {
  FlowConfig config = Config();
  config.timeout = Duration{};
  flow.Start(config, Psn(100), now);
  SendPackets(1);
  Duration wait = Milliseconds(50);
  for (int i = 0; i < 12; ++i) {
    ASSERT_EQ(flow.deadline(), now + wait) << i;
    now = flow.deadline();
    ASSERT_EQ(flow.OnDeadline(now), i == 0 ? LossVerdict::kProbe : LossVerdict::kRewind);
    if (i > 0) SendPackets(1);
    if (i < 6) wait = wait * 2;
  }
}

TEST_F(FlowTest, ProbeAnsweredInPart_GoesBackToTheRest) {
  SendPackets(3);
  now = flow.deadline();
  ASSERT_EQ(flow.OnDeadline(now), LossVerdict::kProbe);
  EXPECT_TRUE(Ack(101));
  EXPECT_EQ(flow.next(), Psn(101));
  EXPECT_EQ(flow.max(), Psn(103));
  EXPECT_TRUE(flow.idle());
  EXPECT_FALSE(flow.rtt().has_sample()) << "the answer to a probe is no round trip";
  // If everything is acknowledged, there is nothing to go back for.
  SendPackets(2);
  now = flow.deadline();
  ASSERT_EQ(flow.OnDeadline(now), LossVerdict::kProbe);
  const uint32_t rewinds = flow.rewinds();
  EXPECT_TRUE(Ack(103));
  EXPECT_EQ(flow.rewinds(), rewinds);
}

// A peer reports a missing packet once. If the repetition is lost too, it reports nothing more.
TEST_F(FlowTest, RepetitionAfterALossSilent_AskedForSoon) {
  SendPackets(5);
  Wait(Microseconds(20));
  EXPECT_TRUE(Ack(101));
  ASSERT_TRUE(flow.OnLoss(now));
  SendPackets(4);
  EXPECT_EQ(flow.deadline(), now + Microseconds(100)) << "and not the four milliseconds of a tail";
  now = flow.deadline();
  EXPECT_EQ(flow.OnDeadline(now), LossVerdict::kProbe);
  EXPECT_EQ(flow.retries_left(), 2u) << "one for the loss, none for asking";
  // The answer: that packet has arrived, and the ones behind it were dropped.
  EXPECT_TRUE(Ack(102));
  EXPECT_EQ(flow.next(), Psn(102));
  SendPackets(3);
  EXPECT_EQ(flow.deadline(), now + Milliseconds(4)) << "progress: as ever";
}

TEST_F(FlowTest, RepetitionAfterTheTimer_NobodyHasSpoken_ProbedLater) {
  SendPackets(5);
  Wait(Microseconds(20));
  EXPECT_TRUE(Ack(101));
  now = now + Milliseconds(100);
  EXPECT_EQ(flow.OnDeadline(now), LossVerdict::kRewind);
  EXPECT_EQ(flow.retries_left(), 2u);
  SendPackets(4);
  EXPECT_EQ(flow.deadline(), now + Milliseconds(4));
}

TEST_F(FlowTest, Progress_RestartsTimerAndProbes) {
  SendPackets(5);
  now = kStart + Milliseconds(90);
  Ack(101);
  EXPECT_EQ(flow.deadline(), now + Milliseconds(100)) << "timer; a probe needs 90 * 2 + 45 * 4 ms";
}

TEST_F(FlowTest, TimerSpentWithoutProgress_RetriesSpent) {
  for (uint32_t left = 3; left > 0; --left) {
    SendPackets(1);
    const TimePoint begin = now;
    while (flow.retries_left() == left) {
      now = flow.deadline();
      ASSERT_NE(flow.OnDeadline(now), LossVerdict::kRetriesSpent);
      if (flow.idle() && flow.retries_left() == left) SendPackets(1);
    }
    EXPECT_EQ(now, begin + Milliseconds(100));
  }
  SendPackets(1);
  now = now + Milliseconds(100);
  EXPECT_EQ(flow.OnDeadline(now), LossVerdict::kRetriesSpent);
}

TEST_F(FlowTest, NoTimer_OnlyProbes) {
  FlowConfig config = Config();
  config.timeout = Duration{};
  config.retry_count = 0;
  flow.Start(config, Psn(0), now);
  SendPackets(1);
  for (int i = 0; i < 100; ++i) {
    now = flow.deadline();
    ASSERT_NE(flow.OnDeadline(now), LossVerdict::kRetriesSpent);
    if (flow.idle()) SendPackets(1);
  }
}

TEST_F(FlowTest, Configure_TakesTheNewLimits) {
  SendPackets(1);
  ASSERT_TRUE(flow.OnLoss(now));
  FlowConfig config = Config();
  config.retry_count = 1;
  config.timeout = Milliseconds(7);
  flow.Configure(config);
  EXPECT_EQ(flow.retries_left(), 1u);
  SendPackets(1);
  EXPECT_EQ(flow.deadline(), now + Milliseconds(7));
}

TEST_F(FlowTest, Configure_AfterALoss_TheWindowIsWholeAgain) {
  FlowConfig config = Config();
  config.cc.window_bytes = 1000 * kMtu;
  flow.Start(config, Psn(100), now);
  SendPackets(50);
  ASSERT_TRUE(flow.OnLoss(now));
  flow.Configure(config);
  SendPackets(50);
  EXPECT_TRUE(flow.MaySend(kMtu, now));
}

TEST_F(FlowTest, Start_WhileInFlight_NothingIsLeftOfIt) {
  SendPackets(5);
  flow.OnAnswered(5 * kMtu, now);
  Wait(Microseconds(10));
  flow.Start(Config(), Psn(7), now);
  EXPECT_TRUE(flow.idle());
  EXPECT_EQ(flow.in_flight(), 0u);
  flow.OnAnswered(10 * kMtu, now);
  EXPECT_EQ(flow.NextAnswer(now), now + Microseconds(50)) << "a round of its own";
  SendPackets(1);
  EXPECT_TRUE(Ack(8));
}

TEST_F(FlowTest, Paced_AsksAgainWhenTheNextPacketIsDue) {
  CcProfile profile;
  profile.link_bits_per_second = 8'000'000'000;
  FlowConfig config = Config();
  config.cc = {.kind = CcKind::kDcqcn, .window_bytes = 100 * kMtu, .profile = &profile};
  flow.Start(config, Psn(100), now);
  SendPackets(10);
  EXPECT_EQ(flow.earliest(), kNever) << "nobody has said anything";
  flow.OnCnp(now);
  // Slightly more than half of 8 Gbit/s: 1000 bytes take 2 us.
  SendPackets(1);
  EXPECT_FALSE(flow.MaySend(kMtu, now));
  EXPECT_NEAR(static_cast<double>((flow.earliest() - now).ns), 2000, 5);
  EXPECT_FALSE(flow.MaySend(kMtu, flow.earliest() - Nanoseconds(1)));
  EXPECT_TRUE(flow.MaySend(kMtu, flow.earliest()));
  // READ responses are paced as well.
  EXPECT_FALSE(flow.MayAnswer(kMtu, now));
  EXPECT_EQ(flow.NextAnswer(now), flow.earliest());
}

TEST_F(FlowTest, Paced_WhatThePeerSendsIsNotOurs) {
  CcProfile profile;
  profile.link_bits_per_second = 8'000'000'000;
  profile.Set(CcKind::kDcqcn, "initial_window", 65535);
  FlowConfig config = Config();
  config.cc = {.kind = CcKind::kDcqcn, .window_bytes = 100 * kMtu, .profile = &profile};
  flow.Start(config, Psn(100), now);
  flow.OnCnp(now);
  flow.OnSent(50, 50 * kMtu, 0, now);
  EXPECT_EQ(flow.in_flight(), 50u * kMtu);
  EXPECT_TRUE(flow.MaySend(kMtu, now)) << "a READ was asked for, nothing has left";
}

TEST_F(FlowTest, SwitchCc_KeepsWhatIsInFlightAndTheOperatingPoint) {
  CcProfile profile;
  profile.link_bits_per_second = 8'000'000'000;
  FlowConfig config = Config();
  config.cc = {.kind = CcKind::kDctcp,
               .window_bytes = 400 * kMtu,
               .packet_bytes = kMtu,
               .profile = &profile};
  flow.Start(config, Psn(100), now);
  EXPECT_TRUE(flow.uses_marks());
  SendPackets(16);
  Wait(Microseconds(100));
  Ack(108);
  const uint64_t window = flow.cc_window();
  CcConfig other = config.cc;
  for (CcKind kind : {CcKind::kSwift, CcKind::kDcqcn, CcKind::kCaqm, CcKind::kDctcp}) {
    other.kind = kind;
    flow.SwitchCc(other, now);
    EXPECT_EQ(flow.cc_kind(), kind);
    EXPECT_NEAR(static_cast<double>(flow.cc_window()), static_cast<double>(window), kMtu / 2.0);
    EXPECT_EQ(flow.in_flight(), 8u * kMtu);
    EXPECT_EQ(flow.una(), Psn(108));
    EXPECT_EQ(flow.next(), Psn(116));
  }
  EXPECT_TRUE(Ack(116)) << "as if nothing had been";
  other.kind = CcKind::kStatic;
  flow.SwitchCc(other, now);
  EXPECT_FALSE(flow.uses_marks());
  EXPECT_EQ(flow.cc_window(), 400u * kMtu);
}

// A CNP acts as marks do: a round with marks cuts the window, one without adds to it.
TEST_F(FlowTest, Cnp_ShrinksAWindowThatUsesMarks) {
  FlowConfig config = Config();
  config.cc = {.kind = CcKind::kDctcp, .window_bytes = 400 * kMtu, .packet_bytes = kMtu};
  flow.Start(config, Psn(100), now);
  const uint64_t window = flow.cc_window();
  SendPackets(16);
  flow.OnCnp(now);
  flow.OnAcked(Psn(116), kMtu, now + Microseconds(50));
  EXPECT_LT(flow.cc_window(), window);
}

TEST_F(FlowTest, Start_ForgetsEverything) {
  SendPackets(5);
  flow.OnLoss(now);
  Wait(Milliseconds(3));
  flow.Start(Config(), Psn(7), now);
  EXPECT_EQ(flow.una(), Psn(7));
  EXPECT_EQ(flow.next(), Psn(7));
  EXPECT_EQ(flow.max(), Psn(7));
  EXPECT_TRUE(flow.idle());
  EXPECT_EQ(flow.retries_left(), 3u);
  EXPECT_FALSE(flow.rtt().has_sample());
}

}  // namespace
}  // namespace rocegw::flow
