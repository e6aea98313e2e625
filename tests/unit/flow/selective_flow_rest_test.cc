// SPDX-License-Identifier: Apache-2.0
// Sending half of selective repeat: flows at rest, and windows that are full.
#include <gtest/gtest.h>

#include "tests/unit/flow/selective_flow_fixture.h"

namespace rocegw::flow {
namespace {

TEST_F(SelectiveFlowTest, AtRest_HoldsNoMemory) {
  EXPECT_EQ(pool.bytes_used(), 0u);
  Send(65);
  EXPECT_EQ(pool.bytes_used(), sizeof(LedgerPage) + 2 * sizeof(RecordChunk));
  Ack(164);
  EXPECT_EQ(pool.bytes_used(), sizeof(LedgerPage) + sizeof(RecordChunk));
  Ack(165);
  EXPECT_EQ(pool.bytes_used(), 0u);
  EXPECT_TRUE(flow.idle());
  EXPECT_EQ(flow.deadline(), kNever);
  EXPECT_EQ(flow.rests_at(), now + SelectiveFlow::kRestAfter);
}

TEST_F(SelectiveFlowTest, NeverUsed_MayRest) {
  EXPECT_EQ(flow.deadline(), kNever);
  EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kNothing);
  EXPECT_EQ(flow.earliest(1), kNever);
  EXPECT_GT(flow.cc_window(), 0u);
  EXPECT_EQ(flow.rests_at(), now + SelectiveFlow::kRestAfter);
}

// A full window opens only with an acknowledgement: the pacing time has passed long ago and must
// not be returned.
TEST_F(SelectiveFlowTest, PacedAndFull_WaitsForAnAcknowledgement) {
  SelectiveConfig config;
  config.cc.kind = CcKind::kDcqcn;
  config.cc.packet_bytes = kBytes;
  Start(config);
  LearnRtt();
  flow.OnCnp(now);
  uint32_t psn = 101;
  while (flow.MaySend(kBytes, now)) {
    Send(1);
    ++psn;
    if (flow.earliest(kBytes) != kNever) now = std::max(now, flow.earliest(kBytes));
  }
  EXPECT_EQ(flow.earliest(kBytes), kNever);
  EXPECT_NE(flow.earliest(0), kNever) << "it is paced";
  Ack(psn);
  EXPECT_NE(flow.earliest(kBytes), kNever);
}

TEST_F(SelectiveFlowTest, InFlight_DoesNotRest) {
  Send(2);
  EXPECT_EQ(flow.rests_at(), kNever);
  Ack(101);
  EXPECT_EQ(flow.rests_at(), kNever);
}

TEST_F(SelectiveFlowTest, AfterRest_GoesOnWhereItWas) {
  SelectiveConfig config;
  config.cc.kind = CcKind::kSwift;
  config.cc.packet_bytes = kBytes;
  Start(config);
  LearnRtt();
  Send(4);
  Wait(kRtt);
  Ack(102, {103, 104});
  Wait(kRtt);
  flow.OnDeadline(now);
  Resend();
  Wait(kRtt);
  Ack(105);
  const uint64_t window = flow.cc_window();
  const Duration rtt = flow.rtt().smoothed();
  const uint32_t resent = flow.resent();
  Wait(SelectiveFlow::kRestAfter * 2);
  ASSERT_LE(flow.rests_at(), now);
  RestFor({}, config.cc);
  EXPECT_GE(flow.cc_window(), window / 2);
  EXPECT_LE(flow.cc_window(), window * 2);
  EXPECT_EQ(flow.rtt().smoothed(), rtt);
  EXPECT_EQ(flow.resent(), resent);
  EXPECT_TRUE(flow.MaySend(kBytes, now));
  Send(1);
  EXPECT_EQ(flow.next().value, 106u);
  Wait(kRtt);
  Ack(106);
  EXPECT_TRUE(flow.idle());
}

TEST_F(SelectiveFlowTest, AnotherKindAtRest_BeginsWhereTheOldOneWas) {
  CcConfig cc;
  cc.packet_bytes = kBytes;
  LearnRtt();
  const uint64_t window = flow.cc_window();
  RestingFlow resting = flow.Rest();
  resting.kind = static_cast<uint8_t>(CcKind::kSwift);
  flow.Resume(resting, cc, now);
  EXPECT_EQ(flow.cc_kind(), CcKind::kSwift);
  EXPECT_LE(flow.cc_window(), window);
  EXPECT_GE(flow.cc_window(), window / 2);
  Send(1);
  EXPECT_EQ(flow.cc_kind(), CcKind::kSwift);
  EXPECT_EQ(flow.in_flight(), kBytes);
}

TEST_F(SelectiveFlowTest, ClosedWindow_DoesNotRest) {
  LearnRtt();
  AckInfo info = Info(101, {});
  info.room_packets = 0;
  Take(info);
  for (int i = 0; i < 10; ++i) {
    Wait(flow.deadline() - now);
    EXPECT_NE(flow.OnDeadline(now), FlowVerdict::kNothing);
    EXPECT_EQ(flow.rests_at(), kNever);
  }
}

TEST_F(SelectiveFlowTest, AfterRest_TheReceiversCountsAndItsRoomGoOn) {
  LearnRtt();
  AckInfo info = Info(101, {});
  info.room_packets = 3;
  info.duplicates_running = 7;
  Take(info);
  const uint32_t spurious = flow.spurious();
  RestFor(Seconds(100), {});
  Send(3);
  EXPECT_FALSE(flow.MaySend(kBytes, now));
  Wait(kRtt);
  info = Info(104, {});
  info.duplicates_running = 7;
  Take(info);
  EXPECT_EQ(flow.spurious(), spurious) << "nothing came twice meanwhile";
}

// A probe from before the rest may be answered after it. That answer knows nothing of packets sent
// since.
TEST_F(SelectiveFlowTest, AnswerToAProbeOfBeforeTheRest_LosesNothing) {
  LearnRtt();
  Send(1);
  Wait(SelectiveFlow::kProbeFloor);
  ASSERT_EQ(flow.OnDeadline(now), FlowVerdict::kProbe);
  const uint32_t old = flow.probe_number();
  Ack(102);
  RestFor(Seconds(2), {});
  Send(2);
  now = flow.deadline();
  ASSERT_EQ(flow.OnDeadline(now), FlowVerdict::kProbe);
  EXPECT_NE(flow.probe_number(), old);
  Ack(102, {}, old);
  EXPECT_TRUE(Resend().empty());
}

TEST_F(SelectiveFlowTest, HandshakesRoundTrip_OutlastsARest) {
  SelectiveConfig config;
  config.rtt = Milliseconds(2);
  Start(config);
  RestFor(Seconds(2), {});
  Send(1);
  EXPECT_EQ(flow.deadline(), now + Milliseconds(6));
}

TEST_F(SelectiveFlowTest, AckWithoutData_ClosesAndOpensTheWindow) {
  AckInfo info = Info(100, {});
  info.room_packets = 0;
  EXPECT_TRUE(Take(info));
  EXPECT_FALSE(flow.MaySend(kBytes, now));
  EXPECT_NE(flow.deadline(), kNever) << "somebody must ask";
  EXPECT_EQ(flow.rests_at(), kNever);
  EXPECT_TRUE(Ack(100));
  EXPECT_TRUE(flow.MaySend(kBytes, now));
}

TEST_F(SelectiveFlowTest, Stop_GivesEverythingBack) {
  Send(200);
  flow.Stop();
  EXPECT_EQ(pool.bytes_used(), 0u);
  EXPECT_TRUE(flow.idle());
  EXPECT_EQ(flow.in_flight(), 0u);
  EXPECT_EQ(flow.deadline(), kNever);
}

// A receiver that waits for more packets than the window holds would stop the flow until its timer.
TEST_F(SelectiveFlowTest, EveryQuarterOfTheWindow_AsksForAnAcknowledgement) {
  EXPECT_FALSE(flow.AsksForAck()) << "nothing was sent";
  Start({.cc = {.kind = CcKind::kStatic, .window_bytes = 12 * kBytes}});
  for (int quarter = 0; quarter < 4; ++quarter) {
    Send(1);
    EXPECT_FALSE(flow.AsksForAck());
    Send(1);
    EXPECT_FALSE(flow.AsksForAck());
    Send(1);
    EXPECT_TRUE(flow.AsksForAck());
    EXPECT_FALSE(flow.AsksForAck()) << "once";
  }
  Start({.cc = {.kind = CcKind::kStatic, .window_bytes = kBytes}});
  Send(1);
  EXPECT_TRUE(flow.AsksForAck()) << "a window of one packet";
}

}  // namespace
}  // namespace rocegw::flow
