// SPDX-License-Identifier: Apache-2.0
// States of an endpoint: SUSPENDED, DRAINING, EXCEPTION, and the events for its program.
#include <gtest/gtest.h>

#include "gateway/transport/endpoint/endpoint_queue_pair.h"
#include "gateway/transport/endpoint/endpoint_state.h"
#include "gateway/transport/endpoint/endpoint_target.h"
#include "tests/support/qp/endpoint_host.h"

namespace rocegw::testing::endpoint_states {
namespace {

using transport::EndpointState;
using verbs::AsyncEvent;
using verbs::WcStatus;
using wire::FrameKind;
using Events = std::vector<AsyncEvent>;

constexpr uint8_t kSend = ROCEGW_WR_SEND;
constexpr uint8_t kRead = ROCEGW_WR_RDMA_READ;
constexpr uint64_t kLocal = 0x4000;
constexpr uint64_t kInbox = 0x8000;
constexpr uint32_t kOther = 6;  // peer behind another gateway
const wire::Gid kElsewhere = wire::Gid::FromV4(0xC0000242);

std::string Failed(uint64_t id, WcStatus status) {
  return std::to_string(id) + ":" + std::to_string(static_cast<int>(status));
}

class EndpointStates : public ::testing::Test {
 protected:
  explicit EndpointStates(const RingOptions& ring = {}) : end(ring) {}

  int Move(EndpointState to, bool notify = false) {
    return end.host().qp().endpoint()->Move(end.host(), to, notify, end.now());
  }
  transport::EndpointStatus Status() { return end.host().qp().endpoint()->status(); }
  EndpointState State() { return Status().state; }
  const Events& events() { return end.host().events; }
  void PostReceive(uint64_t id) { end.host().PostReceive(id, {{kInbox + id * 0x1000, 0x1000}}); }
  // Pumps the endpoint, which sends nothing.
  void ExpectNothingSent() { EXPECT_TRUE(end.Out().empty()); }

  EndpointHost end;
};

TEST_F(EndpointStates, Suspended_BeginsNothing_AndGoesOnLater) {
  ASSERT_EQ(Move(EndpointState::kSuspended), 0);
  EXPECT_EQ(State(), EndpointState::kSuspended);
  end.Post(kSend, kLocal, 100);
  ExpectNothingSent();
  EXPECT_EQ(Status().requests, 0u);
  ASSERT_EQ(Move(EndpointState::kReady), 0);
  EXPECT_EQ(State(), EndpointState::kReady);
  EXPECT_EQ(end.Out().size(), 1u);
  end.DeliverReply(0, wire::kSyndromeAck);
  EXPECT_EQ(end.Ended(), "100:0");
  EXPECT_EQ(events(), Events{}) << "its program has not asked";
}

TEST_F(EndpointStates, Suspended_TakesMessagesOfOthers) {
  ASSERT_EQ(Move(EndpointState::kSuspended), 0);
  PostReceive(1);
  end.DeliverWhole(3, ScriptedPeer::Bytes(100));
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].frame.syndrome, wire::kSyndromeAck);
  EXPECT_EQ(end.Ended(), "1:0");
}

TEST_F(EndpointStates, Suspended_WithNothingUnderWay_ReportsAtOnce) {
  ASSERT_EQ(Move(EndpointState::kSuspended, true), 0);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
  ExpectNothingSent();
  EXPECT_EQ(events().size(), 1u) << "once";
  ASSERT_EQ(Move(EndpointState::kSuspended, true), 0);
  ExpectNothingSent();
  EXPECT_EQ(events().size(), 2u) << "asked for again";
}

// A request that waits for an earlier one of its peer stands in front of one that has begun.
class OrderedEndpointStates : public EndpointStates {
 protected:
  OrderedEndpointStates() : EndpointStates({.service_mode = verbs::ServiceMode::kByInitiator}) {
    end.AddPeer(kOther, other, kElsewhere);
    end.Post(kSend, kLocal, 100);
    end.Post(kSend, kLocal, 100);
    end.to = kOther;
    end.Post(kSend, kLocal, 100);
    EXPECT_EQ(end.Out().size(), 2u) << "the second waits";
  }
  metrics::DropReason ReplyOfOther(uint32_t message, uint8_t syndrome, uint8_t attempt = 0) {
    wire::ChannelFrame frame = end.Answer(FrameKind::kReply, message);
    frame.flags = wire::kFrameRelaxed;
    frame.syndrome = syndrome;
    frame.attempt = attempt;
    return end.host().qp().OnFrame(end.host(), other, frame, {}, false, end.now());
  }

  ScriptedCarrier other;
};

TEST_F(OrderedEndpointStates, Suspended_ReportsNotBefore_EveryRequestThatBeganHasEnded) {
  ASSERT_EQ(Move(EndpointState::kSuspended, true), 0);
  EXPECT_EQ(Status().requests, 2u);
  end.DeliverReply(0, wire::kSyndromeAck);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{}) << "the third is under way";
  EXPECT_EQ(ReplyOfOther(2, wire::kSyndromeAck), metrics::DropReason::kNone);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
  EXPECT_EQ(end.Ended(), "100:0") << "completions stay in order";
  ASSERT_EQ(Move(EndpointState::kReady), 0);
  EXPECT_EQ(end.Out().size(), 1u);
  end.DeliverReply(1, wire::kSyndromeAck);
  EXPECT_EQ(end.Ended(), "101:0 102:0");
}

TEST_F(OrderedEndpointStates, Suspended_OffersARefusedRequestAgain) {
  ASSERT_EQ(Move(EndpointState::kSuspended, true), 0);
  end.DeliverReply(0, wire::kSyndromeAck);
  ReplyOfOther(2, wire::kSyndromeRnr | 1, 1);
  end.Advance(Milliseconds(1));
  const std::vector<SentFrame> again = end.Out();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].frame.message, 2u);
  ReplyOfOther(2, wire::kSyndromeAck);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
}

TEST_F(OrderedEndpointStates, LaterChange_CancelsTheEvent) {
  ASSERT_EQ(Move(EndpointState::kSuspended, true), 0);
  ASSERT_EQ(Move(EndpointState::kSuspended), 0);
  end.DeliverReply(0, wire::kSyndromeAck);
  ReplyOfOther(2, wire::kSyndromeAck);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{});
}

TEST_F(EndpointStates, Suspended_IsHandedOver_WithItsEvent) {
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 1u);
  ASSERT_EQ(Move(EndpointState::kSuspended, true), 0);
  end.Post(kSend, kLocal, 100);
  end.host().HandOver();
  EXPECT_EQ(State(), EndpointState::kSuspended);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{});
  end.DeliverReply(0, wire::kSyndromeAck);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
}

TEST_F(EndpointStates, Draining_RefusesNewMessages_AndSends) {
  PostReceive(1);
  ASSERT_EQ(Move(EndpointState::kDraining), 0);
  EXPECT_EQ(State(), EndpointState::kDraining);
  EXPECT_FALSE(end.host().qp().endpoint()->takes_messages());
  const auto data = ScriptedPeer::Bytes(500);
  EXPECT_EQ(end.DeliverWhole(1, data), metrics::DropReason::k_rnr_wait);
  EXPECT_EQ(end.DeliverPart(2, data, 0, 300), metrics::DropReason::k_rnr_wait);
  EXPECT_EQ(end.Deliver(end.Read(3, 0x100, 100)), metrics::DropReason::k_rnr_wait);
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 3u);
  for (const SentFrame& sent : out)
    EXPECT_TRUE((wire::Aeth{sent.frame.syndrome, 0}.is_rnr())) << "offered again later";
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 1u);
  ASSERT_EQ(Move(EndpointState::kReady), 0);
  EXPECT_EQ(end.DeliverWhole(1, data), metrics::DropReason::kNone);
}

TEST_F(EndpointStates, Draining_ReportsWhenBothHalvesHaveEnded) {
  PostReceive(1);
  const auto data = ScriptedPeer::Bytes(500);
  end.DeliverPart(1, data, 0, 300);
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 1u);
  ASSERT_EQ(Move(EndpointState::kDraining, true), 0);
  EXPECT_EQ(Status().messages, 1u);
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 1u) << "what is posted is sent";
  end.host().HandOver();
  EXPECT_EQ(end.DeliverPart(1, data, 300, 200), metrics::DropReason::kNone) << "begun before";
  EXPECT_EQ(end.Out().size(), 1u);
  EXPECT_EQ(Status().messages, 0u);
  EXPECT_EQ(events(), Events{}) << "two requests are under way";
  end.DeliverReply(0, wire::kSyndromeAck);
  end.DeliverReply(1, wire::kSyndromeAck);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
  EXPECT_EQ(end.Ended(), "1:0 100:0 101:0");
}

TEST_F(EndpointStates, Draining_ThatEndsInError_IsNotReportedAsDrained) {
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 1u);
  ASSERT_EQ(Move(EndpointState::kDraining, true), 0);
  ASSERT_EQ(Move(EndpointState::kError), 0);
  ExpectNothingSent();
  EXPECT_EQ(end.Ended(), Failed(100, WcStatus::kFlush));
  EXPECT_EQ(events(), Events{});
}

TEST_F(EndpointStates, Draining_WaitsForTheDataOfReads) {
  EXPECT_EQ(end.Deliver(end.Read(1, 0x100, 100)), metrics::DropReason::kNone);
  ASSERT_EQ(Move(EndpointState::kDraining, true), 0);
  EXPECT_EQ(end.Out().size(), 1u);
  EXPECT_EQ(events(), Events{}) << "the data may be lost";
  end.carrier.acknowledged = Psn(1);
  end.Advance(transport::EndpointAnswers::kLook);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
}

// The sender has died in the middle of a message.
TEST_F(EndpointStates, Draining_ForgetsMessagesThatNeverEnd) {
  PostReceive(1);
  end.Out();
  end.DeliverPart(1, ScriptedPeer::Bytes(500), 0, 300);
  ASSERT_EQ(Move(EndpointState::kDraining, true), 0);
  end.Out();
  end.Advance(transport::EndpointTarget::kOld - Milliseconds(1));
  end.Out();
  EXPECT_EQ(events(), Events{});
  end.Advance(Milliseconds(1));
  end.Out();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
}

// A peer that lives, and sends a few bytes of its message now and then.
TEST_F(EndpointStates, Draining_HasAnEnd_WhateverAPeerDoes) {
  PostReceive(1);
  end.Out();
  const auto data = ScriptedPeer::Bytes(500);
  end.DeliverPart(1, data, 0, 10);
  EXPECT_EQ(end.Deliver(end.Read(2, 0x100, 100)), metrics::DropReason::kNone);
  ASSERT_EQ(Move(EndpointState::kDraining, true), 0);
  end.Post(kSend, kLocal, 100);
  uint32_t offset = 10;
  const TimePoint begin = end.now();
  const auto over = [&] { return end.now() - begin >= transport::EndpointTarget::kLongestDrain; };
  for (; !over(); end.Advance(Seconds(2))) {
    end.Out();
    EXPECT_EQ(events(), Events{});
    EXPECT_EQ(end.DeliverPart(1, data, offset, 10), metrics::DropReason::kNone);
    offset += 10;
  }
  end.Out();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
  EXPECT_EQ(Status().messages, 0u);
  EXPECT_EQ(end.carrier.users, 0) << "nothing needs the channel";
  EXPECT_TRUE((end.DeliverPart(1, data, offset, 10) == metrics::DropReason::k_rnr_wait));
}

// Requests that wait for each other would each have its own time.
TEST_F(OrderedEndpointStates, Draining_HasAnEnd_HoweverManyRequestsWait) {
  for (int i = 0; i < 8; ++i) end.Post(kSend, kLocal, 100);
  ASSERT_EQ(Move(EndpointState::kDraining, true), 0);
  const TimePoint begin = end.now();
  while (end.now() - begin < transport::EndpointTarget::kLongestDrain) {
    end.Out();
    end.Advance(Milliseconds(500));
  }
  end.Out();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
  EXPECT_EQ(Status().requests, 0u);
}

// Without a wish for the event, the program may go on for as long as it likes.
TEST_F(EndpointStates, Draining_LeavesRequestsAlone_IfNobodyWaits) {
  ASSERT_EQ(Move(EndpointState::kDraining), 0);
  end.Advance(transport::EndpointTarget::kLongestDrain - Milliseconds(1));
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 1u);
  end.Advance(Milliseconds(1));
  end.DeliverReply(0, wire::kSyndromeAck);
  EXPECT_EQ(end.Ended(), "100:0");
}

TEST_F(EndpointStates, Draining_HasAnEnd_AlsoAfterAHandOver) {
  end.DeliverPart(1, ScriptedPeer::Bytes(500), 0, 10);
  EXPECT_EQ(end.Deliver(end.Read(2, 0x100, 100)), metrics::DropReason::kNone);
  ASSERT_EQ(Move(EndpointState::kDraining, true), 0);
  end.Out();
  end.host().HandOver();
  end.Out();
  EXPECT_EQ(events(), Events{});
  end.Advance(transport::EndpointTarget::kLongestDrain);
  end.Out();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
}

// A refused message has not begun. Its refusal waits for a window that the peer need not open.
TEST_F(EndpointStates, Draining_DoesNotWaitForRefusals) {
  ASSERT_EQ(Move(EndpointState::kDraining, true), 0);
  end.carrier.open = false;
  EXPECT_EQ(end.DeliverWhole(1, ScriptedPeer::Bytes(100)), metrics::DropReason::k_rnr_wait);
  ExpectNothingSent();
  EXPECT_EQ(events(), Events{AsyncEvent::kSqDrained});
}

class EndpointExceptions : public EndpointStates {
 protected:
  EndpointExceptions() : EndpointStates({.suspends_on_failure = true}) {}
};

TEST_F(EndpointExceptions, AFailedRequest_SuspendsTheEndpoint_UntilItsProgramDecides) {
  end.Post(kSend, kLocal, 100);
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 2u);
  end.Post(kSend, kLocal, 100);
  end.DeliverReply(0, wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  ExpectNothingSent();
  EXPECT_EQ(State(), EndpointState::kException);
  EXPECT_EQ(Status().failures, 1u);
  EXPECT_EQ(events(), Events{AsyncEvent::kQpRequestError});
  EXPECT_EQ(end.host().rings().status().state, static_cast<uint32_t>(verbs::QpState::kSqd));
  EXPECT_EQ(end.Ended(), Failed(100, WcStatus::kRemoteAccess));
  end.DeliverReply(1, wire::kSyndromeAck);
  ExpectNothingSent();
  EXPECT_EQ(events(), (Events{AsyncEvent::kQpRequestError, AsyncEvent::kSqDrained}));
  EXPECT_EQ(end.Ended(), "101:0") << "what was under way ends";
  ASSERT_EQ(Move(EndpointState::kReady), 0);
  EXPECT_EQ(State(), EndpointState::kReady);
  EXPECT_EQ(end.Out().size(), 1u);
  end.DeliverReply(2, wire::kSyndromeAck);
  EXPECT_EQ(end.Ended(), "102:0");
  EXPECT_EQ(Status().failures, 1u);
}

TEST_F(EndpointExceptions, ToError_FlushesTheRest) {
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 1u);
  end.Post(kSend, kLocal, 100);
  end.DeliverReply(0, wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  ExpectNothingSent();
  end.Poll();
  ASSERT_EQ(Move(EndpointState::kError), 0);
  ExpectNothingSent();
  EXPECT_EQ(State(), EndpointState::kError);
  EXPECT_EQ(end.Ended(), Failed(101, WcStatus::kFlush));
  EXPECT_EQ(Status().failures, 1u) << "flushed requests do not count";
  EXPECT_EQ(Move(EndpointState::kReady), EINVAL);
}

TEST_F(EndpointExceptions, FailuresWhileInException_RaiseNoFurtherEvent) {
  end.Post(kSend, kLocal, 100);
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 2u);
  for (const uint32_t message : {0u, 1u})
    end.DeliverReply(message, wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  ExpectNothingSent();
  EXPECT_EQ(events(), (Events{AsyncEvent::kQpRequestError, AsyncEvent::kSqDrained}));
  EXPECT_EQ(Status().failures, 2u);
  EXPECT_EQ(end.host().counters().endpoint_exception_events.Read(), 1u);
}

TEST_F(EndpointExceptions, LocalMemoryThatIsGone_IsAFailureToo) {
  end.Post(kSend, kLocal, 100);
  end.host().Poison(kLocal, 100);
  end.Out();
  EXPECT_EQ(State(), EndpointState::kException);
  EXPECT_EQ(end.Ended(), Failed(100, WcStatus::kLocalProtection));
}

// Requests behind the first bad one are not begun, and so do not fail.
TEST_F(EndpointExceptions, ABadRequest_EndsAlone) {
  end.to = 99;  // no such peer
  end.Post(kSend, kLocal, 100);
  end.Post(kSend, kLocal, 100);
  ExpectNothingSent();
  EXPECT_EQ(end.Ended(), Failed(100, WcStatus::kLocalQpOperation));
  ASSERT_EQ(Move(EndpointState::kReady), 0);
  ExpectNothingSent();
  EXPECT_EQ(end.Ended(), Failed(101, WcStatus::kLocalQpOperation));
  EXPECT_EQ(State(), EndpointState::kException);
}

TEST_F(EndpointExceptions, IsHandedOver) {
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 1u);
  end.DeliverReply(0, wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  end.host().HandOver();
  ExpectNothingSent();
  EXPECT_EQ(State(), EndpointState::kException);
  EXPECT_EQ(Status().failures, 1u);
  EXPECT_EQ(events(), (Events{AsyncEvent::kQpRequestError, AsyncEvent::kSqDrained}))
      << "the event was due";
  end.host().HandOver();
  ExpectNothingSent();
  EXPECT_EQ(events().size(), 2u);
}

TEST_F(EndpointStates, WithoutTheWish_AFailedRequestChangesNothing) {
  end.Post(kSend, kLocal, 100);
  EXPECT_EQ(end.Out().size(), 1u);
  end.DeliverReply(0, wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  ExpectNothingSent();
  EXPECT_EQ(State(), EndpointState::kReady);
  EXPECT_EQ(Status().failures, 1u);
  EXPECT_EQ(events(), Events{});
}

TEST_F(EndpointStates, WhatNoProgramCanAskFor_IsRefused) {
  EXPECT_EQ(Move(EndpointState::kReset), EINVAL);
  EXPECT_EQ(Move(EndpointState::kException), EINVAL);
  EXPECT_EQ(State(), EndpointState::kReady);
  ASSERT_EQ(end.host().ToState(verbs::QpState::kReset), 0);
  EXPECT_EQ(State(), EndpointState::kReset);
  EXPECT_EQ(Move(EndpointState::kReady), EINVAL);
}

}  // namespace
}  // namespace rocegw::testing::endpoint_states
