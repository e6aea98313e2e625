// SPDX-License-Identifier: Apache-2.0
// Sending half of selective repeat, rule by rule.
#include "gateway/flow/selective_flow.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace rocegw::flow {
namespace {

constexpr uint32_t kBytes = 1000;
constexpr TimePoint kSendStart{1'000'000'000};
constexpr Duration kRtt = Microseconds(100);

class SelectiveFlowTest : public ::testing::Test, private AckedSink {
 protected:
  SelectiveFlowTest() { Start(SelectiveConfig{}); }

  void Start(const SelectiveConfig& config, uint32_t psn = 100) {
    first = psn;
    flow.Start(config, Psn(psn), now);
  }
  void Send(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const FrameRef frame{.owner = SlotHandle{1, 2},
                           .message = 5,
                           .offset = flow.next().value,
                           .length = 9,
                           .kind = 3,
                           .extra = 4};
      flow.OnSent(pool, frame, kBytes, now);
    }
  }
  // Returns an acknowledgement of everything before `next` and of the listed PSNs.
  AckInfo Info(uint32_t next, const std::vector<uint32_t>& beyond) {
    bitmap.assign(beyond.empty() ? 0 : 128, 0);
    for (const uint32_t psn : beyond) {
      const auto bit = static_cast<uint32_t>(PsnDistance(Psn(psn), Psn(next + 1)));
      bitmap[bit / 32] |= 1u << bit % 32;
    }
    return {.next = Psn(next), .bitmap = bitmap, .room_packets = kMaxFlowPackets};
  }
  bool Ack(uint32_t next, const std::vector<uint32_t>& beyond = {}, uint32_t probe = 0) {
    AckInfo info = Info(next, beyond);
    info.probe = probe;
    return flow.OnAck(pool, info, now, *this);
  }
  bool Take(const AckInfo& info) { return flow.OnAck(pool, info, now, *this); }
  // Returns the lost packets in the order in which the flow returns them, and sends them again.
  std::vector<uint32_t> Resend() {
    std::vector<uint32_t> psns;
    Psn psn;
    FrameRef frame;
    uint32_t bytes = 0;
    while (flow.NextLost(psn, frame, bytes)) {
      EXPECT_EQ(frame.offset, psn.value);
      EXPECT_EQ(bytes, kBytes);
      psns.push_back(psn.value);
      flow.OnResent(psn, now);
    }
    return psns;
  }
  void Wait(Duration by) { now = now + by; }
  // Reduces the flow to its resting state for that time.
  void RestFor(Duration time, const CcConfig& cc) {
    const RestingFlow resting = flow.Rest();
    flow.Stop();
    Wait(time);
    flow.Resume(resting, cc, now);
  }
  // Makes a round trip of kRtt known, with nothing in flight afterwards.
  void LearnRtt() {
    Send(1);
    Wait(kRtt);
    Ack(flow.next().value);
    acked.clear();
  }

  LedgerPool pool;
  SelectiveFlow flow;
  TimePoint now = kSendStart;
  uint32_t first = 0;
  std::map<uint32_t, int> acked;
  std::vector<uint32_t> bitmap;

 private:
  void OnFrameAcked(Psn psn, const FrameRef& frame) override {
    ++acked[psn.value];
    EXPECT_EQ(frame.offset, psn.value);
    EXPECT_EQ(frame.owner, (WorkerObject(SlotHandle{1, 2})));
    EXPECT_EQ(frame.message, 5u);
    EXPECT_EQ(frame.length, 9);
    EXPECT_EQ(frame.kind, 3);
    EXPECT_EQ(frame.extra, 4);
  }
};

using Psns = std::vector<uint32_t>;

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
