// SPDX-License-Identifier: Apache-2.0
// Timers of an RC requester: tail probes, the transport timer, and when it gives up.
#include <gtest/gtest.h>

#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::requester_timer {
namespace {

using verbs::QpState;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kHostPsn;
constexpr uint64_t kSource = 0x1000;

// 4.096 us * 2^code.
Duration Timer(uint8_t code) { return Nanoseconds(int64_t{4096} << code); }

TEST(RequesterTimer, NothingOutstanding_NoDeadline) {
  ScriptedPeer peer;
  EXPECT_EQ(peer.host().qp().deadline(), kNever);
  peer.PostSend(kSource, 4);
  peer.Out();
  EXPECT_NE(peer.host().qp().deadline(), kNever);
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_EQ(peer.host().qp().deadline(), kNever);
}

TEST(RequesterTimer, Silence_ProbeOfTheOldestPacketFirst) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 256 * 5, 0);
  EXPECT_EQ(peer.Out().size(), 5u);
  // Without a round trip sample, the probe timeout is 50 ms.
  EXPECT_TRUE(peer.Advance(Microseconds(49999)).empty());
  const auto probe = peer.Advance(Microseconds(1));
  ASSERT_EQ(probe.size(), 1u);
  EXPECT_EQ(probe[0].opcode(), Opcode::kRcSendFirst);
  EXPECT_EQ(probe[0].psn(), kPsn);
  EXPECT_TRUE(probe[0].headers.bth.ack_request);
  EXPECT_EQ(peer.host().counters().tail_probe_events.Read(), 1u);
  EXPECT_EQ(peer.host().counters().timeout_events.Read(), 0u);
}

TEST(RequesterTimer, ProbeAnsweredForAll_NothingIsSentAgain) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 256 * 5);
  peer.Out();
  EXPECT_EQ(peer.Advance(Milliseconds(50)).size(), 1u);
  peer.Deliver(peer.Ack(kPsn + 4));
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.PollOne().status, 0);
}

TEST(RequesterTimer, ProbeAnsweredForItself_TheRestIsSentAgain) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 256 * 5);
  peer.Out();
  peer.Advance(Milliseconds(50));
  peer.Deliver(peer.Ack(kPsn));
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 4u) << "the peer drops what follows a gap";
  EXPECT_EQ(out[0].psn(), kPsn + 1);
}

TEST(RequesterTimer, RoundTripKnown_ProbesEarlier) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Advance(Microseconds(100));
  peer.Deliver(peer.Ack(kPsn));
  peer.PostSend(kSource, 4);
  peer.Out();
  EXPECT_TRUE(peer.Advance(Microseconds(3999)).empty());
  EXPECT_EQ(peer.Advance(Microseconds(1)).size(), 1u) << "4 ms is the floor";
}

TEST(RequesterTimer, OutstandingRead_AskedAgainInstead) {
  ScriptedPeer peer;
  peer.PostRead(0x8000, 1000);
  peer.PostSend(kSource, 4);
  peer.Out();
  const auto out = peer.Advance(Milliseconds(50));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].opcode(), Opcode::kRcReadRequest);
  EXPECT_EQ(out[0].psn(), kPsn);
  EXPECT_EQ(out[0].headers.reth.length, 1000u);
  EXPECT_EQ(out[1].psn(), kPsn + 4);
}

TEST(RequesterTimer, OutstandingReads_AskedAgainOneWindowAfterTheOther) {
  ScriptedPeer::Options options;
  options.limits.max_rd_atomic = 16;
  ScriptedPeer peer(options);
  for (int i = 0; i < 8; ++i) peer.PostRead(0x8000 + 2560u * static_cast<unsigned>(i), 2560);
  EXPECT_EQ(peer.Out().size(), 8u);
  // After the loss the window is small: 16 response packets, and the READ that exceeds them.
  const auto again = peer.Advance(Milliseconds(50));
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].psn(), kPsn);
  EXPECT_EQ(again[1].psn(), kPsn + 10);
  EXPECT_TRUE(peer.Out().empty());
  for (uint32_t i = 0; i < 20; ++i) {
    const Opcode opcode = i % 10 == 0   ? Opcode::kRcReadResponseFirst
                          : i % 10 == 9 ? Opcode::kRcReadResponseLast
                                        : Opcode::kRcReadResponseMiddle;
    peer.Deliver(peer.ReadResponse(opcode, kPsn + i), ScriptedPeer::Bytes(256));
  }
  EXPECT_EQ(peer.Out().size(), 4u) << "36 packets now, of which 40 are asked for";
}

TEST(RequesterTimer, SilenceForEver_RetryExceededAfterAllTimers) {
  for (auto [code, retries] : {std::pair<uint8_t, uint8_t>{15, 0}, {15, 2}, {15, 7}, {20, 1}}) {
    SCOPED_TRACE(int{code} * 100 + int{retries});
    ScriptedPeer::Options options;
    options.limits.timeout = code;  // 134 ms, 4.3 s
    options.limits.retry_count = retries;
    ScriptedPeer peer(options);
    peer.PostSend(kSource, 4);
    peer.PostSend(kSource, 4);
    peer.Out();
    const Duration all = Timer(code) * (retries + 1);
    EXPECT_FALSE(peer.Advance(all - Nanoseconds(1)).empty()) << "it tried";
    EXPECT_EQ(peer.host().context().state(), QpState::kRts);
    peer.Advance(Nanoseconds(1));
    EXPECT_EQ(peer.host().context().state(), QpState::kError);
    const auto cqes = peer.Poll();
    ASSERT_EQ(cqes.size(), 2u);
    EXPECT_EQ(cqes[0].status, 12) << "IBV_WC_RETRY_EXC_ERR";
    EXPECT_EQ(cqes[1].status, 5);
    EXPECT_EQ(peer.host().qp().deadline(), kNever);
  }
}

TEST(RequesterTimer, TimerZero_NeverGivesUp) {
  ScriptedPeer::Options options;
  options.limits.timeout = 0;
  options.limits.retry_count = 0;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 4);
  peer.Out();
  const auto out = peer.Advance(Seconds(60));
  EXPECT_GE(out.size(), 10u);
  EXPECT_LE(out.size(), 40u) << "probes back off";
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_EQ(peer.PollOne().status, 0);
}

TEST(RequesterTimer, Progress_StartsItAnew) {
  ScriptedPeer::Options options;
  options.limits.timeout = 15;
  options.limits.retry_count = 0;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 256 * 20);
  peer.Out();
  for (uint32_t i = 0; i < 19; ++i) {
    peer.Advance(Timer(15) - Milliseconds(1));
    peer.Deliver(peer.Ack(kPsn + i));
    peer.Out();
  }
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  peer.Advance(Timer(15));
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
}

TEST(RequesterTimer, ReadDataCountsAsProgress) {
  ScriptedPeer::Options options;
  options.limits.timeout = 15;
  options.limits.retry_count = 0;
  ScriptedPeer peer(options);
  peer.PostRead(0x8000, 256 * 3);
  peer.Out();
  peer.Advance(Timer(15) - Milliseconds(1));
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseFirst, kPsn), ScriptedPeer::Bytes(256));
  peer.Advance(Timer(15) - Milliseconds(1));
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
}

TEST(RequesterTimer, IdleTimeDoesNotCount) {
  ScriptedPeer::Options options;
  options.limits.timeout = 15;
  options.limits.retry_count = 0;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn));
  peer.Advance(Seconds(10));
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Advance(Timer(15) - Nanoseconds(1));
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
}

TEST(RequesterTimer, PortDryTheWholeTime_NotThePeersFault) {
  ScriptedPeer::Options options;
  options.limits.timeout = 15;
  options.limits.retry_count = 2;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.host().port_budget = 0;
  peer.Advance(Seconds(5));
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  peer.host().port_budget = 100;
  EXPECT_EQ(peer.Out().size(), 1u);
}

TEST(RequesterTimer, LimitsChangedWhileDrained_HoldForWhatRuns) {
  ScriptedPeer::Options options;
  options.limits.timeout = 20;  // 4.3 s
  options.limits.retry_count = 7;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 4);
  peer.Out();
  ASSERT_EQ(peer.host().ToState(QpState::kSqd), 0);
  verbs::QpAttributes limits = peer.attributes();
  limits.timeout = 12;  // 16.8 ms
  limits.retry_count = 1;
  limits.rnr_retry = 0;
  ASSERT_EQ(
      peer.host().Modify(verbs::kAttrTimeout | verbs::kAttrRetryCnt | verbs::kAttrRnrRetry, limits),
      0);
  peer.Advance(Timer(12) * 2);
  EXPECT_EQ(peer.host().context().state(), QpState::kError);

  ScriptedPeer other(options);
  other.PostSend(kSource, 4);
  other.Out();
  ASSERT_EQ(other.host().ToState(QpState::kSqd), 0);
  ASSERT_EQ(other.host().Modify(verbs::kAttrRnrRetry, limits), 0);
  other.Deliver(other.Ack(kPsn, 0x21));
  EXPECT_EQ(other.PollOne().status, 13);
}

}  // namespace
}  // namespace rocegw::testing::requester_timer
