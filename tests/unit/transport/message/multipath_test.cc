// SPDX-License-Identifier: Apache-2.0
// Multipath queue pairs: which requests use several channels, where a lost frame is rebuilt, and
// the loss of a channel.
#include <gtest/gtest.h>

#include "tests/support/qp/frame_peer.h"

namespace rocegw::testing::multipath {
namespace {

using metrics::DropReason;
using transport::Multipath;
using verbs::QpState;
using wire::FrameKind;

constexpr uint64_t kSource = 0x1000;
constexpr uint64_t kTarget = 0x7000;
constexpr uint8_t kAck = wire::kSyndromeAck;
constexpr uint16_t kOtherEpoch = 0x8888;

// Queue pair with one channel beside its own, after the peer has answered once.
class TwoPaths {
 public:
  explicit TwoPaths(verbs::ServiceMode mode) : peer(Options(mode)) {
    other.to = peer.carrier.to;
    other.to.epoch = kOtherEpoch;
    peer.host().context().peer_relaxes = true;
    peer.host().beside = {&other};
    peer.base().PostWrite(kSource, 4, kTarget);
    EXPECT_EQ(peer.Out().size(), 1u);
    EXPECT_EQ(other.users, 0) << "until its own is known to work";
    peer.Reply(0, kAck);
    peer.Out();
    EXPECT_EQ(peer.base().Poll().size(), 1u);
  }
  FramePeer peer;
  ScriptedCarrier other;

 private:
  static FramePeer::Options Options(verbs::ServiceMode mode) {
    FramePeer::Options options;
    options.host.service_mode = mode;
    return options;
  }
};

TEST(Multipath, WithoutOrder_TurnByTurn) {
  TwoPaths paths(verbs::ServiceMode::kUnordered);
  paths.peer.base().PostWrite(kSource, 60000, kTarget);
  EXPECT_EQ(paths.peer.Out().size(), 235u);
  EXPECT_EQ(paths.other.users, 1);
  EXPECT_GT(paths.other.refs.size(), 90u);
  EXPECT_GT(paths.peer.carrier.refs.size(), 90u);
}

TEST(Multipath, Numbers_AreThoseBesideItsOwn) {
  TwoPaths paths(verbs::ServiceMode::kUnordered);
  paths.peer.base().PostWrite(kSource, 60000, kTarget);
  paths.peer.Out();
  ASSERT_NE(paths.peer.host().context().multipath, nullptr);
  EXPECT_EQ(paths.peer.host().context().multipath->Numbers(),
            std::vector<Qpn>{paths.other.number()});
}

TEST(Multipath, NoRoomOnOne_TakesTheOther_NoneOnBoth_StandsInBothLines) {
  TwoPaths paths(verbs::ServiceMode::kUnordered);
  paths.peer.carrier.open = false;
  paths.peer.base().PostWrite(kSource, 20000, kTarget);
  EXPECT_EQ(paths.peer.Out().size(), 79u);
  EXPECT_EQ(paths.other.refs.size(), 79u);
  paths.other.open = false;
  paths.peer.base().PostWrite(kSource, 200, kTarget);
  EXPECT_TRUE(paths.peer.Out().empty());
  const auto waits = [&](const flow::Carrier& by) {
    return paths.peer.host().context().WaitEntryAt(by).waiting;
  };
  EXPECT_TRUE(waits(paths.peer.carrier));
  EXPECT_TRUE(waits(paths.other));
  paths.other.open = true;
  paths.peer.host().qp().OnTurn(paths.other);
  EXPECT_TRUE(waits(paths.peer.carrier));
  EXPECT_FALSE(waits(paths.other));
  EXPECT_EQ(paths.peer.Out().size(), 1u);
}

TEST(Multipath, WithOrder_KeepsToItsOwn_AndSoDoItsOrderedRequests) {
  TwoPaths strong(verbs::ServiceMode::kByTarget);
  strong.peer.base().PostWrite(kSource, 60000, kTarget);
  strong.peer.Out();
  EXPECT_TRUE(strong.other.refs.empty());
  EXPECT_EQ(strong.other.users, 0);
  strong.peer.base().PostWrite(kSource, 60000, kTarget,
                               ROCEGW_WQE_SIGNALED | ROCEGW_WQE_ORDER_NONE);
  strong.peer.Out();
  EXPECT_FALSE(strong.other.refs.empty());
  const size_t until = strong.other.refs.size();
  strong.peer.base().PostWrite(kSource, 60000, kTarget);
  strong.peer.Out();
  EXPECT_EQ(strong.other.refs.size(), until);
}

TEST(Multipath, LostFrame_IsBuiltAgainForItsOwnWay) {
  TwoPaths paths(verbs::ServiceMode::kUnordered);
  paths.peer.carrier.open = false;
  paths.peer.base().PostWrite(kSource, 200, kTarget);
  ASSERT_EQ(paths.peer.Out().size(), 1u);
  auto& host = paths.peer.host();
  EXPECT_EQ(host.qp().Again(host, paths.other, paths.other.refs.at(0), Psn(0)),
            flow::Resend::kDone);
  EXPECT_EQ(paths.peer.OutOne().frame.epoch, kOtherEpoch);
}

TEST(Multipath, AWayThatNeverOpened_IsForgotten_OneThatDid_EndsTheQueuePair) {
  TwoPaths paths(verbs::ServiceMode::kUnordered);
  auto& host = paths.peer.host();
  paths.peer.base().PostWrite(kSource, 200, kTarget);
  paths.peer.Out();
  ASSERT_EQ(paths.other.users, 1);
  host.qp().OnCarrierLost(host, paths.other, false, wire::ChannelReason::kNoResources,
                          paths.peer.base().now());
  EXPECT_EQ(paths.other.users, 0);
  EXPECT_EQ(paths.peer.state(), QpState::kRts);

  TwoPaths opened(verbs::ServiceMode::kUnordered);
  opened.peer.base().PostWrite(kSource, 60000, kTarget);
  opened.peer.Out();
  opened.peer.host().qp().OnCarrierLost(opened.peer.host(), opened.other, true,
                                        wire::ChannelReason::kPathFailed, opened.peer.base().now());
  EXPECT_EQ(opened.peer.state(), QpState::kError);
  EXPECT_EQ(opened.other.users, 0);
}

// The peer uses multipath: frames of a message arrive by both channels, and the reply leaves by the
// channel of the last frame.
TEST(Multipath, FramesByTwoWays_AreOneMessage_AndAreAnsweredOnce) {
  FramePeer peer;
  ScriptedCarrier other;
  other.to = peer.carrier.to;
  other.to.epoch = kOtherEpoch;
  wire::ChannelFrame frame = peer.Write(0, kTarget, 512);
  const auto data = ScriptedPeer::Bytes(512, 3);
  frame.offset = 256;
  EXPECT_EQ(peer.DeliverBy(other, frame, {data.begin() + 256, data.end()}), DropReason::kNone);
  frame.offset = 0;
  frame.flags = 0;
  EXPECT_EQ(peer.DeliverBy(peer.carrier, frame, {data.begin(), data.begin() + 256}),
            DropReason::kNone);
  const SentFrame reply = peer.OutOne();
  EXPECT_EQ(reply.frame.kind, FrameKind::kReply);
  ASSERT_EQ(peer.carrier.refs.size(), 1u);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), &peer.host().memory()[kTarget]));
  // The reply is lost, and meanwhile a frame has arrived by the other channel.
  peer.DeliverBy(other, peer.Write(1, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_EQ(peer.OutOne().frame.message, 1u);
  EXPECT_EQ(other.refs.size(), 1u);
  EXPECT_EQ(peer.Lose(0), flow::Resend::kDone);
}

// A peer chooses the channels of its frames. Each channel is held and searched for, and no pool has
// asked for it.
TEST(Multipath, PeerWithMoreChannelsThanAGatewayHas_IsAnsweredByAsManyAsThat) {
  constexpr size_t kChannels = 40;
  std::vector<ScriptedCarrier> others(kChannels);  // outlive the queue pair, which holds them
  FramePeer peer;
  for (uint32_t i = 0; i < kChannels; ++i) {
    others[i].to = peer.carrier.to;
    others[i].to.epoch = static_cast<uint16_t>(kOtherEpoch + i);
    EXPECT_EQ(peer.DeliverBy(others[i], peer.Write(i, kTarget, 4), ScriptedPeer::Bytes(4)),
              DropReason::kNone);
    EXPECT_EQ(peer.OutOne().frame.message, i);
  }
  const Multipath& paths = *peer.host().context().multipath;
  EXPECT_EQ(paths.size(), size_t{wire::kMostPaths});
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_FALSE(paths.ForRequests(paths.At(i)));
  EXPECT_FALSE(peer.host().qp().Uses(others[kChannels - 1]));
  EXPECT_TRUE(peer.host().qp().Uses(others[0]));
  EXPECT_TRUE(peer.host().qp().Uses(peer.carrier));
}

// A reply to a single message is a sign of life like any other: its sender must not get the message
// again by another transport.
TEST(Multipath, AnswerToOneAlone_WasHeard) {
  FramePeer peer;
  peer.base().PostWrite(kSource, 4, kTarget);
  peer.base().PostWrite(kSource, 4, kTarget);
  peer.Out();
  wire::ChannelFrame reply = peer.Frame(FrameKind::kReply, 1);
  reply.flags = wire::kFrameRelaxed;
  reply.syndrome = kAck;
  EXPECT_EQ(peer.Deliver(reply), DropReason::kNone);
  peer.host().qp().OnCarrierLost(peer.host(), peer.carrier, true,
                                 wire::ChannelReason::kUnknownChannel, peer.base().now());
  EXPECT_EQ(peer.state(), QpState::kError) << "and not on its way as plain RoCEv2";
}

}  // namespace
}  // namespace rocegw::testing::multipath
