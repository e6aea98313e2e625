// SPDX-License-Identifier: Apache-2.0
// Sending half of selective repeat: probes, round trips, late packets, congestion control.
#include <gtest/gtest.h>

#include "tests/unit/flow/selective_flow_fixture.h"

namespace rocegw::flow {
namespace {

TEST_F(SelectiveFlowTest, ClosedWindow_IsAskedAbout) {
  LearnRtt();
  Send(1);
  AckInfo info = Info(102, {});
  info.room_packets = 0;
  Take(info);
  EXPECT_FALSE(flow.MaySend(kBytes, now));
  EXPECT_EQ(flow.deadline(), now + SelectiveFlow::kProbeFloor);
  Wait(SelectiveFlow::kProbeFloor);
  EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kProbe);
  Ack(102, {}, flow.probe_number());
  EXPECT_TRUE(flow.MaySend(kBytes, now));
  EXPECT_EQ(flow.deadline(), kNever);
}

TEST_F(SelectiveFlowTest, ProbesAnswer_TellsExactlyWhatIsMissing) {
  LearnRtt();
  Send(10);  // 101 to 110
  Wait(kRtt);
  Ack(108);
  EXPECT_EQ(flow.deadline(), now + SelectiveFlow::kProbeFloor);
  Wait(SelectiveFlow::kProbeFloor);
  EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kProbe);
  const uint32_t probe = flow.probe_number();
  EXPECT_NE(probe, 0u);
  Send(2);  // 111 and 112 left after the probe
  Ack(108, {109}, probe);
  EXPECT_EQ(Resend(), (Psns{108, 110}));
  EXPECT_EQ(flow.packets_in_flight(), 4u);
  // The same answer again: the other packets were sent after the probe.
  Ack(108, {109}, probe);
  EXPECT_EQ(flow.packets_lost(), 0u);
}

TEST_F(SelectiveFlowTest, AnswerToAnOlderProbe_LosesNothing) {
  LearnRtt();
  Send(2);
  Wait(SelectiveFlow::kProbeFloor);
  EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kProbe);
  const uint32_t older = flow.probe_number();
  Wait(SelectiveFlow::kProbeFloor * 2);
  EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kProbe);
  EXPECT_NE(flow.probe_number(), older);
  Ack(101, {}, older);
  EXPECT_EQ(flow.packets_lost(), 0u);
}

TEST_F(SelectiveFlowTest, UnansweredProbes_SuspectThePathThenThePeer) {
  LearnRtt();
  Send(1);
  std::vector<Duration> waits;
  int suspects = 0;
  for (int probe = 1; probe <= SelectiveFlow::kDeadAfter; ++probe) {
    waits.push_back(flow.deadline() - now);
    now = flow.deadline();
    const FlowVerdict verdict = flow.OnDeadline(now);
    EXPECT_EQ(verdict, probe % 6 == 0 ? FlowVerdict::kPathSuspect : FlowVerdict::kProbe) << probe;
    if (verdict == FlowVerdict::kPathSuspect) ++suspects;
  }
  EXPECT_EQ(suspects, 4);
  EXPECT_EQ(waits[0], Milliseconds(1));
  EXPECT_EQ(waits[1], Milliseconds(2));
  EXPECT_EQ(waits[5], Milliseconds(32));
  EXPECT_EQ(waits[23], SelectiveFlow::kProbeCeiling);
  now = flow.deadline();
  EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kDead);
  EXPECT_GE(now - kSendStart, Seconds(4));
}

TEST_F(SelectiveFlowTest, AnyAnswer_StartsTheCountOfProbesAnew) {
  LearnRtt();
  Send(2);
  for (int i = 0; i < 5; ++i) {
    now = flow.deadline();
    EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kProbe);
  }
  AckInfo info = Info(102, {});
  info.held = now - kSendStart - kRtt - kRtt;
  Take(info);
  EXPECT_EQ(flow.deadline(), now + SelectiveFlow::kProbeFloor);
  now = flow.deadline();
  EXPECT_EQ(flow.OnDeadline(now), FlowVerdict::kProbe);
}

TEST_F(SelectiveFlowTest, FirstPackets_WaitForTheHandshakesRoundTrip) {
  Send(1);
  EXPECT_EQ(flow.deadline(), now + SelectiveFlow::kProbeWithoutRtt);
  SelectiveConfig config;
  config.rtt = Milliseconds(2);
  Start(config);
  Send(1);
  EXPECT_EQ(flow.deadline(), now + Milliseconds(6));
}

TEST_F(SelectiveFlowTest, RoundTrip_IsWithoutWhatTheReceiverHeld) {
  Send(2);
  Wait(Microseconds(150));
  AckInfo info = Info(101, {});
  info.held = Microseconds(50);
  Take(info);
  EXPECT_EQ(flow.rtt().smoothed(), Microseconds(100));
  // A receiver cannot have held a packet longer than the packet was in flight.
  info = Info(102, {});
  info.held = Seconds(4);
  Take(info);
  EXPECT_GT(flow.rtt().minimum(), Duration{});
}

TEST_F(SelectiveFlowTest, PacketSentTwice_GivesNoSample) {
  LearnRtt();
  Send(4);
  Wait(kRtt);
  Ack(101, {102, 103, 104});
  Resend();
  Wait(kRtt * 5);
  Ack(105);
  EXPECT_EQ(flow.rtt().smoothed(), kRtt);
}

TEST_F(SelectiveFlowTest, LostButOnlyLate_IsNotSentAgainAndWidensTheRoom) {
  LearnRtt();
  Send(4);
  Wait(kRtt);
  Ack(101, {102, 103, 104});
  EXPECT_EQ(flow.packets_lost(), 1u);
  Ack(105);
  EXPECT_EQ(flow.packets_lost(), 0u);
  EXPECT_EQ(acked[101], 1);
  EXPECT_EQ(flow.spurious(), 1u);
  // Now six packets must be sent later, or half of the round trip pass.
  Send(8);
  Wait(kRtt);
  Ack(105, {106, 107, 108, 109, 110});
  EXPECT_EQ(flow.packets_lost(), 0u);
  EXPECT_EQ(flow.deadline(), now + kRtt / 2);
  Ack(105, {106, 107, 108, 109, 110, 111});
  EXPECT_EQ(flow.packets_lost(), 1u);
}

TEST_F(SelectiveFlowTest, DuplicatesAtTheReceiver_WidenTheRoomToo) {
  LearnRtt();
  Send(1);
  Wait(kRtt);
  AckInfo info = Info(102, {});
  info.duplicates_running = 2;
  Take(info);
  EXPECT_EQ(flow.spurious(), 2u);
  Send(5);
  Wait(kRtt);
  info = Info(102, {103, 104, 105, 106});
  info.duplicates_running = 2;
  Take(info);
  EXPECT_EQ(flow.packets_lost(), 0u);
  // An acknowledgement that was made earlier has a smaller count.
  info.duplicates_running = 1;
  Take(info);
  EXPECT_EQ(flow.spurious(), 2u);
}

TEST_F(SelectiveFlowTest, QuickAnswerToAResentPacket_CondemnsNothingElse) {
  LearnRtt();
  Send(4);
  Wait(kRtt);
  Ack(101, {102, 103, 104});
  Wait(kRtt / 2);
  Send(6);  // 105 to 110
  EXPECT_EQ(Resend(), Psns{101});
  // The original of 101 arrives after all; packets sent since are not overdue.
  Wait(kRtt / 2);
  Ack(105);
  EXPECT_EQ(flow.packets_lost(), 0u);
  EXPECT_EQ(flow.packets_in_flight(), 6u);
}

TEST_F(SelectiveFlowTest, OneEpisode_IsOneLossForCongestionControl) {
  SelectiveConfig config;
  config.cc.kind = CcKind::kDctcp;
  config.cc.packet_bytes = kBytes;
  Start(config);
  Send(40);
  Wait(kRtt);
  Psns arrived;
  for (uint32_t psn = 101; psn <= 120; ++psn) arrived.push_back(psn);
  const uint64_t before = flow.cc_window();
  Ack(100, arrived);
  const uint64_t after = flow.cc_window();
  EXPECT_LT(after, before * 3 / 2);
  EXPECT_EQ(flow.lost(), 1u);
  // The algorithm's round ends here; the lost packets were sent before the first loss.
  for (uint32_t psn = 122; psn <= 139; ++psn) arrived.push_back(psn);
  Ack(100, arrived);
  EXPECT_EQ(flow.lost(), 2u);
  EXPECT_GE(flow.cc_window(), after);
  // Packets sent from now on belong to another episode.
  Resend();
  Send(20);
  Wait(kRtt);
  for (uint32_t psn = 141; psn <= 159; ++psn) arrived.push_back(psn);
  const uint64_t later = flow.cc_window();
  AckInfo info = Info(100, arrived);
  for (const uint32_t resent : {121u}) bitmap[(resent - 101) / 32] |= 1u << (resent - 101) % 32;
  Take(info);
  EXPECT_GT(flow.lost(), 2u);
  EXPECT_LT(flow.cc_window(), later);
}

TEST_F(SelectiveFlowTest, MarkedBytes_AreTheDifferenceOfTheRunningCount) {
  SelectiveConfig config;
  config.cc.kind = CcKind::kDctcp;
  config.cc.packet_bytes = kBytes;
  Start(config);
  const auto window_after = [&](uint32_t marked) {
    Start(config, 100);
    Send(32);
    Wait(kRtt);
    AckInfo info = Info(116, {});
    info.marked_bytes_running = marked;
    Take(info);
    info = Info(132, {});
    info.marked_bytes_running = marked;  // the same count: nothing new
    Take(info);
    return flow.cc_window();
  };
  const uint64_t without = window_after(0);
  const uint64_t with = window_after(16 * kBytes);
  EXPECT_LT(with, without);
  EXPECT_EQ(window_after(0x80000001), without) << "counts backwards: an older acknowledgement";
}

TEST_F(SelectiveFlowTest, SwitchCc_KeepsWhatIsInFlight) {
  Send(10);
  CcConfig cc;
  cc.kind = CcKind::kSwift;
  cc.packet_bytes = kBytes;
  flow.SwitchCc(cc, now);
  EXPECT_EQ(flow.cc_kind(), CcKind::kSwift);
  EXPECT_EQ(flow.in_flight(), 10 * kBytes);
  Wait(kRtt);
  Ack(110);
  EXPECT_TRUE(flow.idle());
}

TEST_F(SelectiveFlowTest, Outstanding_IsWhatIsNotAcknowledged) {
  LearnRtt();
  Send(6);
  Wait(kRtt);
  Ack(102, {104, 105});
  Psns psns;
  flow.ForEachOutstanding([&](Psn psn, const FrameRef& frame) {
    EXPECT_EQ(frame.offset, psn.value);
    psns.push_back(psn.value);
  });
  EXPECT_EQ(psns, (Psns{102, 103, 106}));
}

}  // namespace
}  // namespace rocegw::flow
