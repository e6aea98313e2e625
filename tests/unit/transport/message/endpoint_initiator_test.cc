// SPDX-License-Identifier: Apache-2.0
// READs and atomics that an endpoint requests from peers, one event at a time.
#include "gateway/transport/endpoint/endpoint_initiator.h"

#include <gtest/gtest.h>

#include "tests/support/qp/endpoint_host.h"

namespace rocegw::testing::endpoint_initiator {
namespace {

using metrics::DropReason;
using verbs::WcStatus;
using wire::FrameKind;

constexpr uint8_t kRead = ROCEGW_WR_RDMA_READ;
constexpr uint8_t kAdd = ROCEGW_WR_ATOMIC_FETCH_AND_ADD;
constexpr uint8_t kSwap = ROCEGW_WR_ATOMIC_CMP_AND_SWP;
constexpr uint8_t kSend = ROCEGW_WR_SEND;
constexpr uint64_t kLocal = 0x4000;

std::string Ends(uint64_t id, WcStatus status) {
  return std::to_string(id) + ":" + std::to_string(static_cast<int>(status));
}

std::vector<uint8_t> At(EndpointHost& end, uint64_t offset, size_t length) {
  const auto begin = end.host().memory().begin() + static_cast<ptrdiff_t>(offset);
  return {begin, begin + static_cast<ptrdiff_t>(length)};
}

TEST(EndpointInitiatorReads, Read_AsksInOneFrame_ByTheKeyOfItsPeer) {
  EndpointHost end;
  end.Post(kRead, kLocal, 5000);
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 1u);
  const wire::ChannelFrame& frame = out[0].frame;
  EXPECT_EQ(frame.kind, FrameKind::kReadRequest);
  EXPECT_EQ(frame.flags, wire::kFrameLast | wire::kFrameEndpoint | wire::kFrameRelaxed);
  EXPECT_EQ(frame.destination, Qpn{EndpointHost::kPeerQpn});
  EXPECT_EQ(frame.receive, EndpointHost::kPeerKey);
  EXPECT_EQ(frame.length, 5000u);
  EXPECT_EQ(frame.address, 0x7000u);
  EXPECT_EQ(frame.rkey, 0x1234u);
  EXPECT_TRUE(out[0].payload.empty());
  EXPECT_EQ(end.Ended(), "");
}

TEST(EndpointInitiatorReads, Read_PartsInAnyOrder_CompleteWhenAllAreInPlace) {
  EndpointHost end;
  const auto data = ScriptedPeer::Bytes(600);
  end.Post(kRead, kLocal, 600);
  end.Out();
  EXPECT_EQ(end.DeliverData(0, data, 400, 200), DropReason::kNone);
  end.Out();
  EXPECT_EQ(end.Ended(), "");
  EXPECT_EQ(end.DeliverData(0, data, 0, 400), DropReason::kNone);
  EXPECT_EQ(end.Ended(), "") << "not before the last bytes are in place";
  end.Out();
  EXPECT_EQ(end.Ended(), "100:0");
  EXPECT_EQ(At(end, kLocal, 600), data);
  EXPECT_EQ(end.DeliverData(0, data, 0, 400), DropReason::k_stale_response);
  EXPECT_EQ(end.carrier.users, 0);
}

TEST(EndpointInitiatorReads, Atomics_CarryTheirOperands_AndPlaceTheResult) {
  EndpointHost end;
  end.Post(kAdd, kLocal, 8, 0, 5);
  end.Post(kSwap, kLocal + 8, 8, 0, 6, 7);
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].frame.kind, FrameKind::kFetchAdd);
  EXPECT_EQ(out[0].frame.swap_or_add, 5u);
  EXPECT_EQ(out[0].frame.length, 0u);
  EXPECT_EQ(out[1].frame.kind, FrameKind::kCompareSwap);
  EXPECT_EQ(out[1].frame.compare, 6u);
  EXPECT_EQ(out[1].frame.swap_or_add, 7u);
  EXPECT_EQ(end.DeliverResult(1, 0x1122334455667788), DropReason::kNone);
  EXPECT_EQ(end.DeliverResult(0, 99), DropReason::kNone);
  end.Out();
  EXPECT_EQ(end.Ended(), "100:0 101:0");
  EXPECT_EQ(At(end, kLocal, 1)[0], 99);
  EXPECT_EQ(At(end, kLocal + 8, 1)[0], 0x88);
  EXPECT_EQ(end.DeliverResult(1, 1), DropReason::k_stale_response);
}

TEST(EndpointUnacknowledged, Send_CompletesWhenItHasLeft_AndIsNotSentAgain) {
  EndpointHost end;
  end.Post(kSend, kLocal, 64, ROCEGW_WQE_UNACKNOWLEDGED);
  end.Post(ROCEGW_WR_RDMA_WRITE, kLocal, 64, ROCEGW_WQE_UNACKNOWLEDGED);
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 2u);
  for (const SentFrame& sent : out) {
    EXPECT_EQ(sent.frame.flags,
              wire::kFrameLast | wire::kFrameEndpoint | wire::kFrameRelaxed | wire::kFrameNoReply);
    EXPECT_EQ(wire::ValidateFrame(sent.frame, 64), DropReason::kNone);
  }
  EXPECT_EQ(end.Ended(), "100:0 101:0");
  EXPECT_EQ(end.Lose(0), flow::Resend::kVoid);
  EXPECT_EQ(end.carrier.users, 0);
  // An older peer replies all the same.
  EXPECT_EQ(end.DeliverReply(0, wire::kSyndromeAck), DropReason::k_stale_response);
}

TEST(EndpointUnacknowledged, WhatNeedsAnAnswer_OrMoreThanAFrame_FailsHere) {
  EndpointHost end;
  end.carrier.most = 256;
  end.Post(kRead, kLocal, 64, ROCEGW_WQE_UNACKNOWLEDGED);
  end.Post(kAdd, kLocal, 8, ROCEGW_WQE_UNACKNOWLEDGED, 1);
  end.Post(kSend, kLocal, 257, ROCEGW_WQE_UNACKNOWLEDGED);
  end.Post(kSend, kLocal, 256, ROCEGW_WQE_UNACKNOWLEDGED);
  EXPECT_EQ(end.Out().size(), 1u);
  EXPECT_EQ(end.Ended(), Ends(100, WcStatus::kLocalQpOperation) + " " +
                             Ends(101, WcStatus::kLocalQpOperation) + " " +
                             Ends(102, WcStatus::kLocalLength) + " 103:0");
}

TEST(EndpointInitiatorReads, ALostRequest_LeavesAgain_AndNotOnceItIsAnswered) {
  EndpointHost end;
  end.Post(kAdd, kLocal, 8, 0, 5);
  end.Out();
  EXPECT_EQ(end.Lose(0), flow::Resend::kDone);
  const std::vector<SentFrame> again = end.Out();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].frame.swap_or_add, 5u);
  EXPECT_EQ(again[0].psn, Psn(0));
  end.DeliverResult(0, 1);
  EXPECT_EQ(end.Lose(0), flow::Resend::kVoid);
}

TEST(EndpointInitiatorReads, Refused_IsOfferedAgainLater_AsANewAttempt) {
  EndpointHost end;
  end.Post(kAdd, kLocal, 8, 0, 5);
  end.Out();
  EXPECT_EQ(end.DeliverReply(0, wire::kSyndromeRnr | 12, 1), DropReason::kNone);
  EXPECT_TRUE(end.Out().empty());
  end.Advance(Milliseconds(1));
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].frame.attempt, 1);
  end.DeliverResult(0, 1);
  end.Out();
  EXPECT_EQ(end.Ended(), "100:0");
}

TEST(EndpointInitiatorReads, AnswersThatCannotBe_FailThatRequestOnly) {
  EndpointHost end;
  const auto data = ScriptedPeer::Bytes(64);
  end.Post(kRead, kLocal, 64);
  end.Post(kAdd, kLocal, 8, 0, 5);
  end.Post(kSend, kLocal, 8);
  end.Post(kRead, kLocal, 64);
  end.Out();
  EXPECT_EQ(end.DeliverResult(0, 1), DropReason::k_malformed_response);
  EXPECT_EQ(end.DeliverData(1, data, 0, 64), DropReason::k_malformed_response);
  EXPECT_EQ(end.DeliverResult(2, 1), DropReason::k_malformed_response);
  // An acknowledgement does not answer a READ.
  EXPECT_EQ(end.DeliverReply(3, wire::kSyndromeAck), DropReason::k_malformed_response);
  wire::ChannelFrame other = end.Answer(FrameKind::kAtomicResult, 3);
  other.flags = wire::kFrameLast;
  other.source = Qpn{0x99};
  EXPECT_EQ(end.Deliver(other), DropReason::k_stale_response) << "not whom it was asked of";
  end.DeliverData(3, data, 0, 64);
  end.Out();
  EXPECT_EQ(end.Ended(),
            Ends(100, WcStatus::kBadResponse) + " " + Ends(101, WcStatus::kBadResponse) + " " +
                Ends(102, WcStatus::kBadResponse) + " " + Ends(103, WcStatus::kSuccess));
  EXPECT_EQ(end.host().context().state(), verbs::QpState::kRts);
}

TEST(EndpointInitiatorReads, Nak_FailsThatRequest) {
  EndpointHost end;
  end.Post(kRead, kLocal, 64);
  end.Post(kAdd, kLocal, 8, 0, 5);
  end.Out();
  end.DeliverReply(0, wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  end.DeliverReply(1, wire::SyndromeOf(wire::NakCode::kInvalidRequest));
  EXPECT_EQ(end.Ended(),
            Ends(100, WcStatus::kRemoteAccess) + " " + Ends(101, WcStatus::kRemoteInvalidRequest));
}

TEST(EndpointInitiatorReads, APeerWithoutThem_IsNotAsked) {
  EndpointHost end;
  end.peers[EndpointHost::kPeer].target.features = wire::kOptionEndpoints;
  end.Post(kRead, kLocal, 64);
  end.Post(kAdd, kLocal, 8, 0, 5);
  EXPECT_TRUE(end.Out().empty());
  EXPECT_EQ(end.Ended(),
            Ends(100, WcStatus::kLocalQpOperation) + " " + Ends(101, WcStatus::kLocalQpOperation));
}

TEST(EndpointInitiatorReads, ItsBuffer_MayNotBeThere_BeforeOrMeanwhile) {
  EndpointHost end;
  const auto data = ScriptedPeer::Bytes(64);
  end.Post(kRead, 0x1000000, 64);  // no memory there
  EXPECT_TRUE(end.Out().empty());
  EXPECT_EQ(end.Ended(), Ends(100, WcStatus::kLocalProtection));
  end.host().Poison(kLocal, 64);
  end.Post(kRead, kLocal, 64);
  end.Post(kRead, kLocal + 4096, 64);
  end.Out();
  end.DeliverData(1, data, 0, 64);
  end.DeliverData(2, data, 0, 64);
  end.Out();
  EXPECT_EQ(end.Ended(), Ends(101, WcStatus::kLocalProtection) + " 102:0");
}

TEST(EndpointInitiatorReads, Fence_WaitsUntilTheyAreInPlace_AlsoThoseThatHaveNotBegun) {
  EndpointHost end({.service_mode = verbs::ServiceMode::kByInitiator});
  const auto data = ScriptedPeer::Bytes(64);
  end.Post(kSend, kLocal, 8);
  end.Post(kRead, kLocal, 64);  // waits for the first, because of strong order
  end.Post(kSend, kLocal, 64, ROCEGW_WQE_FENCE | ROCEGW_WQE_ORDER_NONE);
  EXPECT_EQ(end.Out().size(), 1u);
  end.DeliverReply(0, wire::kSyndromeAck);
  const std::vector<SentFrame> read = end.Out();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].frame.kind, FrameKind::kReadRequest);
  end.DeliverData(1, data, 0, 64);
  EXPECT_TRUE(end.OutWithoutMemory().empty()) << "it is answered and not in place";
  const std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].payload, data);
}

TEST(EndpointInitiatorReads, SoManyAtOnce_AndNoMore_OthersPassThem) {
  constexpr uint32_t kMost = transport::EndpointInitiator::kMostReading;
  EndpointHost end({.sq_entries = 256, .any_completion_order = true});
  for (uint32_t i = 0; i < kMost + 2; ++i) end.Post(kAdd, kLocal, 8, 0, 1);
  end.Post(kSend, kLocal, 8);
  std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), kMost + 1);
  EXPECT_EQ(out.back().frame.kind, FrameKind::kSend);
  end.DeliverResult(7, 0);
  out = end.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].frame.message, kMost);
}

TEST(EndpointInitiatorReads, SoManyBytesAtOnce_ALongerOneGoesAlone) {
  constexpr uint32_t kBytes = 1 << 19;  // the memory of the test is twice as large
  constexpr uint64_t kFit = transport::EndpointInitiator::kMostAsked / kBytes;
  EndpointHost end({.sq_entries = 64});
  for (uint64_t i = 0; i < kFit + 3; ++i) end.Post(kRead, 0, kBytes);
  EXPECT_EQ(end.Out().size(), kFit);
}

TEST(EndpointInitiatorReads, EachPartOfAnAnswerGivesItTime) {
  EndpointHost end({.give_up_ms = 50});
  const auto data = ScriptedPeer::Bytes(300);
  end.Post(kRead, kLocal, 300);
  end.Out();
  for (uint32_t part = 0; part < 2; ++part) {
    end.Advance(Milliseconds(40));
    end.DeliverData(0, data, part * 100, 100);
    end.Out();
  }
  EXPECT_EQ(end.Ended(), "");
  end.Advance(Milliseconds(60));
  EXPECT_EQ(end.Ended(), Ends(100, WcStatus::kRetryExceeded));
  EXPECT_EQ(end.DeliverData(0, data, 200, 100), DropReason::k_stale_response);
}

TEST(EndpointInitiatorReads, TheChannelEnds_TheyFail) {
  EndpointHost end;
  end.Post(kRead, kLocal, 300);
  end.Post(kAdd, kLocal, 8, 0, 1);
  end.Out();
  end.host().qp().OnCarrierLost(end.host(), end.carrier, true, wire::ChannelReason::kPathFailed,
                                end.now());
  EXPECT_EQ(end.Ended(),
            Ends(100, WcStatus::kRetryExceeded) + " " + Ends(101, WcStatus::kRetryExceeded));
  EXPECT_EQ(end.carrier.users, 0);
}

}  // namespace
}  // namespace rocegw::testing::endpoint_initiator
