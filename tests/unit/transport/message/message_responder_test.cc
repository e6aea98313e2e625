// SPDX-License-Identifier: Apache-2.0
// Receiving half of a queue pair on a channel: the effect of frames in any order on memory,
// receives and replies, one frame at a time.
#include "gateway/transport/message/message_responder.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/qp/frame_peer.h"

namespace rocegw::testing::message_responder {
namespace {

using metrics::DropReason;
using verbs::QpState;
using wire::FrameKind;

constexpr uint64_t kTarget = 0x4000;
constexpr uint8_t kAck = wire::kSyndromeAck;

class MessageResponderTest : public ::testing::Test {
 protected:
  // Returns the host's memory after all executed operations.
  std::vector<uint8_t> At(uint64_t offset, size_t length) {
    const auto begin = peer.host().memory().begin() + static_cast<ptrdiff_t>(offset);
    return {begin, begin + static_cast<ptrdiff_t>(length)};
  }
  struct Answer {
    uint32_t message;
    uint8_t syndrome;
    uint8_t attempt;
    bool operator==(const Answer&) const = default;
  };
  std::vector<Answer> Replies() {
    std::vector<Answer> out;
    for (const SentFrame& sent : peer.Out()) {
      EXPECT_EQ(sent.frame.kind, FrameKind::kReply);
      out.push_back({sent.frame.message, sent.frame.syndrome, sent.frame.attempt});
    }
    return out;
  }
  using Answers = std::vector<Answer>;

  FramePeer peer;
};

TEST_F(MessageResponderTest, Write_PlacedThenAnswered) {
  const auto data = ScriptedPeer::Bytes(100);
  EXPECT_EQ(peer.Deliver(peer.Write(0, kTarget, 100), data), DropReason::kNone);
  EXPECT_TRUE(peer.OutWithoutMemory().empty()) << "not before it is there";
  EXPECT_EQ(Replies(), (Answers{{0, kAck, 0}}));
  EXPECT_EQ(At(kTarget, 100), data);
}

TEST_F(MessageResponderTest, WriteOutOfOrder_PlacedAtOnceAnsweredWhenWhole) {
  const auto data = ScriptedPeer::Bytes(768);
  const wire::ChannelFrame write = peer.Write(0, kTarget, 768);
  peer.DeliverPart(write, data, 256, 256);
  EXPECT_TRUE(Replies().empty());
  EXPECT_EQ(At(kTarget + 256, 256), std::vector<uint8_t>(data.begin() + 256, data.begin() + 512))
      << "placed before the hole is filled";
  peer.DeliverPart(write, data, 512, 256);
  EXPECT_TRUE(Replies().empty());
  EXPECT_EQ(At(kTarget + 512, 248), std::vector<uint8_t>(data.begin() + 512, data.begin() + 760));
  EXPECT_EQ(At(kTarget + 760, 8), std::vector<uint8_t>(8, 0)) << "the last bytes come last";
  peer.DeliverPart(write, data, 0, 256);
  EXPECT_EQ(Replies(), (Answers{{0, kAck, 0}}));
  EXPECT_EQ(At(kTarget, 768), data);
}

TEST_F(MessageResponderTest, WriteAhead_LastBytesWaitForTheMessagesBefore) {
  const auto first = ScriptedPeer::Bytes(16, 1);
  const auto second = ScriptedPeer::Bytes(16, 100);
  EXPECT_EQ(peer.Deliver(peer.Write(1, kTarget + 64, 16), second), DropReason::kNone);
  EXPECT_TRUE(Replies().empty());
  EXPECT_EQ(At(kTarget + 64, 8), std::vector<uint8_t>(second.begin(), second.begin() + 8));
  EXPECT_EQ(At(kTarget + 72, 8), std::vector<uint8_t>(8, 0));
  EXPECT_EQ(peer.Deliver(peer.Write(0, kTarget, 16), first), DropReason::kNone);
  EXPECT_EQ(Replies(), (Answers{{1, kAck, 0}})) << "one reply for both";
  EXPECT_EQ(At(kTarget, 16), first);
  EXPECT_EQ(At(kTarget + 64, 16), second);
}

// Only the last frame contains the bytes that programs poll on; it may be shorter than those.
TEST_F(MessageResponderTest, WriteWithShortLastFrame_HeldBackAsItIs) {
  const auto data = ScriptedPeer::Bytes(259);
  const wire::ChannelFrame write = peer.Write(0, kTarget, 259);
  peer.DeliverPart(write, data, 256, 3);
  EXPECT_TRUE(Replies().empty());
  EXPECT_EQ(At(kTarget + 256, 3), std::vector<uint8_t>(3, 0));
  peer.DeliverPart(write, data, 0, 256);
  EXPECT_EQ(Replies().size(), 1u);
  EXPECT_EQ(At(kTarget, 259), data);
}

TEST_F(MessageResponderTest, PublishedLast_IsTheOnlyOneSaidSo) {
  const auto data = ScriptedPeer::Bytes(512);
  const wire::ChannelFrame write = peer.Write(0, kTarget, 512);
  peer.DeliverPart(write, data, 0, 256);
  peer.DeliverPart(write, data, 256, 256);
  ASSERT_EQ(peer.host().queued().size(), 2u);
  EXPECT_FALSE(peer.host().queued()[0].op.publish);
  EXPECT_TRUE(peer.host().queued()[1].op.publish);
  peer.Out();
  // The other order: the completing frame is not the one with the last bytes.
  const wire::ChannelFrame next = peer.Write(1, kTarget, 512);
  peer.DeliverPart(next, data, 256, 256);
  peer.DeliverPart(next, data, 0, 256);
  ASSERT_EQ(peer.host().queued().size(), 3u);
  EXPECT_EQ(peer.host().queued()[0].op.length, 248u);
  EXPECT_FALSE(peer.host().queued()[0].op.publish);
  EXPECT_FALSE(peer.host().queued()[1].op.publish);
  EXPECT_TRUE(peer.host().queued()[2].op.publish);
  EXPECT_EQ(peer.host().queued()[2].op.length, 8u);
  EXPECT_EQ(peer.host().queued()[2].op.buffer, nullptr) << "its packet is long gone";
}

// When two WRITEs go to the same memory, the bytes of the later one stay, in whatever order their
// frames arrive.
TEST_F(MessageResponderTest, LateFrameOfAnEarlierWrite_DoesNotOverwriteALaterOne) {
  const auto early = ScriptedPeer::Bytes(512, 1);
  const auto late = ScriptedPeer::Bytes(512, 77);
  const wire::ChannelFrame first = peer.Write(0, kTarget, 512);
  const wire::ChannelFrame second = peer.Write(1, kTarget + 128, 512);
  peer.DeliverPart(second, late, 0, 256);
  peer.DeliverPart(first, early, 256, 256);
  peer.DeliverPart(second, late, 256, 256);
  peer.DeliverPart(first, early, 0, 256);
  EXPECT_EQ(Replies(), (Answers{{1, kAck, 0}}));
  EXPECT_EQ(At(kTarget, 128), std::vector<uint8_t>(early.begin(), early.begin() + 128));
  EXPECT_EQ(At(kTarget + 128, 512), late);
}

TEST_F(MessageResponderTest, HeldBackTailUnderALaterWrite_StaysBelowIt) {
  const auto early = ScriptedPeer::Bytes(64, 1);
  const auto late = ScriptedPeer::Bytes(64, 77);
  // Both end at the same address. The later one is placed except for its own last bytes.
  peer.Deliver(peer.Write(1, kTarget + 32, 64), late);
  peer.Deliver(peer.Write(0, kTarget, 64), early);
  EXPECT_EQ(Replies(), (Answers{{1, kAck, 0}}));
  EXPECT_EQ(At(kTarget, 32), std::vector<uint8_t>(early.begin(), early.begin() + 32));
  EXPECT_EQ(At(kTarget + 32, 64), late);
}

// The record of placed bytes is bounded. A peer that scatters bytes must send them again, in order.
TEST_F(MessageResponderTest, ScatteredBytesAhead_TheMessageIsRefusedInItsTurn) {
  const auto data = ScriptedPeer::Bytes(24'000);
  const wire::ChannelFrame write = peer.Write(1, kTarget, 24'000);
  size_t refused = 0;
  for (uint32_t at = 23'998; at != 0; at -= 2) {
    if (peer.DeliverPart(write, data, at, 1) == DropReason::k_rnr_wait) ++refused;
    if (at % 512 == 0) peer.Out();
  }
  EXPECT_GT(refused, 2000u);
  EXPECT_LT(refused, 4000u) << "many fit";
  peer.Out();
  peer.host().HandOver();
  EXPECT_EQ(peer.Deliver(peer.Write(0, 0x3000, 16), ScriptedPeer::Bytes(16)), DropReason::kNone);
  const Answers answers = Replies();
  ASSERT_FALSE(answers.empty());
  EXPECT_EQ(answers.back().message, 1u);
  EXPECT_TRUE((wire::Aeth{answers.back().syndrome, 0}.is_rnr()));
  EXPECT_EQ(answers.back().attempt, 1);
  wire::ChannelFrame again = peer.Write(1, kTarget, 4096);
  again.attempt = 1;
  const auto whole = ScriptedPeer::Bytes(4096, 9);
  EXPECT_EQ(peer.Deliver(again, whole), DropReason::kNone);
  EXPECT_EQ(Replies(), (Answers{{1, kAck, 1}}));
  EXPECT_EQ(At(kTarget, 4096), whole);
}

// A message with more bytes than its length could never be handed over.
TEST_F(MessageResponderTest, FramesThatOverlap_InvalidRequest) {
  const auto data = ScriptedPeer::Bytes(768);
  const wire::ChannelFrame write = peer.Write(0, kTarget, 768);
  peer.DeliverPart(write, data, 0, 512);
  peer.DeliverPart(write, data, 0, 512);
  EXPECT_EQ(Replies(), (Answers{{0, wire::SyndromeOf(wire::NakCode::kInvalidRequest), 0}}));
  EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_F(MessageResponderTest, SendsOutOfOrder_CompleteInTheOrderOfReceives) {
  for (uint64_t i = 0; i < 3; ++i) peer.base().PostReceive(kTarget + i * 0x100, 64);
  const auto data = ScriptedPeer::Bytes(64, 9);
  EXPECT_EQ(peer.Deliver(peer.Send(2, 2, 64), data), DropReason::kNone);
  EXPECT_EQ(peer.Deliver(peer.Send(1, 1, 32), ScriptedPeer::Bytes(32, 50)), DropReason::kNone);
  EXPECT_TRUE(Replies().empty());
  EXPECT_TRUE(peer.base().Poll().empty());
  EXPECT_EQ(At(kTarget + 0x200, 64), data) << "placed before its turn";
  EXPECT_EQ(peer.Deliver(peer.Send(0, 0, 16), ScriptedPeer::Bytes(16, 70)), DropReason::kNone);
  EXPECT_EQ(Replies(), (Answers{{2, kAck, 0}}));
  const auto cqes = peer.base().Poll();
  ASSERT_EQ(cqes.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(cqes[i].wr_id, 100 + i);
  EXPECT_EQ(cqes[0].byte_length, 16u);
  EXPECT_EQ(cqes[1].byte_length, 32u);
}

TEST_F(MessageResponderTest, SendWithoutReceive_RefusedInItsTurnAndTakenAsTheNextAttempt) {
  const auto data = ScriptedPeer::Bytes(8);
  EXPECT_EQ(peer.Deliver(peer.Send(1, 1, 8), data), DropReason::k_rnr_wait);
  EXPECT_TRUE(Replies().empty()) << "it is not its turn";
  EXPECT_EQ(peer.Deliver(peer.Send(0, 0, 8), data), DropReason::k_rnr_wait);
  EXPECT_EQ(Replies(), (Answers{{0, 0x21, 1}}));
  EXPECT_EQ(peer.host().counters().rnr_tx_packets.Read(), 1u);
  // A late frame of the first attempt.
  EXPECT_EQ(peer.Deliver(peer.Send(2, 2, 8), data), DropReason::k_rnr_wait);
  EXPECT_TRUE(Replies().empty());
  peer.base().PostReceive(kTarget, 64);
  wire::ChannelFrame again = peer.Send(0, 0, 8);
  again.attempt = 1;
  EXPECT_EQ(peer.Deliver(again, data), DropReason::kNone);
  EXPECT_EQ(Replies(), (Answers{{0, kAck, 1}}));
  EXPECT_EQ(peer.base().PollOne().byte_length, 8u);
}

TEST_F(MessageResponderTest, ReceivePostedBetweenTheFrames_TheMessageIsRefusedAllTheSame) {
  const auto data = ScriptedPeer::Bytes(512);
  const wire::ChannelFrame send = peer.Send(0, 0, 512);
  EXPECT_EQ(peer.DeliverPart(send, data, 0, 256), DropReason::k_rnr_wait);
  EXPECT_EQ(Replies(), (Answers{{0, 0x21, 1}}));
  peer.base().PostReceive(kTarget, 512);
  EXPECT_EQ(peer.DeliverPart(send, data, 256, 256), DropReason::k_rnr_wait) << "a leftover";
  EXPECT_TRUE(Replies().empty());
  wire::ChannelFrame again = send;
  again.attempt = 1;
  peer.DeliverPart(again, data, 256, 256);
  peer.DeliverPart(again, data, 0, 256);
  EXPECT_EQ(Replies(), (Answers{{0, kAck, 1}}));
  EXPECT_EQ(At(kTarget, 512), data);
  EXPECT_EQ(peer.base().PollOne().byte_length, 512u);
}

TEST_F(MessageResponderTest, AttemptThatIsNewerThanKnown_ForgetsTheOlder) {
  const auto data = ScriptedPeer::Bytes(512);
  const wire::ChannelFrame write = peer.Write(0, kTarget, 512);
  peer.DeliverPart(write, data, 0, 256);
  wire::ChannelFrame again = write;
  again.attempt = 1;
  peer.DeliverPart(again, data, 256, 256);
  EXPECT_TRUE(Replies().empty()) << "the half of the attempt before does not count";
  EXPECT_EQ(peer.DeliverPart(write, data, 256, 256), DropReason::k_rnr_wait);
  peer.DeliverPart(again, data, 0, 256);
  EXPECT_EQ(Replies(), (Answers{{0, kAck, 1}}));
}

TEST_F(MessageResponderTest, MemoryThatTakesNothing_AsNotReady) {
  const auto data = ScriptedPeer::Bytes(8);
  EXPECT_EQ(peer.Deliver(peer.Write(0, kTarget, 8), data, true), DropReason::k_rnr_wait);
  EXPECT_EQ(Replies(), (Answers{{0, 0x21, 1}}));
  EXPECT_EQ(At(kTarget, 8), std::vector<uint8_t>(8, 0));
}

// A peer that takes no replies and sends the refused message again and again.
// The pool has no heap for more records of messages that are not whole, or come too early.
TEST_F(MessageResponderTest, WithoutHeapForRecords_WhatNeedsOneIsRefused) {
  const auto data = ScriptedPeer::Bytes(16);
  EXPECT_EQ(peer.Deliver(peer.Write(2, kTarget, 16), data), DropReason::kNone);
  EXPECT_GT(peer.host().qp().records_bytes(), 0u);
  peer.host().may_record = false;
  EXPECT_EQ(peer.Deliver(peer.Write(1, kTarget, 16), data), DropReason::k_rnr_wait);
  EXPECT_EQ(peer.host().qp().records_bytes(), 0u) << "what had begun comes again";
  const Answers answers = Replies();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE((wire::Aeth{answers[0].syndrome, 0}.is_rnr()));
  EXPECT_EQ(answers[0].message, 0u);
  EXPECT_EQ(answers[0].attempt, 1);
  // Messages of one frame in their order need none.
  for (uint32_t message = 0; message < 3; ++message) {
    wire::ChannelFrame write = peer.Write(message, kTarget, 16);
    write.attempt = 1;
    EXPECT_EQ(peer.Deliver(write, data), DropReason::kNone);
    EXPECT_EQ(Replies(), (Answers{{message, kAck, 1}}));
  }
  EXPECT_EQ(At(kTarget, 16), data);
}

TEST_F(MessageResponderTest, RefusalsThatCannotLeave_AreBounded) {
  peer.carrier.open = false;
  constexpr uint32_t kFrames = 20'000;
  uint32_t taken = 0;
  for (uint32_t i = 0; i < kFrames; ++i) {
    wire::ChannelFrame send = peer.Send(0, 0, 16);
    send.attempt = static_cast<uint8_t>(taken);
    const DropReason reason = peer.Deliver(send, ScriptedPeer::Bytes(16));
    if (reason == DropReason::k_rnr_wait) {
      ++taken;
    } else {
      ASSERT_EQ(reason, DropReason::k_replies_full);
    }
  }
  EXPECT_EQ(taken, transport::MessageResponder::kMostReplies);
  peer.carrier.open = true;
  EXPECT_EQ(Replies().size(), taken);
  wire::ChannelFrame send = peer.Send(0, 0, 16);
  send.attempt = static_cast<uint8_t>(taken);
  EXPECT_EQ(peer.Deliver(send, ScriptedPeer::Bytes(16)), DropReason::k_rnr_wait) << "taken again";
}

TEST_F(MessageResponderTest, MessageThatIsDone_Dropped) {
  const auto data = ScriptedPeer::Bytes(8);
  peer.Deliver(peer.Write(0, kTarget, 8), data);
  peer.Out();
  EXPECT_EQ(peer.Deliver(peer.Write(0, kTarget, 8), data), DropReason::k_duplicate_request);
  EXPECT_EQ(peer.Deliver(peer.Write(8193, kTarget, 8), data), DropReason::k_invalid_request)
      << "further ahead than anybody sends";
  EXPECT_TRUE(Replies().empty());
}

// The program may act on the received message and destroy the queue pair while the reply waits for
// window.
TEST_F(MessageResponderTest, EndsWhileItsReplyStandsInLine_TheReplyLeaves) {
  peer.carrier.open = false;
  peer.Deliver(peer.Write(0, kTarget, 8), ScriptedPeer::Bytes(8));
  EXPECT_TRUE(Replies().empty());
  EXPECT_EQ(peer.host().ToState(QpState::kError), 0);
  EXPECT_EQ(Replies(), (Answers{{0, kAck, 0}}));
}

TEST_F(MessageResponderTest, EndsWhenTheReceiverTakesNothing_TheReplyStays) {
  peer.carrier.open = peer.carrier.places = false;
  peer.Deliver(peer.Write(0, kTarget, 8), ScriptedPeer::Bytes(8));
  EXPECT_TRUE(Replies().empty());
  EXPECT_EQ(peer.host().ToState(QpState::kError), 0);
  EXPECT_TRUE(Replies().empty());
}

// Each message takes one receive at most: the ninth message cannot take the tenth receive.
TEST_F(MessageResponderTest, ReceiveFurtherAheadThanItsMessage_TakesNone) {
  for (uint32_t i = 0; i < 32; ++i) peer.base().PostReceive(kTarget + i * 64, 64);
  peer.Deliver(peer.Send(8, 9, 8), ScriptedPeer::Bytes(8));
  peer.Deliver(peer.Send(1, 31, 8), ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.host().context().rq().fetched(), 0u);
  peer.Deliver(peer.Send(2, 2, 8), ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.host().context().rq().fetched(), 3u);
  peer.Deliver(peer.Send(0, 0, 8), ScriptedPeer::Bytes(8));
  EXPECT_EQ(Replies(), (Answers{{1, 0x61, 0}})) << "in its turn";
  EXPECT_EQ(peer.state(), QpState::kError);
}

// Receives that many queue pairs share: messages that have not arrived take none.
class SharedMessages : public ::testing::Test {
 protected:
  static constexpr uint32_t kPosted = 64;
  SharedMessages() : end(OfSize(kPosted)), receives(end.Srq()) {
    FramePeer::Options options;
    options.host.shared = &end;
    options.host.srq = &receives;
    peer = std::make_unique<FramePeer>(options);
  }
  static SharedOptions OfSize(uint32_t entries) {
    SharedOptions options;
    options.entries = entries;
    return options;
  }
  void Post(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
      ASSERT_TRUE(
          end.PostReceive(i, {{peer->host().Address(kTarget + i * 512), 512, peer->host().key()}}));
  }
  bool Holds(uint64_t receive, const std::vector<uint8_t>& bytes) {
    return std::memcmp(&peer->host().memory()[kTarget + receive * 512], bytes.data(),
                       bytes.size()) == 0;
  }
  SharedEnd end;
  transport::SharedReceives receives;
  std::unique_ptr<FramePeer> peer;
};

TEST_F(SharedMessages, MessageFarAhead_TakesOneReceive) {
  Post(kPosted);
  const auto data = ScriptedPeer::Bytes(300);
  peer->DeliverPart(peer->Send(50, 50, 300), data, 0, 256);
  EXPECT_EQ(receives.taken(), 1u);
  peer->Deliver(peer->Send(0, 0, 8), ScriptedPeer::Bytes(8));
  EXPECT_EQ(receives.taken(), 2u);
  peer->Out();
  const rocegw_cqe cqe = peer->base().PollOne();
  EXPECT_EQ(cqe.wr_id, 1u) << "the next that there was";
  EXPECT_TRUE(Holds(1, ScriptedPeer::Bytes(8)));
}

TEST_F(SharedMessages, MessageThatMustComeAgain_LeavesItsReceiveToTheNext) {
  Post(1);
  const auto data = ScriptedPeer::Bytes(300, 9);
  peer->DeliverPart(peer->Send(1, 1, 300), data, 0, 256);
  peer->Deliver(peer->Send(0, 0, 8), ScriptedPeer::Bytes(8));
  const SentFrame refused = peer->OutOne();
  EXPECT_EQ(refused.frame.syndrome & 0xE0, wire::kSyndromeRnr);
  wire::ChannelFrame again = peer->Send(0, 0, 8);
  again.attempt = 1;
  peer->Deliver(again, ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer->OutOne().frame.syndrome, kAck);
  EXPECT_EQ(peer->base().PollOne().wr_id, 0u);
  EXPECT_TRUE(Holds(0, ScriptedPeer::Bytes(8)));
  EXPECT_EQ(receives.taken(), 1u);
}

TEST_F(MessageResponderTest, WriteWithoutRight_RefusedInItsTurn) {
  const auto data = ScriptedPeer::Bytes(8);
  wire::ChannelFrame bad = peer.Write(1, kTarget, 8);
  bad.rkey ^= 1;
  peer.Deliver(bad, data);
  EXPECT_EQ(peer.state(), QpState::kRts) << "its turn has not come";
  peer.Deliver(peer.Write(0, kTarget, 8), data);
  EXPECT_EQ(Replies(), (Answers{{1, 0x62, 0}})) << "which says that the one before is done";
  EXPECT_EQ(peer.state(), QpState::kError);
  EXPECT_EQ(peer.host().events,
            (std::vector<verbs::AsyncEvent>{verbs::AsyncEvent::kQpAccessError}));
}

TEST_F(MessageResponderTest, FramesThatContradictEachOther_InvalidRequest) {
  const auto data = ScriptedPeer::Bytes(512);
  peer.DeliverPart(peer.Write(0, kTarget, 512), data, 0, 256);
  wire::ChannelFrame other = peer.Write(0, kTarget + 8, 512);
  peer.DeliverPart(other, data, 256, 256);
  EXPECT_EQ(Replies(), (Answers{{0, 0x61, 0}}));
  EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_F(MessageResponderTest, SendLongerThanItsReceive_EndsBoth) {
  peer.base().PostReceive(kTarget, 4);
  peer.Deliver(peer.Send(0, 0, 8), ScriptedPeer::Bytes(8));
  EXPECT_EQ(Replies(), (Answers{{0, 0x61, 0}}));
  EXPECT_EQ(peer.base().PollOne().status, 1) << "IBV_WC_LOC_LEN_ERR";
}

TEST_F(MessageResponderTest, SendThatNamesAnotherReceive_InvalidRequest) {
  for (int i = 0; i < 2; ++i) peer.base().PostReceive(kTarget, 64);
  peer.Deliver(peer.Send(0, 1, 8), ScriptedPeer::Bytes(8));
  EXPECT_EQ(Replies(), (Answers{{0, 0x61, 0}}));
  EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_F(MessageResponderTest, FaultOfAPlacement_EndsThatMessageAndAnswersThoseBefore) {
  peer.host().Poison(kTarget + 64, 8);
  peer.Deliver(peer.Write(0, kTarget, 8), ScriptedPeer::Bytes(8));
  peer.Deliver(peer.Write(1, kTarget + 64, 8), ScriptedPeer::Bytes(8));
  EXPECT_EQ(Replies(), (Answers{{1, 0x62, 0}})) << "which says that the one before is done";
  EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_F(MessageResponderTest, Read_AnsweredAfterTheWritesBefore) {
  const auto data = ScriptedPeer::Bytes(600);
  wire::ChannelFrame read = peer.Frame(FrameKind::kReadRequest, 1, 600);
  read.address = peer.host().Address(kTarget);
  read.rkey = peer.host().key();
  EXPECT_EQ(peer.Deliver(read), DropReason::kNone);
  EXPECT_TRUE(peer.Out().empty()) << "its turn has not come";
  const wire::ChannelFrame write = peer.Write(0, kTarget, 600);
  peer.DeliverPart(write, data, 0, 512);
  peer.DeliverPart(write, data, 512, 88);
  std::vector<uint8_t> answer(600);
  size_t frames = 0;
  for (const SentFrame& sent : peer.Out()) {
    if (sent.frame.kind != FrameKind::kReadResponse) continue;
    ++frames;
    EXPECT_EQ(sent.frame.message, 1u);
    EXPECT_EQ(sent.frame.length, 600u);
    std::copy(sent.payload.begin(), sent.payload.end(), answer.begin() + sent.frame.offset);
  }
  EXPECT_EQ(frames, 3u);
  EXPECT_EQ(answer, data);
}

TEST(MessageResponderWindow, AnswersOfReads_KeepToThePoolsWindow) {
  FramePeer::Options options;
  options.host.window_bytes = 512;
  FramePeer peer(options);
  wire::ChannelFrame read = peer.Frame(FrameKind::kReadRequest, 0, 1024);
  read.address = peer.host().Address(kTarget);
  read.rkey = peer.host().key();
  EXPECT_EQ(peer.Deliver(read), DropReason::kNone);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_TRUE(out[1].frame.has(wire::kFrameAckNow));
  EXPECT_TRUE(peer.host().qp().OnArrived(peer.carrier, peer.carrier.refs[0]));
  const auto next = peer.Out();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].frame.offset, 512u);
}

TEST(MessageResponderWindow, AnswersAndRequests_TakeTurns) {
  FramePeer::Options options;
  options.host.window_bytes = 512;
  FramePeer peer(options);
  wire::ChannelFrame read = peer.Frame(FrameKind::kReadRequest, 0, 4096);
  read.address = peer.host().Address(kTarget);
  read.rkey = peer.host().key();
  EXPECT_EQ(peer.Deliver(read), DropReason::kNone);
  peer.base().PostWrite(0, 4096, 0x7000);
  EXPECT_EQ(peer.Out().size(), 2u);
  size_t requests = 0;
  for (size_t psn = 0; psn < 8; ++psn) {
    EXPECT_TRUE(peer.host().qp().OnArrived(peer.carrier, peer.carrier.refs[psn]));
    const auto out = peer.Out();
    ASSERT_EQ(out.size(), 1u);
    requests += out[0].frame.kind == FrameKind::kWrite ? 1 : 0;
  }
  EXPECT_EQ(requests, 4u);
}

TEST_F(MessageResponderTest, AnswerOfARead_BuiltAgainWhenLost) {
  wire::ChannelFrame read = peer.Frame(FrameKind::kReadRequest, 0, 300);
  read.address = peer.host().Address(kTarget);
  read.rkey = peer.host().key();
  peer.Deliver(read);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(peer.Lose(1), flow::Resend::kDone);
  const SentFrame again = peer.OutOne();
  EXPECT_EQ(again.frame.offset, 256u);
  EXPECT_EQ(again.payload, out[1].payload);
}

TEST_F(MessageResponderTest, MoreReadsThanAgreed_InvalidRequest) {
  peer.carrier.open = false;
  for (uint32_t i = 0; i < 5; ++i) {
    wire::ChannelFrame read = peer.Frame(FrameKind::kReadRequest, i, 8);
    read.address = peer.host().Address(kTarget);
    read.rkey = peer.host().key();
    peer.Deliver(read);
  }
  EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_F(MessageResponderTest, Atomic_ResultComesFromTheMemoryAndOnce) {
  const uint64_t before = 41;
  std::memcpy(&peer.host().memory()[kTarget], &before, 8);
  wire::ChannelFrame add = peer.Frame(FrameKind::kFetchAdd, 0);
  add.address = peer.host().Address(kTarget);
  add.rkey = peer.host().key();
  add.swap_or_add = 1;
  peer.Deliver(add);
  const SentFrame out = peer.OutOne();
  EXPECT_EQ(out.frame.kind, FrameKind::kAtomicResult);
  EXPECT_EQ(out.frame.original, 41u);
  EXPECT_EQ(peer.Lose(0), flow::Resend::kDone);
  EXPECT_EQ(peer.OutOne().frame.original, 41u) << "executed once";
  uint64_t after;
  std::memcpy(&after, &peer.host().memory()[kTarget], 8);
  EXPECT_EQ(after, 42u);
}

TEST_F(MessageResponderTest, FirstFrame_HoldsTheCarrierAndSaysThatItIsEstablished) {
  FramePeer::Options options;
  options.state = QpState::kRtr;
  FramePeer other(options);
  EXPECT_EQ(other.carrier.users, 0);
  other.Deliver(other.Write(0, kTarget, 8), ScriptedPeer::Bytes(8));
  EXPECT_EQ(other.carrier.users, 1);
  EXPECT_EQ(other.host().events,
            (std::vector<verbs::AsyncEvent>{verbs::AsyncEvent::kCommEstablished}));
  EXPECT_EQ(other.host().ToState(QpState::kReset), 0);
  EXPECT_EQ(other.carrier.users, 0);
}

TEST_F(MessageResponderTest, CarrierGone_ForgetsWhatIsUnderWay) {
  const auto data = ScriptedPeer::Bytes(512);
  peer.DeliverPart(peer.Write(0, kTarget, 512), data, 0, 256);
  peer.Deliver(peer.Write(1, kTarget, 8), ScriptedPeer::Bytes(8));
  peer.host().qp().OnCarrierLost(peer.host(), peer.carrier, true, wire::ChannelReason::kPathFailed,
                                 peer.base().now());
  EXPECT_EQ(peer.carrier.users, 0);
  EXPECT_TRUE(peer.Out().empty());
}

}  // namespace
}  // namespace rocegw::testing::message_responder
