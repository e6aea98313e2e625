// SPDX-License-Identifier: Apache-2.0
// Messages that an endpoint receives, one frame at a time.
#include "gateway/transport/endpoint/endpoint_target.h"

#include <gtest/gtest.h>

#include "gateway/hand_over/state_stream.h"
#include "tests/support/qp/carrier_addresses.h"
#include "tests/support/qp/endpoint_host.h"

namespace rocegw::testing::endpoint_target {
namespace {

using metrics::DropReason;
using verbs::WcStatus;
using wire::FrameKind;
using wire::NakCode;

constexpr uint64_t kInbox = 0x8000;

void PostReceive(EndpointHost& end, uint64_t id) {
  end.host().PostReceive(id, {{kInbox + id * 0x1000, 0x1000}});
}

// Returns the syndrome of the only frame that the endpoint sends.
uint8_t Replied(EndpointHost& end) {
  const std::vector<SentFrame> out = end.Out();
  EXPECT_EQ(out.size(), 1u);
  if (out.size() != 1) return 0xFF;
  EXPECT_EQ(out[0].frame.kind, FrameKind::kReply);
  return out[0].frame.syndrome;
}

// A peer that sends bytes twice would otherwise leave a message with more bytes than it has, which
// no other gateway takes over.
TEST(EndpointTarget, FramesThatOverlap_FailTheirMessage_AndTheEndpointIsHandedOver) {
  EndpointHost end;
  PostReceive(end, 1);
  const auto data = ScriptedPeer::Bytes(500);
  end.DeliverPart(7, data, 0, 300);
  end.DeliverPart(7, data, 100, 300);
  EXPECT_EQ(Replied(end), wire::SyndromeOf(NakCode::kInvalidRequest));
  end.host().HandOver();
  end.DeliverWhole(8, data);
  EXPECT_EQ(Replied(end), wire::kSyndromeAck) << "its receive is free again";
  EXPECT_EQ(end.Ended(), "1:0");
}

TEST(EndpointTarget, InError_WithAPartOfAMessage_IsHandedOver) {
  EndpointHost end;
  PostReceive(end, 1);
  PostReceive(end, 2);
  const auto data = ScriptedPeer::Bytes(500);
  end.DeliverPart(7, data, 0, 300);
  end.Out();
  ASSERT_EQ(end.host().ToState(verbs::QpState::kError), 0);
  end.Out();
  const std::string flushed = std::to_string(static_cast<int>(WcStatus::kFlush));
  EXPECT_EQ(end.Ended(), "1:" + flushed + " 2:" + flushed);
  end.host().HandOver();
  end.Restart();
  PostReceive(end, 3);
  end.DeliverWhole(8, data);
  EXPECT_EQ(Replied(end), wire::kSyndromeAck);
  EXPECT_EQ(end.Ended(), "3:0");
}

DropReason DeliverBy(EndpointHost& end, ScriptedCarrier& by, const wire::ChannelFrame& frame,
                     std::vector<uint8_t> payload = {}) {
  return end.host().qp().OnFrame(end.host(), by, frame, payload, false, end.now());
}

// Returns the first part of a WRITE of two frames.
wire::ChannelFrame BeginsWrite(EndpointHost& end, uint32_t message) {
  wire::ChannelFrame frame = end.Request(FrameKind::kWrite, message, 0x100, 512);
  frame.flags &= static_cast<uint8_t>(~wire::kFrameLast);
  return frame;
}

// The pool has no heap for more records of messages that are not whole.
TEST(EndpointTarget, WithoutHeapForRecords_LongMessagesAreRefused) {
  EndpointHost end;
  for (uint64_t id = 1; id <= 3; ++id) PostReceive(end, id);
  const auto data = ScriptedPeer::Bytes(500);
  end.DeliverPart(7, data, 0, 300);
  const size_t one = end.host().qp().records_bytes();
  EXPECT_GT(one, 0u);
  end.host().may_record = false;
  EXPECT_EQ(end.DeliverPart(8, data, 0, 300), DropReason::k_rnr_wait);
  EXPECT_TRUE((wire::Aeth{Replied(end), 0}.is_rnr()));
  // A message that has begun goes on, and messages of one frame need none.
  end.DeliverPart(7, data, 300, 200);
  EXPECT_EQ(Replied(end), wire::kSyndromeAck);
  end.DeliverWhole(9, data);
  EXPECT_EQ(Replied(end), wire::kSyndromeAck);
  end.host().may_record = true;
  end.DeliverPart(10, data, 0, 300);
  end.DeliverPart(10, data, 300, 200);
  EXPECT_EQ(Replied(end), wire::kSyndromeAck);
}

// A peer that acknowledges with room 0 makes each of its frames cost a reply that cannot leave.
TEST(EndpointTarget, PeerThatTakesNoReplies_IsBounded_AndOthersAreAnswered) {
  EndpointHost end;
  end.carrier.open = false;
  ScriptedCarrier other;
  other.to.path.destination = wire::Gid::FromV4(0xC0000299);
  wire::ChannelFrame wrong = end.Request(FrameKind::kWrite, 0, 0x100, 16);
  wrong.receive = EndpointHost::kKey + 1;
  const auto data = ScriptedPeer::Bytes(16);
  size_t taken = 0;
  for (uint32_t i = 0; i < 20'000; ++i) {
    wrong.message = i;
    const DropReason reason = end.Deliver(wrong, data);
    if (reason == DropReason::k_wrong_qkey) {
      ++taken;
    } else {
      ASSERT_EQ(reason, DropReason::k_replies_full);
    }
    if (i % 64 == 0) {
      EXPECT_TRUE(end.Out().empty());
    }
  }
  constexpr size_t kShare = transport::EndpointReplies::kMostBlocked / 2;
  EXPECT_GE(taken, kShare);
  EXPECT_LE(taken, kShare + 64);
  EXPECT_EQ(DeliverBy(end, other, wrong, data), DropReason::k_wrong_qkey);
  EXPECT_EQ(Replied(end), wire::SyndromeOf(NakCode::kRemoteAccess));
  end.host().HandOver();
  end.carrier.open = true;
  end.host().qp().OnTurn(end.carrier);
  EXPECT_EQ(end.Out().size(), taken);
  EXPECT_EQ(end.Deliver(wrong, data), DropReason::k_wrong_qkey) << "taken again";
}

// The gateway that takes over answers in the same order as the one that it replaces.
TEST(EndpointTarget, HandedOver_RepliesThatWaitForWindow_StayBeforeNewerOnes) {
  EndpointHost end;
  end.carrier.open = false;
  wire::ChannelFrame wrong = end.Request(FrameKind::kWrite, 1, 0x100, 16);
  wrong.receive = EndpointHost::kKey + 1;
  const auto data = ScriptedPeer::Bytes(16);
  EXPECT_EQ(end.Deliver(wrong, data), DropReason::k_wrong_qkey);
  EXPECT_TRUE(end.Out().empty()) << "no window";
  wrong.message = 2;
  EXPECT_EQ(end.Deliver(wrong, data), DropReason::k_wrong_qkey);
  end.host().HandOver();
  end.carrier.open = true;
  end.host().qp().OnTurn(end.carrier);
  const auto out = end.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].frame.message, 1u);
  EXPECT_EQ(out[1].frame.message, 2u);
}

TEST(EndpointTarget, RepliesWithoutAPump_AreBounded) {
  EndpointHost end;
  wire::ChannelFrame wrong = end.Request(FrameKind::kWrite, 0, 0x100, 16);
  wrong.receive = EndpointHost::kKey + 1;
  const auto data = ScriptedPeer::Bytes(16);
  for (uint32_t i = 0; i < transport::EndpointReplies::kMost; ++i)
    ASSERT_EQ(end.Deliver(wrong, data), DropReason::k_wrong_qkey);
  EXPECT_EQ(end.Deliver(wrong, data), DropReason::k_replies_full);
}

// Frames that find no receive must not make the endpoint look at all its messages each.
TEST(EndpointTarget, SearchForIdleReceives_AtMostOnceInAWhile) {
  using transport::EndpointTarget;
  EndpointHost end;
  PostReceive(end, 1);
  const auto data = ScriptedPeer::Bytes(500);
  end.DeliverPart(1, data, 0, 300);
  end.Out();
  end.Advance(EndpointTarget::kIdle - EndpointTarget::kSearch / 2);
  EXPECT_EQ(end.DeliverWhole(2, data), DropReason::k_rnr_wait);
  end.Advance(EndpointTarget::kSearch - Microseconds(1));
  EXPECT_EQ(end.DeliverWhole(2, data), DropReason::k_rnr_wait) << "idle, and nobody looked";
  end.Advance(Microseconds(1));
  EXPECT_EQ(end.DeliverWhole(2, data), DropReason::kNone);
}

// A gateway begins as many messages as an endpoint takes.
TEST(EndpointTarget, PlacesAreTakenFromTheGatewayWithMost) {
  EndpointHost end;
  ScriptedCarrier other;
  other.to.path.destination = wire::Gid::FromV4(0xC0000299);
  const auto half = ScriptedPeer::Bytes(256);
  for (uint32_t i = 0; i < transport::EndpointTarget::kMostUnderWay; ++i) {
    ASSERT_EQ(end.Deliver(BeginsWrite(end, i), half), DropReason::kNone);
    if (i < 100) end.Advance(Milliseconds(1));
  }
  EXPECT_EQ(end.Deliver(BeginsWrite(end, 9999), half), DropReason::k_rnr_wait) << "its own share";
  end.Out();
  EXPECT_EQ(DeliverBy(end, other, BeginsWrite(end, 7), half), DropReason::kNone);
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), transport::EndpointTarget::kEvicted);
  for (const SentFrame& sent : out) {
    EXPECT_TRUE((wire::Aeth{sent.frame.syndrome, 0}.is_rnr()));
    EXPECT_EQ(sent.frame.attempt, 1);
    EXPECT_LT(sent.frame.message, transport::EndpointTarget::kEvicted) << "the oldest";
  }
  end.host().HandOver();
  wire::ChannelFrame rest = BeginsWrite(end, 7);
  rest.offset = 256;
  rest.flags |= wire::kFrameLast;
  EXPECT_EQ(DeliverBy(end, other, rest, half), DropReason::kNone);
  EXPECT_EQ(Replied(end), wire::kSyndromeAck);
}

// Endpoints of one shared receive queue.
class SharedTargets : public ::testing::Test {
 protected:
  static constexpr uint32_t kReceiveKey = 0x7777;

  SharedTargets() {
    for (EndpointHost* const end : {&a, &b}) {
      verbs::RegionConfig region;
      region.key = MemoryKey{kReceiveKey};
      region.session = SessionId{1};
      region.pd = 1;
      region.access = verbs::kAccessLocalWrite;
      region.iova = region.address = QpHost::kBase;
      region.length = end->host().memory().size();
      EXPECT_TRUE(end->host().regions().Link(region));
    }
  }
  void Post(uint64_t id) {
    ASSERT_TRUE(
        shared.PostReceive(id, {{QpHost::kBase + kInbox + id * 0x1000, 0x1000, kReceiveKey}}));
  }
  RingOptions Ring() {
    RingOptions ring;
    ring.shared = &shared;
    return ring;
  }
  // Returns the receives that completed, and frees their slots as the library does.
  std::string Polled(EndpointHost& end) {
    std::string text;
    for (const rocegw_cqe& cqe : end.Poll()) {
      shared.Free(cqe.ring_slot);
      text +=
          (text.empty() ? "" : " ") + std::to_string(cqe.wr_id) + ":" + std::to_string(cqe.status);
    }
    return text;
  }
  static std::vector<uint8_t> Inbox(EndpointHost& end, uint64_t id, size_t length) {
    const auto at = end.host().memory().begin() + static_cast<ptrdiff_t>(kInbox + id * 0x1000);
    return {at, at + static_cast<ptrdiff_t>(length)};
  }

  static size_t StateBytes(EndpointHost& end) {
    std::vector<uint8_t> bytes;
    const hand_over::StateVersions versions;
    CarrierAddresses names;
    hand_over::StateStream out(bytes, end.now(), versions);
    end.host().qp().HandOver(out, names);
    EXPECT_TRUE(out.ok()) << out.failure();
    return bytes.size();
  }

  SharedEnd shared{{.entries = 4, .payload_stride = 64}};
  transport::SharedReceives receives{shared.Srq()};
  EndpointHost a{Ring(), &receives};
  EndpointHost b{Ring(), &receives};
};

TEST_F(SharedTargets, TakeReceivesInPostingOrder_WhicheverHasAMessage) {
  const auto data = ScriptedPeer::Bytes(500);
  // More messages than slots, so that each slot is used again.
  for (uint32_t round = 0; round < 5; ++round) {
    Post(1);
    Post(2);
    b.DeliverWhole(round, data);
    EXPECT_EQ(Replied(b), wire::kSyndromeAck);
    a.DeliverWhole(round, data);
    EXPECT_EQ(Replied(a), wire::kSyndromeAck);
    EXPECT_EQ(Polled(a), "2:0");
    EXPECT_EQ(Polled(b), "1:0");
    EXPECT_EQ(Inbox(a, 2, 500), data);
    EXPECT_EQ(Inbox(b, 1, 500), data);
  }
  EXPECT_EQ(shared.free_slots(), 4u);
}

TEST_F(SharedTargets, ShortMessage_LiesInThePayloadOfItsOwnSlot) {
  Post(1);
  Post(2);
  const auto first = ScriptedPeer::Bytes(500);
  a.DeliverPart(1, first, 0, 300);
  const auto data = ScriptedPeer::Bytes(40);
  a.DeliverWhole(2, data);
  a.Out();
  const std::vector<rocegw_cqe> all = a.Poll();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].wr_id, 2u);
  ASSERT_NE(all[0].flags & ROCEGW_CQE_PAYLOAD_IN_RING, 0);
  const uint8_t* const payload = shared.payload(all[0].ring_slot);
  EXPECT_EQ(std::vector<uint8_t>(payload, payload + 40), data);
  a.DeliverPart(1, first, 300, 200);
  a.Out();
  EXPECT_EQ(Polled(a), "1:0");
}

TEST_F(SharedTargets, WithoutAReceive_TheMessageIsRefused) {
  a.DeliverWhole(1, ScriptedPeer::Bytes(100));
  EXPECT_TRUE((wire::Aeth{Replied(a), 0}.is_rnr()));
}

TEST_F(SharedTargets, MessageThatFails_ReturnsItsReceive) {
  Post(1);
  a.DeliverPart(1, ScriptedPeer::Bytes(0x1001), 0, 300);
  EXPECT_EQ(Replied(a), wire::SyndromeOf(NakCode::kInvalidRequest));
  EXPECT_EQ(receives.waiting(), 1u);
  b.DeliverWhole(1, ScriptedPeer::Bytes(100));
  EXPECT_EQ(Replied(b), wire::kSyndromeAck);
  EXPECT_EQ(Polled(b), "1:0");
}

// The sender may have died. Other endpoints of the queue need the receive.
TEST_F(SharedTargets, MessageThatRests_GivesItsReceiveToOthers) {
  Post(1);
  a.Out();
  const auto data = ScriptedPeer::Bytes(500);
  a.DeliverPart(1, data, 0, 300);
  a.Out();
  a.Advance(transport::EndpointTarget::kIdle - Milliseconds(1));
  EXPECT_EQ(receives.waiting(), 0u);
  a.Advance(Milliseconds(1));
  EXPECT_EQ(receives.waiting(), 1u);
  EXPECT_EQ(a.host().qp().deadline(), kNever);
  b.DeliverWhole(1, data);
  EXPECT_EQ(Replied(b), wire::kSyndromeAck);
  EXPECT_EQ(Polled(b), "1:0");
  a.DeliverPart(1, data, 300, 200);
  EXPECT_TRUE((wire::Aeth{Replied(a), 0}.is_rnr())) << "it begins again";
}

// Bytes of the message may still be written to the buffers.
TEST_F(SharedTargets, ReceiveWithWritesOutstanding_IsReturnedBehindThem) {
  Post(1);
  const auto data = ScriptedPeer::Bytes(500);
  a.DeliverPart(1, data, 0, 300);
  a.host().qp().OnCarrierLost(a.host(), a.carrier, true, wire::ChannelReason::kPathFailed, a.now());
  EXPECT_EQ(receives.waiting(), 0u);
  a.host().Settle();
  EXPECT_EQ(receives.waiting(), 1u);
}

TEST_F(SharedTargets, NextMessageWithThatReceive_ReturnsItBehindThemToo) {
  Post(1);
  a.DeliverPart(1, ScriptedPeer::Bytes(500), 0, 300);
  a.host().qp().OnCarrierLost(a.host(), a.carrier, true, wire::ChannelReason::kPathFailed, a.now());
  a.DeliverPart(2, ScriptedPeer::Bytes(0x1001), 0, 300);
  EXPECT_EQ(receives.waiting(), 0u);
  a.host().Settle();
  EXPECT_EQ(Replied(a), wire::SyndromeOf(NakCode::kInvalidRequest));
  EXPECT_EQ(receives.waiting(), 1u);
}

TEST_F(SharedTargets, LostChannel_ReturnsReceives) {
  Post(1);
  a.DeliverPart(1, ScriptedPeer::Bytes(500), 0, 300);
  a.host().Settle();
  a.host().qp().OnCarrierLost(a.host(), a.carrier, true, wire::ChannelReason::kPathFailed, a.now());
  EXPECT_EQ(receives.waiting(), 1u);
}

TEST_F(SharedTargets, InError_FlushesWhatItHasTaken_AndReportsTheLastOne) {
  Post(1);
  Post(2);
  a.DeliverPart(1, ScriptedPeer::Bytes(500), 0, 300);
  a.Out();
  ASSERT_EQ(a.host().ToState(verbs::QpState::kError), 0);
  a.Out();
  EXPECT_EQ(Polled(a), "1:" + std::to_string(static_cast<int>(WcStatus::kFlush)));
  EXPECT_EQ(receives.waiting(), 1u);
  EXPECT_EQ(a.host().events, std::vector{verbs::AsyncEvent::kLastWqeReached});
}

TEST_F(SharedTargets, DestroyedEndpoint_ReturnsWhatItHasTaken) {
  Post(1);
  a.DeliverPart(1, ScriptedPeer::Bytes(500), 0, 300);
  a.Out();
  a.host().qp().GiveBackReceives();
  EXPECT_EQ(receives.waiting(), 1u);
}

TEST_F(SharedTargets, HandedOver_GoOn) {
  Post(1);
  const auto data = ScriptedPeer::Bytes(500);
  a.DeliverPart(1, data, 0, 300);
  a.Out();
  a.host().HandOver();
  EXPECT_NE(a.host().qp().deadline(), kNever) << "its receive still is to be returned";
  a.DeliverPart(1, data, 300, 200);
  EXPECT_EQ(Replied(a), wire::kSyndromeAck);
  EXPECT_EQ(Polled(a), "1:0");
}

// Receives that were returned, or have completed, take no room any more.
TEST_F(SharedTargets, ReceivesThatItNoLongerHas_KeepNoHeap) {
  const size_t before = StateBytes(a);
  const auto data = ScriptedPeer::Bytes(500);
  for (uint32_t id = 1; id <= 4; ++id) {
    Post(id);
    a.DeliverPart(id, data, 0, 300);
  }
  a.Out();
  EXPECT_GT(StateBytes(a), before);
  a.DeliverPart(1, data, 300, 200);
  EXPECT_EQ(Replied(a), wire::kSyndromeAck);
  EXPECT_EQ(Polled(a), "1:0");
  a.Advance(transport::EndpointTarget::kIdle);
  EXPECT_EQ(receives.waiting(), 3u);
  a.host().qp().OnCarrierLost(a.host(), a.carrier, true, wire::ChannelReason::kPathFailed, a.now());
  EXPECT_EQ(StateBytes(a), before);
  b.DeliverWhole(1, data);
  EXPECT_EQ(Replied(b), wire::kSyndromeAck);
  a.DeliverWhole(2, data);
  EXPECT_EQ(Replied(a), wire::kSyndromeAck);
}

// The slot of a receive goes back to the queue, which reads it.
TEST_F(SharedTargets, StateWithASlotThatTheQueueLacks_IsRefused) {
  Post(1);
  a.DeliverPart(1, ScriptedPeer::Bytes(500), 0, 300);
  a.Out();
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  CarrierAddresses names;
  hand_over::StateStream out(bytes, a.now(), versions);
  a.host().qp().HandOver(out, names);
  ASSERT_TRUE(out.ok()) << out.failure();
  SharedEnd none{{.entries = 4, .payload_stride = 64}};
  verbs::SrqConfig config = none.Srq();
  config.entries = 0;
  transport::SharedReceives smaller(config);
  EndpointHost fresh(Ring(), &smaller);
  hand_over::StateStream in(bytes, a.now());
  fresh.host().qp().HandOver(in, names);
  EXPECT_STREQ(in.failure(), "receive of no slot");
}

}  // namespace
}  // namespace rocegw::testing::endpoint_target
