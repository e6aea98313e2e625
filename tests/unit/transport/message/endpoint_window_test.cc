// SPDX-License-Identifier: Apache-2.0
// Endpoint of a pool with a window: limits its payload in flight to each peer gateway.
#include <gtest/gtest.h>

#include "tests/support/qp/endpoint_host.h"

namespace rocegw::testing::endpoint_window {
namespace {

using wire::FrameKind;

constexpr uint8_t kWrite = ROCEGW_WR_RDMA_WRITE;
constexpr uint8_t kSend = ROCEGW_WR_SEND;
constexpr uint8_t kRead = ROCEGW_WR_RDMA_READ;
constexpr uint64_t kLocal = 0x4000;
constexpr uint32_t kFrame = 256;  // payload of one frame
constexpr uint32_t kOther = 6;    // peer behind another gateway
const wire::Gid kElsewhere = wire::Gid::FromV4(0xC0000242);

class EndpointWindow : public ::testing::Test {
 protected:
  explicit EndpointWindow(uint32_t window = 2 * kFrame)
      : end({.any_completion_order = true, .window_bytes = window}) {
    end.carrier.most = other.most = kFrame;
  }
  // Returns true if a frame had waited for the window that the arrival frees.
  bool Arrive(const ScriptedCarrier& by, size_t psn) {
    return end.host().qp().OnArrived(by, by.refs.at(psn));
  }
  void Lose(const ScriptedCarrier& by) {
    end.host().qp().OnCarrierLost(end.host(), by, true, wire::ChannelReason::kPathFailed,
                                  end.now());
  }

  ScriptedCarrier other;
  EndpointHost end;
};

// The channel has window for all of it, but the rest of that is for other pools.
TEST_F(EndpointWindow, BoundsWhatIsUnderWay) {
  end.Post(kWrite, kLocal, 4 * kFrame);
  end.Post(kWrite, kLocal, kFrame);
  const std::vector<SentFrame> first = end.Out();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_TRUE(first[1].frame.has(wire::kFrameAckNow)) << "what comes next waits for it";
  EXPECT_TRUE(end.carrier.tells);
  EXPECT_TRUE(end.Out().empty());
  EXPECT_TRUE(Arrive(end.carrier, 1)) << "in whichever order they arrive";
  const std::vector<SentFrame> next = end.Out();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].frame.offset, 2 * kFrame);
  EXPECT_TRUE(Arrive(end.carrier, 0));
  EXPECT_EQ(end.Out().size(), 1u);
  EXPECT_TRUE(Arrive(end.carrier, 2));
  EXPECT_EQ(end.Out().size(), 1u) << "of the second";
  EXPECT_FALSE(Arrive(end.carrier, 3)) << "nothing waits";
  end.DeliverReply(0, wire::kSyndromeAck);
  end.DeliverReply(1, wire::kSyndromeAck);
  EXPECT_EQ(end.Ended(), "100:0 101:0");
  EXPECT_EQ(end.carrier.users, 1) << "its last frame has not been told";
  Arrive(end.carrier, 4);
  EXPECT_EQ(end.carrier.users, 0);
}

// A reply may arrive before the channel's acknowledgement of the message's frames.
TEST_F(EndpointWindow, UntilAFrameHasArrived_ItCounts) {
  end.Post(kWrite, kLocal, 2 * kFrame);
  EXPECT_EQ(end.Out().size(), 2u);
  end.DeliverReply(0, wire::kSyndromeAck);
  end.Post(kWrite, kLocal, 2 * kFrame);
  EXPECT_TRUE(end.Out().empty());
  EXPECT_TRUE(Arrive(end.carrier, 0));
  EXPECT_EQ(end.Out().size(), 1u);
}

TEST_F(EndpointWindow, EachGatewayHasItsOwn_OneThatDoesNotGetOnHoldsUpNoOther) {
  end.AddPeer(kOther, other, kElsewhere);
  end.Post(kWrite, kLocal, 4 * kFrame);
  end.to = kOther;
  end.Post(kWrite, kLocal, 4 * kFrame);
  EXPECT_EQ(end.Out().size(), 4u);
  EXPECT_EQ(end.carrier.refs.size(), 2u);
  EXPECT_EQ(other.refs.size(), 2u);
  EXPECT_TRUE(Arrive(other, 0));
  EXPECT_EQ(end.Out().size(), 1u);
  EXPECT_EQ(other.refs.size(), 3u);
}

TEST_F(EndpointWindow, AllPathsToAGatewayShareOne) {
  end.host().reach = {&end.carrier, &other};
  end.Post(kWrite, kLocal, kFrame);
  end.Post(kWrite, kLocal, 2 * kFrame);
  EXPECT_EQ(end.Out().size(), 2u);
  ASSERT_EQ(end.carrier.refs.size(), 1u);
  ASSERT_EQ(other.refs.size(), 1u);
  EXPECT_TRUE(Arrive(end.carrier, 0)) << "there, what waits for room goes by the other";
  EXPECT_EQ(end.Out().size(), 1u);
  EXPECT_EQ(other.refs.size(), 2u);
}

// However the window is divided among paths, a waiting frame never depends on a delayed
// acknowledgement.
TEST_F(EndpointWindow, WithManyPaths_AtMostAQuarterIsNotAskedFor) {
  constexpr size_t kPaths = 8;
  std::vector<ScriptedCarrier> carriers(kPaths);
  EndpointHost wide({.any_completion_order = true, .window_bytes = kPaths * kFrame});
  wide.host().reach.clear();
  for (ScriptedCarrier& carrier : carriers) {
    carrier.most = kFrame;
    wide.host().reach.push_back(&carrier);
  }
  for (size_t i = 0; i < kPaths; ++i) wide.Post(kWrite, kLocal, kFrame);
  wide.Post(kWrite, kLocal, kFrame);
  uint32_t unasked = 0;
  const std::vector<SentFrame> out = wide.Out();
  ASSERT_EQ(out.size(), kPaths);
  for (const SentFrame& sent : out) unasked += sent.frame.has(wire::kFrameAckNow) ? 0 : kFrame;
  EXPECT_LT(unasked, kPaths * kFrame / 4);
}

TEST_F(EndpointWindow, AChannelThatIsLost_GivesItsRoomBack) {
  end.host().reach = {&end.carrier, &other};
  end.Post(kWrite, kLocal, kFrame);
  end.Post(kWrite, kLocal, 3 * kFrame);
  EXPECT_EQ(end.Out().size(), 2u);
  Lose(end.carrier);
  EXPECT_EQ(end.carrier.users, 0);
  EXPECT_EQ(end.Out().size(), 1u);
  EXPECT_EQ(other.refs.size(), 2u);
  EXPECT_FALSE(Arrive(end.carrier, 0));
}

TEST_F(EndpointWindow, Reset_BeginsAnew) {
  end.Post(kWrite, kLocal, 4 * kFrame);
  EXPECT_EQ(end.Out().size(), 2u);
  end.Restart();
  EXPECT_EQ(end.carrier.users, 0);
  end.Post(kWrite, kLocal, 4 * kFrame);
  EXPECT_EQ(end.Out().size(), 2u);
  EXPECT_FALSE(Arrive(end.carrier, 0)) << "of before";
  EXPECT_TRUE(end.Out().empty());
  EXPECT_TRUE(Arrive(end.carrier, 2));
  EXPECT_EQ(end.Out().size(), 1u);
}

TEST_F(EndpointWindow, AnswersOfReads_KeepToIt) {
  end.Deliver(end.Read(9, kLocal, 4 * kFrame));
  end.Deliver(end.Read(10, kLocal, kFrame));
  const std::vector<SentFrame> first = end.Out();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_TRUE(first[1].frame.has(wire::kFrameAckNow));
  EXPECT_TRUE(Arrive(end.carrier, 0));
  EXPECT_EQ(end.Out().size(), 1u);
}

// READ requests, refusals and acknowledgements have no payload.
TEST_F(EndpointWindow, WhatBearsNoPayload_Passes_AndMakesNoRoom) {
  end.Post(kWrite, kLocal, 4 * kFrame);
  EXPECT_EQ(end.Out().size(), 2u);
  end.Post(kRead, kLocal, kFrame);
  std::vector<SentFrame> out = end.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].frame.kind, FrameKind::kReadRequest);
  wire::ChannelFrame wrong = end.Read(7, kLocal, 64);
  wrong.rkey = 7;
  end.Deliver(wrong);
  out = end.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].frame.kind, FrameKind::kReply);
  // The reference of a group's reply has a length that is not a payload length.
  flow::FrameRef reply = end.carrier.refs.back();
  reply.length = 1;
  EXPECT_FALSE(end.host().qp().OnArrived(end.carrier, reply));
  EXPECT_TRUE(end.Out().empty());
}

TEST_F(EndpointWindow, AnswersAndRequests_TakeTurns) {
  end.Deliver(end.Read(9, kLocal, 16 * kFrame));
  end.Post(kWrite, kLocal, 16 * kFrame);
  EXPECT_EQ(end.Out().size(), 2u);
  size_t requests = 0;
  for (size_t psn = 0; psn < 8; ++psn) {
    EXPECT_TRUE(Arrive(end.carrier, psn));
    const std::vector<SentFrame> out = end.Out();
    ASSERT_EQ(out.size(), 1u);
    requests += out[0].frame.kind == FrameKind::kWrite ? 1 : 0;
  }
  EXPECT_EQ(requests, 4u);
}

// A peer without receives refuses the first message for ever.
TEST_F(EndpointWindow, WhatIsOfferedAgainAndAgain_LeavesOthersTheirTurn) {
  end.Post(kSend, kLocal, 2 * kFrame);
  end.Post(kSend, kLocal, 2 * kFrame);
  end.Post(kWrite, kLocal, 2 * kFrame);
  std::vector<uint32_t> left;
  uint8_t attempts[3] = {};
  for (int turn = 0; turn < 6; ++turn) {
    const std::vector<SentFrame> out = end.Out();
    ASSERT_EQ(out.size(), 2u);
    const uint32_t message = out[0].frame.message;
    EXPECT_EQ(out[1].frame.message, message);
    left.push_back(message);
    ASSERT_LE(message, 2u);
    end.DeliverReply(message, wire::kSyndromeRnr | 1, ++attempts[message]);
    end.Advance(Milliseconds(1));
    Arrive(end.carrier, end.carrier.refs.size() - 2);
    Arrive(end.carrier, end.carrier.refs.size() - 1);
  }
  EXPECT_EQ(left, (std::vector<uint32_t>{0, 1, 2, 0, 1, 2}));
}

class EndpointWindowBelowAFrame : public EndpointWindow {
 protected:
  EndpointWindowBelowAFrame() : EndpointWindow(100) {}
};

TEST_F(EndpointWindowBelowAFrame, LetsOneGoAtATime) {
  end.Post(kWrite, kLocal, 3 * kFrame);
  for (size_t sent = 1; sent <= 3; ++sent) {
    EXPECT_EQ(end.Out().size(), 1u);
    EXPECT_EQ(Arrive(end.carrier, sent - 1), sent != 3);
  }
}

TEST(EndpointWithoutAWindow, TheChannelAloneDecides) {
  EndpointHost end;
  end.carrier.most = kFrame;
  end.Post(kWrite, kLocal, 16 * kFrame);
  const std::vector<SentFrame> out = end.Out();
  EXPECT_EQ(out.size(), 16u);
  for (const SentFrame& sent : out) EXPECT_FALSE(sent.frame.has(wire::kFrameAckNow));
  EXPECT_FALSE(end.carrier.tells);
}

}  // namespace
}  // namespace rocegw::testing::endpoint_window
