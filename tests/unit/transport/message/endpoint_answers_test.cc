// SPDX-License-Identifier: Apache-2.0
// READs and atomics that peers request from an endpoint, one event at a time.
#include "gateway/transport/endpoint/endpoint_answers.h"

#include <gtest/gtest.h>

#include "tests/support/qp/endpoint_host.h"

namespace rocegw::testing::endpoint_answers {
namespace {

using metrics::DropReason;
using transport::EndpointAnswers;
using wire::FrameKind;

constexpr uint64_t kThere = 0x4000;

void SetBytes(EndpointHost& end, const std::vector<uint8_t>& bytes) {
  std::copy(bytes.begin(), bytes.end(),
            end.host().memory().begin() + static_cast<ptrdiff_t>(kThere));
}
uint8_t SyndromeOfOne(const std::vector<SentFrame>& out) {
  EXPECT_EQ(out.size(), 1u);
  if (out.size() != 1) return 0;
  EXPECT_EQ(out[0].frame.kind, FrameKind::kReply);
  EXPECT_EQ(out[0].frame.flags, wire::kFrameRelaxed);
  return out[0].frame.syndrome;
}

TEST(EndpointAnswersTest, Read_AnsweredInFramesThatFit) {
  EndpointHost end;
  end.carrier.most = 256;
  const auto data = ScriptedPeer::Bytes(600);
  SetBytes(end, data);
  EXPECT_EQ(end.Deliver(end.Read(9, kThere, 600)), DropReason::kNone);
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 3u);
  std::vector<uint8_t> read;
  for (const SentFrame& sent : out) {
    EXPECT_EQ(sent.frame.kind, FrameKind::kReadResponse);
    EXPECT_EQ(sent.frame.destination, Qpn{EndpointHost::kPeerQpn});
    EXPECT_EQ(sent.frame.source, Qpn{EndpointHost::kQpn});
    EXPECT_EQ(sent.frame.message, 9u);
    EXPECT_EQ(sent.frame.length, 600u);
    EXPECT_EQ(sent.frame.offset, read.size());
    EXPECT_EQ(sent.frame.has(wire::kFrameLast), read.size() == 512);
    read.insert(read.end(), sent.payload.begin(), sent.payload.end());
  }
  EXPECT_EQ(read, data);
}

TEST(EndpointUnacknowledgedTarget, Message_TakesEffectWithoutAReply) {
  EndpointHost end;
  const auto data = ScriptedPeer::Bytes(64);
  wire::ChannelFrame write = end.Request(FrameKind::kWrite, 1, kThere, 64);
  write.flags |= wire::kFrameNoReply;
  EXPECT_EQ(end.Deliver(write, data), DropReason::kNone);
  EXPECT_TRUE(end.Out().empty());
  EXPECT_EQ(end.host().memory()[kThere + 63], data[63]);
  EXPECT_EQ(end.carrier.users, 0);
  // Neither is a failure answered: a SEND without a receive, a wrong memory key, a wrong key.
  wire::ChannelFrame send = end.Request(FrameKind::kSend, 2, 0, 64);
  send.flags |= wire::kFrameNoReply;
  send.address = 0;
  send.rkey = 0;
  EXPECT_EQ(end.Deliver(send, data), DropReason::k_rnr_wait);
  write.rkey ^= 0x5A;
  end.Deliver(write, data);
  send.receive ^= 1;
  EXPECT_EQ(end.Deliver(send, data), DropReason::k_wrong_qkey);
  EXPECT_TRUE(end.Out().empty());
  EXPECT_EQ(end.carrier.users, 0);
}

TEST(EndpointUnacknowledgedTarget, PartOfALongerMessage_IsDropped) {
  EndpointHost end;
  const auto data = ScriptedPeer::Bytes(64);
  wire::ChannelFrame write = end.Request(FrameKind::kWrite, 1, kThere, 128);
  write.flags = wire::kFrameEndpoint | wire::kFrameRelaxed | wire::kFrameNoReply;
  EXPECT_EQ(end.Deliver(write, data), DropReason::k_rnr_wait);
  EXPECT_TRUE(end.Out().empty());
  EXPECT_EQ(end.host().memory()[kThere], 0);
}

TEST(EndpointAnswersTest, Atomic_HappensOnce_HoweverOftenItsResultIsLost) {
  EndpointHost end;
  end.Deliver(end.Add(9, kThere, 5));
  EXPECT_TRUE(end.OutWithoutMemory().empty()) << "not before it has happened";
  std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].frame.kind, FrameKind::kAtomicResult);
  EXPECT_EQ(out[0].frame.original, 0u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(end.Lose(out[0].psn.value), flow::Resend::kDone);
    out = end.Out();
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].frame.original, 0u);
  }
  EXPECT_EQ(end.host().memory()[kThere], 5);
}

TEST(EndpointAnswersTest, IsForgotten_WhenItHasArrived_AndKeepsNoChannel) {
  EndpointHost end;
  end.Deliver(end.Add(9, kThere, 5));
  ASSERT_EQ(end.Out().size(), 1u);
  end.Advance(EndpointAnswers::kLook * 3);
  EXPECT_EQ(end.carrier.users, 1) << "it may be lost";
  EXPECT_EQ(end.Lose(0), flow::Resend::kDone);
  end.Out();
  end.carrier.acknowledged = Psn(1);
  end.Advance(EndpointAnswers::kLook * 2);
  EXPECT_EQ(end.carrier.users, 0);
  EXPECT_EQ(end.host().qp().deadline(), kNever);
  EXPECT_EQ(end.Lose(0), flow::Resend::kVoid);
}

TEST(EndpointAnswersTest, WhatMayNotBe_IsRefusedForGood) {
  EndpointHost end;
  const uint8_t access = wire::SyndromeOf(wire::NakCode::kRemoteAccess);
  const uint8_t invalid = wire::SyndromeOf(wire::NakCode::kInvalidRequest);
  wire::ChannelFrame wrong = end.Read(0, kThere, 64);
  wrong.receive = EndpointHost::kKey + 1;
  EXPECT_EQ(end.Deliver(wrong), DropReason::k_wrong_qkey);
  EXPECT_EQ(SyndromeOfOne(end.Out()), access);
  wrong = end.Read(1, kThere, 64);
  wrong.rkey = 7;
  end.Deliver(wrong);
  EXPECT_EQ(SyndromeOfOne(end.Out()), access);
  end.Deliver(end.Read(2, end.host().memory().size() - 32, 64));
  EXPECT_EQ(SyndromeOfOne(end.Out()), access);
  wrong = end.Add(3, kThere, 1);
  wrong.rkey = 7;
  end.Deliver(wrong);
  EXPECT_EQ(SyndromeOfOne(end.Out()), access);
  end.Deliver(end.Add(4, kThere + 4, 1));
  EXPECT_EQ(SyndromeOfOne(end.Out()), invalid);
  EXPECT_EQ(end.carrier.users, 0);
  EXPECT_TRUE(std::all_of(end.host().memory().begin(), end.host().memory().end(),
                          [](uint8_t byte) { return byte == 0; }));
}

TEST(EndpointAnswersTest, RightsOfTheRegion_AreThoseOfReadsAndOfAtomics) {
  for (const bool atomic : {false, true}) {
    EndpointHost end;
    verbs::RegionConfig region;
    region.key = MemoryKey{0x77};
    region.session = SessionId{1};
    region.pd = 1;
    region.access = atomic ? verbs::kAccessRemoteRead : verbs::kAccessRemoteAtomic;
    region.iova = region.address = QpHost::kBase;
    region.length = 4096;
    ASSERT_TRUE(end.host().regions().Link(region));
    wire::ChannelFrame frame = atomic ? end.Add(0, 0, 1) : end.Read(0, 0, 64);
    frame.rkey = 0x77;
    end.Deliver(frame);
    EXPECT_EQ(SyndromeOfOne(end.Out()), wire::SyndromeOf(wire::NakCode::kRemoteAccess));
    frame = atomic ? end.Read(1, 0, 64) : end.Add(1, 0, 1);
    frame.rkey = 0x77;
    end.Deliver(frame);
    EXPECT_NE(end.Out().at(0).frame.kind, FrameKind::kReply);
  }
}

TEST(EndpointAnswersTest, BackloggedMemory_RefusesForNow_AndExecutesNothing) {
  EndpointHost end;
  EXPECT_EQ(end.Deliver(end.Add(0, kThere, 1), {}, true), DropReason::k_rnr_wait);
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].frame.syndrome & 0xE0, wire::kSyndromeRnr);
  EXPECT_EQ(out[0].frame.attempt, 1);
  EXPECT_EQ(end.host().memory()[kThere], 0);
}

TEST(EndpointAnswersTest, OneSenderGetsSoMany_OthersHaveRoom) {
  EndpointHost end;
  end.carrier.open = false;
  uint32_t message = 0;
  for (; message < EndpointAnswers::kMostOfOne; ++message)
    EXPECT_EQ(end.Deliver(end.Read(message, kThere, 64)), DropReason::kNone);
  EXPECT_EQ(end.Deliver(end.Read(message, kThere, 64)), DropReason::k_rnr_wait);
  wire::ChannelFrame other = end.Read(0, kThere, 64);
  other.source = Qpn{0x99};
  EXPECT_EQ(end.Deliver(other), DropReason::kNone);
  end.carrier.open = true;
  EXPECT_EQ(end.Out().size(), EndpointAnswers::kMostOfOne + 2);
  EXPECT_EQ(end.Deliver(end.Read(message, kThere, 64)), DropReason::kNone) << "room again";
}

// Source numbers are the sender's choice, so they do not multiply its share.
TEST(EndpointAnswersTest, OneGatewayGetsHalf_OthersShareTheRest) {
  EndpointHost end;
  end.carrier.open = false;
  for (uint32_t i = 0; i < EndpointAnswers::kMost / 2; ++i) {
    wire::ChannelFrame frame = end.Read(i, kThere, 64);
    frame.source = Qpn{100 + i};
    ASSERT_EQ(end.Deliver(frame), DropReason::kNone);
  }
  EXPECT_EQ(end.Deliver(end.Read(0, kThere, 64)), DropReason::k_rnr_wait);
  ScriptedCarrier other;
  other.open = false;
  other.to.path.destination = wire::Gid::FromV4(0xC0000299);
  uint32_t taken = 0;
  for (uint32_t i = 0; i < EndpointAnswers::kMost; ++i) {
    wire::ChannelFrame frame = end.Read(i, kThere, 64);
    frame.source = Qpn{100 + i};
    std::vector<uint8_t> none;
    const DropReason reason =
        end.host().qp().OnFrame(end.host(), other, frame, none, false, end.now());
    if (reason == DropReason::kNone) ++taken;
  }
  EXPECT_GE(taken, EndpointAnswers::kMost / 8);
  EXPECT_LT(taken, EndpointAnswers::kMost / 2) << "a third one finds room";
}

TEST(EndpointAnswersTest, TheyTakeTurns) {
  EndpointHost end;
  end.Deliver(end.Read(1, 0, 200000));
  end.Deliver(end.Read(2, 0, 100));
  const std::vector<SentFrame> out = end.Out();
  const auto of = [&](uint32_t message) {
    size_t last = 0;
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].frame.message == message) last = i;
    return last;
  };
  EXPECT_LT(of(2), 10u);
  EXPECT_GT(of(1), 40u);
}

TEST(EndpointAnswersTest, MemoryThatIsGoneMeanwhile_IsToldByANak) {
  EndpointHost end;
  end.carrier.most = 256;
  end.carrier.open = false;
  end.Deliver(end.Read(1, kThere, 600));
  EXPECT_TRUE(end.Out().empty());
  end.host().regions().Unlink(MemoryKey{end.host().key()});
  end.carrier.open = true;
  end.host().qp().OnTurn(end.carrier);
  EXPECT_EQ(SyndromeOfOne(end.Out()), wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  EXPECT_EQ(end.carrier.users, 0);
  EXPECT_EQ(end.Lose(0), flow::Resend::kVoid);
}

TEST(EndpointAnswersTest, MemoryThatFaults_IsToldByANak) {
  EndpointHost end;
  end.carrier.most = 256;
  end.host().Poison(kThere + 300, 8);
  end.Deliver(end.Read(1, kThere, 600));
  std::vector<SentFrame> out = end.Out();
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(out.back().frame.kind, FrameKind::kReply);
  EXPECT_EQ(out.back().frame.syndrome, wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  EXPECT_EQ(out.back().frame.message, 1u);
  end.host().Poison(kThere, 8);
  end.Deliver(end.Add(2, kThere, 1));
  EXPECT_EQ(SyndromeOfOne(end.Out()), wire::SyndromeOf(wire::NakCode::kRemoteAccess));
}

TEST(EndpointAnswersTest, InTheErrorState_NothingIsReadForOthers) {
  EndpointHost end;
  end.carrier.open = false;
  end.Deliver(end.Read(1, kThere, 600));
  end.Out();
  end.carrier.open = true;
  end.host().qp().OnTurn(end.carrier);
  ASSERT_EQ(end.host().ToState(verbs::QpState::kError), 0);
  EXPECT_TRUE(end.Out().empty());
  EXPECT_EQ(end.carrier.users, 0);
}

TEST(EndpointAnswersTest, TheChannelEnds_NothingIsKept) {
  EndpointHost end;
  end.Deliver(end.Add(1, kThere, 1));
  end.Out();
  end.carrier.open = false;
  end.Deliver(end.Read(2, kThere, 600));
  end.Out();
  end.host().qp().OnCarrierLost(end.host(), end.carrier, true, wire::ChannelReason::kPathFailed,
                                end.now());
  end.carrier.open = true;
  EXPECT_TRUE(end.Out().empty());
  EXPECT_EQ(end.carrier.users, 0);
  end.Advance(EndpointAnswers::kLook * 2);
  EXPECT_EQ(end.host().qp().deadline(), kNever);
}

// The program ends the endpoint after it got the message, while the reply waits for window on the
// channel.
TEST(EndpointTargetTest, EndsWhileItsReplyStandsInLine_TheReplyLeaves) {
  for (const bool places : {true, false}) {
    EndpointHost end;
    end.carrier.open = false;
    end.carrier.places = places;
    EXPECT_EQ(end.Deliver(end.Request(FrameKind::kWrite, 7, kThere, 8), ScriptedPeer::Bytes(8)),
              DropReason::kNone);
    EXPECT_TRUE(end.Out().empty());
    end.host().qp().SendLast(end.host(), end.now());
    end.host().Settle();
    const auto out = end.Out();
    if (places) {
      EXPECT_EQ(SyndromeOfOne(out), wire::kSyndromeAck);
    } else {
      EXPECT_TRUE(out.empty());
    }
  }
}

}  // namespace
}  // namespace rocegw::testing::endpoint_answers
