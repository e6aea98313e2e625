// SPDX-License-Identifier: Apache-2.0
// Sending half of selective repeat: which packets count as acknowledged, and which as lost.
#include <gtest/gtest.h>

#include "tests/unit/flow/selective_flow_fixture.h"

namespace rocegw::flow {
namespace {

TEST_F(SelectiveFlowTest, CumulativeAck_AcknowledgesEachPacketOnce) {
  Send(10);
  EXPECT_EQ(flow.in_flight(), 10 * kBytes);
  EXPECT_TRUE(Ack(104));
  EXPECT_EQ(acked, (std::map<uint32_t, int>{{100, 1}, {101, 1}, {102, 1}, {103, 1}}));
  EXPECT_EQ(flow.una(), Psn(104));
  EXPECT_EQ(flow.in_flight(), 6 * kBytes);
  EXPECT_TRUE(Ack(110));
  EXPECT_EQ(acked.size(), 10u);
  EXPECT_EQ(acked[103], 1);
}

TEST_F(SelectiveFlowTest, AckOfThePastOrOfTheFuture_IsNotUsed) {
  Send(10);
  Ack(105);
  EXPECT_FALSE(Ack(104));
  EXPECT_FALSE(Ack(111));
  EXPECT_FALSE(Ack(105 + kPsnWindow));
  EXPECT_EQ(flow.una(), Psn(105));
  EXPECT_EQ(acked.size(), 5u);
}

TEST_F(SelectiveFlowTest, BitsOfPacketsNeverSent_AreIgnored) {
  Send(3);
  AckInfo info = Info(100, {101});
  bitmap.assign(128, 0xFFFFFFFF);
  info.bitmap = bitmap;
  EXPECT_TRUE(Take(info));
  EXPECT_EQ(acked, (std::map<uint32_t, int>{{101, 1}, {102, 1}}));
}

TEST_F(SelectiveFlowTest, MoreBitmapThanAWindow_IsIgnored) {
  Send(3);
  std::vector<uint32_t> words(1000, 0xFFFFFFFF);
  AckInfo info = Info(100, {});
  info.bitmap = words;
  EXPECT_TRUE(Take(info));
  EXPECT_EQ(acked.size(), 2u);
}

TEST_F(SelectiveFlowTest, ThreeSentLater_MakeALoss) {
  LearnRtt();  // 101 is next
  Send(10);
  Wait(kRtt);
  Ack(101, {102});
  EXPECT_EQ(flow.packets_lost(), 0u);
  Ack(101, {102, 103});
  EXPECT_EQ(flow.packets_lost(), 0u);
  Ack(101, {102, 103, 104});
  EXPECT_EQ(Resend(), Psns{101});
}

TEST_F(SelectiveFlowTest, AQuarterOfTheRoundTrip_MakesALoss) {
  LearnRtt();
  Send(2);
  Wait(kRtt);
  Ack(101, {102});
  EXPECT_EQ(flow.packets_lost(), 0u);
  EXPECT_EQ(flow.deadline(), now + kRtt / 4);
  Wait(kRtt / 4 - Nanoseconds(1));
  EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kNothing);
  EXPECT_EQ(flow.packets_lost(), 0u);
  Wait(Nanoseconds(1));
  EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kNothing);
  EXPECT_EQ(Resend(), Psns{101});
}

TEST_F(SelectiveFlowTest, LostBytes_LeaveWhatIsInFlight) {
  LearnRtt();
  Send(10);
  Wait(kRtt);
  Ack(101, {104, 105, 106});
  EXPECT_EQ(flow.packets_lost(), 3u);
  EXPECT_EQ(flow.packets_in_flight(), 4u);
  EXPECT_EQ(flow.in_flight(), 4 * kBytes);
  EXPECT_EQ(Resend(), (Psns{101, 102, 103}));
  EXPECT_EQ(flow.in_flight(), 7 * kBytes);
  EXPECT_EQ(flow.lost(), 3u);
  EXPECT_EQ(flow.resent(), 3u);
  EXPECT_EQ(flow.spurious(), 0u);
}

TEST_F(SelectiveFlowTest, LostAgain_IsSeenByWhatWasSentAfterIt) {
  LearnRtt();
  Send(4);
  Wait(kRtt);
  Ack(101, {102, 103, 104});
  EXPECT_EQ(Resend(), Psns{101});
  // Acknowledgements of packets sent before the retransmission say nothing about it.
  Wait(Microseconds(1));
  Ack(101, {102, 103, 104});
  EXPECT_EQ(flow.packets_lost(), 0u);
  Send(3);
  Wait(kRtt);
  Ack(101, {102, 103, 104, 105, 106, 107});
  EXPECT_EQ(Resend(), Psns{101});
  EXPECT_EQ(flow.lost(), 2u);
  Wait(kRtt);
  Ack(108);
  EXPECT_TRUE(flow.idle());
  EXPECT_EQ(pool.bytes_used(), 0u);
}

TEST_F(SelectiveFlowTest, LostPackets_PassTheGateButNotTheWindow) {
  SelectiveConfig config;
  config.max_packets = 4;
  config.cc.window_bytes = 2 * kBytes;
  Start(config);
  LearnRtt();
  Send(4);
  EXPECT_FALSE(flow.MaySend(kBytes, now));
  Wait(kRtt);
  Ack(101, {104});
  Wait(kRtt / 4);
  flow.OnDeadline(now);
  EXPECT_EQ(flow.packets_lost(), 3u);
  // The window of four PSNs is full; lost packets may leave, two at a time.
  Psn psn;
  FrameRef frame;
  uint32_t bytes = 0;
  for (const uint32_t expected : {101u, 102u}) {
    EXPECT_FALSE(flow.MaySend(kBytes, now)) << "what is lost may be in nobody's hands for a while";
    ASSERT_TRUE(flow.MayResend(kBytes, now));
    ASSERT_TRUE(flow.NextLost(psn, frame, bytes));
    EXPECT_EQ(psn, Psn(expected));
    flow.OnResent(psn, now);
  }
  EXPECT_FALSE(flow.MayResend(kBytes, now));
}

TEST_F(SelectiveFlowTest, NothingInFlight_OnePacketMayGo) {
  SelectiveConfig config;
  config.cc.window_bytes = 10;
  Start(config);
  EXPECT_TRUE(flow.MaySend(kBytes, now));
  Send(1);
  EXPECT_FALSE(flow.MaySend(kBytes, now));
}

TEST_F(SelectiveFlowTest, Window_IsTheSmallerOfOwnAndReceivers) {
  SelectiveConfig config;
  config.max_packets = 8;
  config.room_packets = 5;
  config.cc.window_bytes = 1 << 20;
  Start(config);
  Send(4);
  EXPECT_TRUE(flow.MaySend(kBytes, now));
  Send(1);
  EXPECT_FALSE(flow.MaySend(kBytes, now));
  AckInfo info = Info(101, {});
  info.room_packets = 100;
  Take(info);
  Send(3);
  EXPECT_TRUE(flow.MaySend(kBytes, now));
  Send(1);
  EXPECT_FALSE(flow.MaySend(kBytes, now));
}

// The last frames of a closing queue pair need space in the receiver's window, never more.
TEST_F(SelectiveFlowTest, Place_IsWhatTheReceiverTakes_WhateverCongestionControlSays) {
  SelectiveConfig config;
  config.max_packets = 8;
  config.room_packets = 5;
  config.cc.window_bytes = kBytes;
  Start(config);
  Send(1);
  EXPECT_FALSE(flow.MaySend(kBytes, now));
  EXPECT_TRUE(flow.HasPlace());
  Send(3);
  EXPECT_TRUE(flow.HasPlace());
  Send(1);
  EXPECT_FALSE(flow.HasPlace());
}

TEST_F(SelectiveFlowTest, NoMoreThan4096Packets) {
  SelectiveConfig config;
  config.max_packets = 1 << 20;
  config.room_packets = 1 << 20;
  config.cc.window_bytes = 1 << 30;
  Start(config, kPsnMask - 1000);
  while (flow.MaySend(kBytes, now)) Send(1);
  EXPECT_EQ(flow.packets_in_flight(), 4096u);
  Wait(kRtt);
  Ack(first, {(first + 4095) & kPsnMask});
  EXPECT_EQ(flow.packets_lost(), 4093u);
  EXPECT_EQ(Resend().size(), 4093u);
  Wait(kRtt);
  Ack((first + 4096) & kPsnMask);
  EXPECT_EQ(acked.size(), 4096u);
  EXPECT_EQ(pool.bytes_used(), 0u);
}

}  // namespace
}  // namespace rocegw::flow
