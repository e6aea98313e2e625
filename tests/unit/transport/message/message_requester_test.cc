// SPDX-License-Identifier: Apache-2.0
// Sending half of a queue pair on a channel: the frames that it sends for requests, and the effect
// of replies, including invalid ones.
#include <gtest/gtest.h>

#include "gateway/transport/native/rnr_delay.h"
#include "tests/support/qp/frame_peer.h"

namespace rocegw::testing::message_requester {
namespace {

using metrics::DropReason;
using verbs::QpState;
using wire::FrameKind;

constexpr uint64_t kSource = 0x1000;
constexpr uint64_t kInto = 0x8000;
constexpr uint8_t kAck = wire::kSyndromeAck;

enum Status : uint8_t {
  kSuccess = 0,
  kLocalProtection = 4,
  kFlush = 5,
  kBadResponse = 7,
  kRetryExceeded = 12,
  kRnrRetryExceeded = 13,
};

using Numbers = std::vector<uint32_t>;
Numbers MessagesOf(const std::vector<SentFrame>& out) {
  Numbers numbers;
  for (const SentFrame& sent : out) numbers.push_back(sent.frame.message);
  return numbers;
}
using Statuses = std::vector<uint8_t>;
Statuses StatusesOf(const std::vector<rocegw_cqe>& cqes) {
  Statuses out;
  for (const rocegw_cqe& cqe : cqes) out.push_back(cqe.status);
  return out;
}

TEST(MessageRequesterSend, Request_FramesNameMessageOffsetAndReceive) {
  FramePeer peer;
  const auto data = ScriptedPeer::Bytes(600, 5);
  std::copy(data.begin(), data.end(), &peer.host().memory()[kSource]);
  peer.base().PostSend(kSource, 600);
  peer.base().PostWrite(kSource, 4, 0x7000);
  peer.base().PostSend(kSource, 4);
  const auto out = peer.Out();
  ASSERT_EQ(MessagesOf(out), (Numbers{0, 0, 0, 1, 2}));
  std::vector<uint8_t> whole;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(out[i].frame.offset, 256 * i);
    EXPECT_EQ(out[i].frame.length, 600u);
    EXPECT_EQ(out[i].frame.has(wire::kFrameLast), i == 2);
    EXPECT_EQ(out[i].frame.receive, 0u);
    whole.insert(whole.end(), out[i].payload.begin(), out[i].payload.end());
  }
  EXPECT_EQ(whole, data);
  EXPECT_EQ(out[3].frame.kind, FrameKind::kWrite);
  EXPECT_EQ(out[3].frame.address, 0x7000u);
  EXPECT_EQ(out[4].frame.receive, 1u) << "a WRITE takes none";
  EXPECT_EQ(out[4].frame.epoch, FramePeer::kEpoch);
  EXPECT_EQ(out[4].frame.source, peer.host().context().config.qpn);
}

TEST(MessageRequesterSend, CarrierWithoutRoom_StopsInTheMiddleAndGoesOn) {
  FramePeer peer;
  peer.base().PostSend(kSource, 300);
  peer.carrier.open = false;
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_TRUE(peer.host().context().wait_entry.waiting);
  peer.carrier.open = true;
  EXPECT_EQ(peer.Out().size(), 2u);
}

// The channel has window for all of it, but the rest of that is for other pools.
TEST(MessageRequesterSend, PoolsWindow_BoundsWhatIsUnderWayOnAChannel) {
  FramePeer::Options options;
  options.host.window_bytes = 512;
  FramePeer peer(options);
  peer.base().PostWrite(kSource, 2048, 0x7000);
  const auto first = peer.Out();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_TRUE(first[1].frame.has(wire::kFrameAckNow)) << "what comes next waits for it";
  EXPECT_TRUE(peer.carrier.tells);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_TRUE(peer.host().qp().OnArrived(peer.carrier, peer.carrier.refs[1]))
      << "in whichever order they arrive";
  const auto next = peer.Out();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].frame.offset, 512u);
  flow::FrameRef old = peer.carrier.refs[0];
  old.kind = static_cast<uint8_t>(old.kind ^ 0x10);
  EXPECT_FALSE(peer.host().qp().OnArrived(peer.carrier, old)) << "of an earlier connection";
  EXPECT_TRUE(peer.Out().empty());
  while (peer.carrier.refs.size() < 8) {
    const size_t sent = peer.carrier.refs.size();
    EXPECT_TRUE(peer.host().qp().OnArrived(peer.carrier, peer.carrier.refs[sent - 1]));
    EXPECT_EQ(peer.Out().size(), 1u);
  }
  EXPECT_EQ(peer.Reply(0, kAck), DropReason::kNone);
  peer.Out();
  EXPECT_EQ(StatusesOf(peer.base().Poll()), Statuses{kSuccess});
  EXPECT_FALSE(peer.host().qp().OnArrived(peer.carrier, peer.carrier.refs[0])) << "nothing waits";
}

TEST(MessageRequesterSend, PoolsWindowBelowAFrame_LetsOneGoAtATime) {
  FramePeer::Options options;
  options.host.window_bytes = 100;
  FramePeer peer(options);
  peer.base().PostSend(kSource, 600);
  for (size_t sent = 1; sent <= 3; ++sent) {
    EXPECT_EQ(peer.Out().size(), 1u);
    EXPECT_EQ(peer.host().qp().OnArrived(peer.carrier, peer.carrier.refs.back()), sent != 3);
  }
}

TEST(MessageRequesterSend, WithoutAPoolsWindow_TheChannelAloneDecides) {
  FramePeer peer;
  peer.base().PostWrite(kSource, 2048, 0x7000);
  const auto out = peer.Out();
  EXPECT_EQ(out.size(), 8u);
  for (const SentFrame& sent : out) EXPECT_FALSE(sent.frame.has(wire::kFrameAckNow));
  EXPECT_FALSE(peer.carrier.tells);
}

TEST(MessageRequesterSend, PortWithoutPackets_TakesNoPsn) {
  FramePeer peer;
  peer.base().PostSend(kSource, 300);
  peer.host().port_budget = 0;
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_TRUE(peer.carrier.refs.empty());
  peer.host().port_budget = 100;
  EXPECT_EQ(peer.Out().size(), 2u);
  EXPECT_EQ(peer.carrier.refs.size(), 2u);
}

TEST(MessageRequesterSend, ReadsBeyondTheLimit_Wait) {
  FramePeer::Options options;
  options.limits.max_rd_atomic = 2;
  FramePeer peer(options);
  for (int i = 0; i < 3; ++i) peer.base().PostRead(kInto, 8);
  EXPECT_EQ(MessagesOf(peer.Out()), (Numbers{0, 1}));
  wire::ChannelFrame data = peer.Frame(FrameKind::kReadResponse, 0, 8);
  EXPECT_EQ(peer.Deliver(data, ScriptedPeer::Bytes(8)), DropReason::kNone);
  EXPECT_EQ(MessagesOf(peer.Out()), (Numbers{2}));
}

TEST(MessageRequesterSend, Fence_WaitsForTheReadBeforeIt) {
  FramePeer peer;
  peer.base().PostRead(kInto, 8);
  peer.base().PostWrite(kSource, 8, 0x7000, ROCEGW_WQE_SIGNALED | ROCEGW_WQE_FENCE);
  EXPECT_EQ(MessagesOf(peer.Out()), (Numbers{0}));
  peer.Deliver(peer.Frame(FrameKind::kReadResponse, 0, 8), ScriptedPeer::Bytes(8));
  EXPECT_EQ(MessagesOf(peer.Out()), (Numbers{1}));
}

TEST(MessageRequesterSend, Deregistered_FailsItAlone) {
  FramePeer peer;
  peer.base().PostSend(kSource, 8);
  peer.Out();
  peer.base().PostSend(kSource, 8);
  EXPECT_TRUE(peer.host().regions().Unlink(MemoryKey{peer.host().key()}));
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.state(), QpState::kRts) << "the first is still under way";
  peer.Reply(0, kAck);
  peer.Out();
  EXPECT_EQ(StatusesOf(peer.base().Poll()), (Statuses{kSuccess, kLocalProtection}));
  EXPECT_EQ(peer.state(), QpState::kError);
}

TEST(MessageRequesterReply, Ack_CoversAllBefore) {
  FramePeer peer;
  for (int i = 0; i < 3; ++i) peer.base().PostSend(kSource, 4);
  peer.Out();
  EXPECT_EQ(peer.Reply(1, kAck), DropReason::kNone);
  const auto cqes = peer.base().Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].wr_id, 100u);
  EXPECT_EQ(cqes[1].wr_id, 101u);
  EXPECT_EQ(peer.host().qp().outstanding(), 1u);
}

TEST(MessageRequesterReply, AckBehindARead_DoesNotAnswerIt) {
  FramePeer peer;
  peer.base().PostRead(kInto, 8);
  peer.base().PostSend(kSource, 4);
  peer.Out();
  EXPECT_EQ(peer.Reply(1, kAck), DropReason::kNone);
  EXPECT_TRUE(peer.base().Poll().empty());
  peer.Deliver(peer.Frame(FrameKind::kReadResponse, 0, 8), ScriptedPeer::Bytes(8));
  peer.Out();
  EXPECT_EQ(StatusesOf(peer.base().Poll()), (Statuses{kSuccess, kSuccess}));
}

TEST(MessageRequesterReply, OfWhatWasNotAsked_Stale) {
  FramePeer peer;
  peer.base().PostSend(kSource, 300);
  peer.base().PostSend(kSource, 4);
  EXPECT_EQ(peer.Reply(0, kAck), DropReason::k_stale_response) << "not sent yet";
  peer.Out();
  for (uint32_t message : {2u, 500u, 0xFFFFFFFFu})
    EXPECT_EQ(peer.Reply(message, kAck), DropReason::k_stale_response) << message;
  EXPECT_EQ(peer.Reply(1, kAck), DropReason::kNone);
  EXPECT_EQ(peer.Reply(1, kAck), DropReason::k_stale_response) << "again";
  EXPECT_EQ(peer.base().Poll().size(), 2u);
}

struct Refusal {
  uint8_t syndrome;
  uint8_t status;
};
class MessageRequesterNak : public ::testing::TestWithParam<Refusal> {};

TEST_P(MessageRequesterNak, EndsItsRequest_AnswersThoseBefore) {
  FramePeer peer;
  for (int i = 0; i < 3; ++i) peer.base().PostSend(kSource, 4);
  peer.Out();
  EXPECT_EQ(peer.Reply(1, GetParam().syndrome), DropReason::kNone);
  peer.Out();
  EXPECT_EQ(StatusesOf(peer.base().Poll()), (Statuses{kSuccess, GetParam().status, kFlush}));
  EXPECT_EQ(peer.state(), QpState::kError);
  EXPECT_EQ(peer.host().counters().nak_error_rx_packets.Read(), 1u);
  EXPECT_EQ(peer.host().counters().cqe_error_entries.Read(), 2u);
  EXPECT_EQ(peer.host().counters().cqe_flushed_entries.Read(), 1u);
}
INSTANTIATE_TEST_SUITE_P(All, MessageRequesterNak,
                         ::testing::Values(Refusal{0x61, 9}, Refusal{0x62, 10}, Refusal{0x63, 11},
                                           Refusal{0x64, 15}),
                         [](const auto& parameter) {
                           return "syndrome" + std::to_string(parameter.param.syndrome);
                         });

TEST(MessageRequesterReply, NakOfSequence_MeansNothingHereAndAnswersNothing) {
  FramePeer peer;
  for (int i = 0; i < 2; ++i) peer.base().PostSend(kSource, 4);
  peer.Out();
  EXPECT_EQ(peer.Reply(1, 0x60), DropReason::k_malformed_response);
  EXPECT_TRUE(peer.base().Poll().empty()) << "the first is not answered by it";
  EXPECT_EQ(peer.state(), QpState::kRts);
  EXPECT_EQ(peer.host().qp().outstanding(), 2u);
}

TEST(MessageRequesterReply, NakOfWhatWasNotSent_Malformed) {
  FramePeer peer;
  peer.base().PostSend(kSource, 4);
  peer.Out();
  EXPECT_EQ(peer.Reply(1, 0x62), DropReason::k_malformed_response);
  EXPECT_EQ(peer.Reply(0xFFFFFFFF, 0x62), DropReason::k_malformed_response);
  EXPECT_EQ(peer.state(), QpState::kRts);
}

TEST(MessageRequesterNotReady, Rnr_OffersFromThereAgainAsTheNextAttempt) {
  FramePeer peer;
  for (int i = 0; i < 3; ++i) peer.base().PostSend(kSource, 4);
  for (const SentFrame& sent : peer.Out()) EXPECT_EQ(sent.frame.attempt, 0);
  EXPECT_EQ(peer.Reply(1, 0x20 | 14, 1), DropReason::kNone);
  EXPECT_EQ(peer.base().PollOne().wr_id, 100u);
  EXPECT_TRUE(peer.Advance(Microseconds(1279)).empty());
  // Messages are offered singly, because refused frames waste window that others could use.
  for (const uint32_t message : {1, 2}) {
    const auto again = message == 1 ? peer.Advance(Microseconds(1)) : peer.Out();
    ASSERT_EQ(MessagesOf(again), (Numbers{message}));
    EXPECT_EQ(again[0].frame.attempt, 1);
    EXPECT_EQ(again[0].frame.receive, message) << "the same receive";
    EXPECT_TRUE(peer.Advance(Milliseconds(1)).empty());
    peer.Reply(message, kAck);
  }
}

TEST(MessageRequesterNotReady, LongMessage_IsOfferedByItsFirstFrame) {
  FramePeer peer;
  peer.base().PostSend(kSource, 600);
  const size_t whole = peer.Out().size();
  ASSERT_GT(whole, 1u);
  peer.Reply(0, 0x21, 1);
  // First the receiver's timer, then the first frame, then the rest if no refusal has arrived.
  EXPECT_EQ(peer.Advance(Microseconds(10)).size(), 1u);
  EXPECT_TRUE(peer.Advance(Microseconds(15)).empty());
  EXPECT_EQ(peer.Advance(Microseconds(1)).size(), whole - 1);
}

TEST(MessageRequesterNotReady, Offers_GetRarerWhileTheSameMessageIsRefused) {
  FramePeer peer;
  peer.base().PostSend(kSource, 4);
  peer.Out();
  uint8_t attempt = 0;
  int offers = 0;
  for (int i = 0; i < 10000; ++i) {
    if (!peer.Advance(Microseconds(10)).empty() || i == 0) {
      ++offers;
      peer.Reply(0, 0x21, ++attempt);
    }
  }
  // In 100 ms: intervals grow by an eighth from 80 us on, up to 10 ms.
  EXPECT_GT(offers, 40);
  EXPECT_LT(offers, 90);
}

TEST(MessageRequesterNotReady, CopyOrLeftover_CostsNothing) {
  FramePeer::Options options;
  options.limits.rnr_retry = 1;
  FramePeer peer(options);
  peer.base().PostSend(kSource, 4);
  peer.Out();
  EXPECT_EQ(peer.Reply(0, 0x21, 1), DropReason::kNone);
  for (uint8_t attempt : {0, 1, 3, 255})
    EXPECT_EQ(peer.Reply(0, 0x21, attempt), DropReason::k_stale_response) << int{attempt};
  EXPECT_EQ(peer.state(), QpState::kRts);
  EXPECT_EQ(peer.Advance(Milliseconds(1)).size(), 1u);
}

TEST(MessageRequesterNotReady, Retries_CountedThenExceeded) {
  for (uint8_t retries : {0, 1, 6}) {
    FramePeer::Options options;
    options.limits.rnr_retry = retries;
    FramePeer peer(options);
    peer.base().PostSend(kSource, 4);
    peer.base().PostSend(kSource, 4);
    peer.Out();
    for (uint8_t i = 0; i < retries; ++i) {
      peer.Reply(0, 0x21, static_cast<uint8_t>(i + 1));
      EXPECT_EQ(peer.Advance(Milliseconds(1)).size(), 1u);
    }
    peer.Reply(0, 0x21, static_cast<uint8_t>(retries + 1));
    peer.Out();
    EXPECT_EQ(StatusesOf(peer.base().Poll()), (Statuses{kRnrRetryExceeded, kFlush}));
  }
}

TEST(MessageRequesterNotReady, Attempts_GoAroundTheirByte) {
  FramePeer peer;
  peer.base().PostSend(kSource, 4);
  peer.Out();
  for (int i = 1; i <= 600; ++i) {
    ASSERT_EQ(peer.Reply(0, 0x21, static_cast<uint8_t>(i)), DropReason::kNone) << i;
    ASSERT_EQ(peer.Advance(Milliseconds(10)).size(), 1u);
  }
  EXPECT_EQ(peer.state(), QpState::kRts);
}

TEST(MessageRequesterNotReady, NoEndpoint_IsNoSignOfLife) {
  FramePeer::Options options;
  options.limits.timeout = 8;  // 1.05 ms
  options.limits.retry_count = 3;
  FramePeer peer(options);
  peer.base().PostSend(kSource, 4);
  peer.Out();
  uint8_t attempt = 0;
  const TimePoint begin = peer.base().now();
  while (peer.state() == QpState::kRts && peer.base().now() - begin < Milliseconds(50)) {
    peer.Reply(0, wire::kSyndromeNotReady | 1, ++attempt);
    peer.Advance(Microseconds(100));
  }
  EXPECT_EQ(peer.base().PollOne().status, kRetryExceeded);
  EXPECT_GE(peer.base().now() - begin, Microseconds(4 * 1048));
  EXPECT_LE(peer.base().now() - begin, Microseconds(4 * 1048 + 300));
}

TEST(MessageRequesterNotReady, NoEndpoint_GoesOnAtWhatIsNotAnswered) {
  FramePeer peer;
  for (int i = 0; i < 3; ++i) peer.base().PostSend(kSource, 4);
  peer.Out();
  peer.Reply(0, kAck);
  // A peer without the queue pair names a later message: all open messages are offered again, the
  // oldest first.
  EXPECT_EQ(peer.Reply(2, wire::kSyndromeNotReady | 1, 1), DropReason::kNone);
  EXPECT_EQ(MessagesOf(peer.Advance(Milliseconds(1))), (Numbers{1}));
}

TEST(MessageRequesterTimer, Silence_EndsItAfterAllRetries) {
  FramePeer::Options options;
  options.limits.timeout = 8;
  options.limits.retry_count = 2;
  FramePeer peer(options);
  peer.base().PostSend(kSource, 4);
  peer.Out();
  peer.Advance(Nanoseconds(3 * (4096 << 8) - 1));
  EXPECT_EQ(peer.state(), QpState::kRts);
  peer.Advance(Nanoseconds(1));
  EXPECT_EQ(peer.base().PollOne().status, kRetryExceeded);
  EXPECT_EQ(peer.host().counters().timeout_events.Read(), 1u);
}

TEST(MessageRequesterTimer, Answer_BeginsItAnew) {
  FramePeer::Options options;
  options.limits.timeout = 8;
  options.limits.retry_count = 0;
  FramePeer peer(options);
  for (int i = 0; i < 4; ++i) peer.base().PostSend(kSource, 4);
  peer.Out();
  for (uint32_t i = 0; i < 4; ++i) {
    peer.Advance(Microseconds(1000));
    EXPECT_EQ(peer.Reply(i, kAck), DropReason::kNone);
  }
  EXPECT_EQ(peer.state(), QpState::kRts);
  EXPECT_EQ(peer.host().qp().deadline(), kNever) << "nothing is open";
}

TEST(MessageRequesterRead, DataInAnyOrder_CompletesWhenItIsThere) {
  FramePeer peer;
  peer.base().PostRead(kInto, 600);
  peer.Out();
  const auto data = ScriptedPeer::Bytes(600);
  const wire::ChannelFrame answer = peer.Frame(FrameKind::kReadResponse, 0, 600);
  EXPECT_EQ(peer.DeliverPart(answer, data, 512, 88), DropReason::kNone);
  EXPECT_EQ(peer.DeliverPart(answer, data, 0, 256), DropReason::kNone);
  peer.Out();
  EXPECT_TRUE(peer.base().Poll().empty());
  EXPECT_EQ(peer.DeliverPart(answer, data, 256, 256), DropReason::kNone);
  EXPECT_TRUE(peer.base().Poll().empty()) << "not placed yet";
  peer.Out();
  EXPECT_EQ(peer.base().PollOne().byte_length, 600u);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), &peer.host().memory()[kInto]));
}

TEST(MessageRequesterRead, MoreThanAsked_BadResponse) {
  FramePeer peer;
  peer.base().PostRead(kInto, 300);
  peer.Out();
  const auto data = ScriptedPeer::Bytes(300);
  const wire::ChannelFrame answer = peer.Frame(FrameKind::kReadResponse, 0, 300);
  peer.DeliverPart(answer, data, 0, 256);
  EXPECT_EQ(peer.DeliverPart(answer, data, 0, 256), DropReason::k_malformed_response);
  peer.Out();
  EXPECT_EQ(peer.base().PollOne().status, kBadResponse);
}

TEST(MessageRequesterRead, AnswersOfAnotherShape_BadResponse) {
  const auto status_after = [](FramePeer& peer, const wire::ChannelFrame& answer,
                               const std::vector<uint8_t>& payload) {
    EXPECT_EQ(peer.Deliver(answer, payload), DropReason::k_malformed_response);
    peer.Out();
    return peer.base().PollOne().status;
  };
  {
    FramePeer peer;
    peer.base().PostRead(kInto, 8);
    peer.Out();
    EXPECT_EQ(
        status_after(peer, peer.Frame(FrameKind::kReadResponse, 0, 4), ScriptedPeer::Bytes(4)),
        kBadResponse);
  }
  {
    FramePeer peer;
    peer.base().PostRead(kInto, 8);
    peer.Out();
    EXPECT_EQ(status_after(peer, peer.Frame(FrameKind::kAtomicResult, 0), {}), kBadResponse);
  }
  {
    FramePeer peer;
    peer.base().PostSend(kSource, 8);
    peer.Out();
    EXPECT_EQ(
        status_after(peer, peer.Frame(FrameKind::kReadResponse, 0, 8), ScriptedPeer::Bytes(8)),
        kBadResponse);
  }
}

TEST(MessageRequesterRead, AnswerOfWhatIsDone_Stale) {
  FramePeer peer;
  peer.base().PostRead(kInto, 8);
  peer.Out();
  const wire::ChannelFrame answer = peer.Frame(FrameKind::kReadResponse, 0, 8);
  peer.Deliver(answer, ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.Deliver(answer, ScriptedPeer::Bytes(8, 9)), DropReason::k_stale_response)
      << "its placement is under way";
  peer.Out();
  EXPECT_EQ(peer.Deliver(answer, ScriptedPeer::Bytes(8, 9)), DropReason::k_stale_response);
  EXPECT_EQ(peer.host().memory()[kInto], ScriptedPeer::Bytes(8)[0]);
}

TEST(MessageRequesterAtomic, Result_IsPlacedAndCompletes) {
  FramePeer peer;
  peer.base().PostFetchAdd(kInto, 5, 0x7000);
  const SentFrame out = peer.OutOne();
  EXPECT_EQ(out.frame.kind, FrameKind::kFetchAdd);
  EXPECT_EQ(out.frame.swap_or_add, 5u);
  EXPECT_EQ(out.frame.length, 0u);
  wire::ChannelFrame result = peer.Frame(FrameKind::kAtomicResult, 0);
  result.original = 0x1122334455667788;
  EXPECT_EQ(peer.Deliver(result), DropReason::kNone);
  EXPECT_TRUE(peer.base().Poll().empty());
  peer.Out();
  EXPECT_EQ(peer.base().PollOne().status, kSuccess);
  uint64_t placed;
  std::memcpy(&placed, &peer.host().memory()[kInto], 8);
  EXPECT_EQ(placed, 0x1122334455667788u);
}

TEST(MessageRequesterLoss, FrameOfAnOpenRequest_BuiltAgainTheSame) {
  FramePeer peer;
  const auto data = ScriptedPeer::Bytes(600, 5);
  std::copy(data.begin(), data.end(), &peer.host().memory()[kSource]);
  peer.base().PostWrite(kSource, 600, 0x7000);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(peer.Lose(1), flow::Resend::kDone);
  const SentFrame again = peer.OutOne();
  EXPECT_EQ(again.psn, Psn(1));
  EXPECT_EQ(again.frame.offset, 256u);
  EXPECT_EQ(again.frame.address, out[1].frame.address);
  EXPECT_EQ(again.payload, out[1].payload);
  EXPECT_EQ(peer.host().counters().retransmit_packets.Read(), 1u);
}

TEST(MessageRequesterLoss, NobodyWaits_Void) {
  FramePeer peer;
  peer.base().PostSend(kSource, 4);
  peer.base().PostSend(kSource, 4);
  peer.Out();
  peer.Reply(0, kAck);
  EXPECT_EQ(peer.Lose(0), flow::Resend::kVoid) << "it is answered";
  peer.Reply(1, 0x21, 1);
  peer.Advance(Milliseconds(1));
  EXPECT_EQ(peer.Lose(1), flow::Resend::kVoid) << "of an earlier attempt";
  EXPECT_EQ(peer.Lose(2), flow::Resend::kDone);
  peer.Out();
  ScriptedCarrier other;
  EXPECT_EQ(peer.host().qp().Again(peer.host(), other, peer.carrier.refs[2], Psn(2)),
            flow::Resend::kVoid);
  EXPECT_EQ(peer.host().ToState(QpState::kReset), 0);
  EXPECT_EQ(peer.Lose(2), flow::Resend::kVoid) << "the connection is another one";
}

TEST(MessageRequesterLoss, PortWithoutPackets_AsksAgain) {
  FramePeer peer;
  peer.base().PostSend(kSource, 4);
  peer.Out();
  peer.host().port_budget = 0;
  EXPECT_EQ(peer.Lose(0), flow::Resend::kPortFull);
  peer.host().port_budget = 10;
  EXPECT_EQ(peer.Lose(0), flow::Resend::kDone);
}

TEST(MessageRequesterCarrier, Gone_EndsWithRetriesExceeded) {
  FramePeer peer;
  peer.base().PostSend(kSource, 4);
  peer.base().PostSend(kSource, 4);
  peer.Out();
  EXPECT_EQ(peer.carrier.users, 1);
  peer.host().qp().OnCarrierLost(peer.host(), peer.carrier, true, wire::ChannelReason::kPathFailed,
                                 peer.base().now());
  EXPECT_EQ(peer.carrier.users, 0);
  EXPECT_EQ(StatusesOf(peer.base().Poll()), (Statuses{kRetryExceeded, kFlush}));
}

// An entry in the wait queue of a closed channel must not keep the queue pair from waiting in
// another.
TEST(MessageRequesterCarrier, GoneWhileItStoodInLine_StandsInNone) {
  FramePeer peer;
  peer.base().PostSend(kSource, 4);
  peer.carrier.open = false;
  peer.Out();
  ASSERT_TRUE(peer.host().context().wait_entry.waiting);
  peer.host().qp().OnCarrierLost(peer.host(), peer.carrier, true, wire::ChannelReason::kPathFailed,
                                 peer.base().now());
  EXPECT_FALSE(peer.host().context().wait_entry.waiting);
}

TEST(MessageRequesterCarrier, ResetWhileItStoodInLine_StandsInNoneAndHoldsNothing) {
  FramePeer peer;
  peer.base().PostSend(kSource, 4);
  peer.carrier.open = false;
  peer.Out();
  EXPECT_EQ(peer.host().ToState(QpState::kReset), 0);
  EXPECT_FALSE(peer.host().context().wait_entry.waiting);
  EXPECT_EQ(peer.carrier.users, 0);
}

}  // namespace
}  // namespace rocegw::testing::message_requester
