// SPDX-License-Identifier: Apache-2.0
// Frames and acknowledgements of an open channel, and channels to another instance of the peer.
#include <gtest/gtest.h>

#include "tests/unit/channel/channel_set_fixture.h"

namespace rocegw::testing::channel_set {
namespace {

TEST_F(ChannelSetTest, KindOfCongestionControl_IsTheBestThatBothHave) {
  channel::ChannelOptions some = ChannelPair::OptionsOf(1);
  some.features &= ~uint32_t{wire::kOptionCcHint};
  ChannelPair other(ChannelPair::OptionsOf(0), some);
  Channel* channel = other.a().Reach(other.b(), other.now);
  other.Settle();
  EXPECT_EQ(channel->out().cc_kind(), flow::CcKind::kSwift);
  ASSERT_EQ(other.b().set.Snapshots().size(), 1u);
  EXPECT_EQ(other.b().set.Snapshots()[0].congestion, flow::CcKind::kSwift);
  EXPECT_EQ(channel->address().path.traffic_class & wire::kEcnMask, 0)
      << "marks mean nothing to it";
}

TEST_F(ChannelSetTest, FramesThatAreStampedAndMarked_AreToldBack) {
  Channel* channel = pair.a().Reach(pair.b(), pair.now);
  pair.Settle();
  EXPECT_EQ(channel->out().cc_kind(), flow::CcKind::kCaqm);
  EXPECT_EQ(channel->address().path.traffic_class & wire::kEcnMask, wire::kEcnEct0);
  ASSERT_TRUE(pair.a().Send(*channel, 1, pair.now));
  ASSERT_FALSE(pair.a().sent.empty());
  EXPECT_EQ(pair.a().sent[0].Decoded().headers.bth.hint(), wire::MakeHint(true));
  // Acts as a switch: the ICRC does not cover that byte.
  pair.a().sent[0].bytes[4] = wire::HintOfLevel(33, true);
  uint8_t hint = 0;
  pair.Settle();
  pair.now = pair.now + Milliseconds(1);
  pair.Settle([&](const ChannelPacket& packet) {
    if (!packet.Is(wire::Operation::kChannelAck)) return false;
    EXPECT_EQ(packet.meta.traffic_class & wire::kEcnMask, wire::kEcnEct0);
    wire::ChannelAck ack;
    EXPECT_EQ(wire::DecodeAck(packet.Decoded().payload, ack), metrics::DropReason::kNone);
    hint = ack.hint;
    return false;
  });
  EXPECT_EQ(hint, wire::HintOfLevel(33, true));
}

TEST_F(ChannelSetTest, AcknowledgementsPutOff_LeaveBehindTheFramesOfTheRound) {
  Channel* channel = OpenAndSend(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  ASSERT_TRUE(pair.a().Send(*channel, 2, pair.now));
  // The frame before it is missing, which is reported at once.
  pair.a().sent.clear();
  ASSERT_TRUE(pair.a().Send(*channel, 3, pair.now));
  pair.b().Receive(pair.a().sent.front(), pair.now);
  EXPECT_TRUE(pair.b().set.Run(pair.now, Acks::kLater));
  EXPECT_TRUE(pair.b().sent.empty());
  ASSERT_TRUE(pair.b().Send(*back, 4, pair.now));
  EXPECT_TRUE(pair.b().set.Run(pair.now, Acks::kNow));
  ASSERT_EQ(pair.b().sent.size(), 2U);
  EXPECT_FALSE(pair.b().sent[0].Is(wire::Operation::kChannelAck));
  EXPECT_TRUE(pair.b().sent[1].Is(wire::Operation::kChannelAck));
}

// A new flow may have 16 packets of 4096 bytes in flight.
TEST_F(ChannelSetTest, AQuarterOfTheWindowSent_ItsLastFrameAsksForAnAcknowledgement) {
  Channel* channel = pair.a().Reach(pair.b(), pair.now);
  pair.Settle();
  flow::WaitEntry entry;
  std::vector<uint8_t> flags;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(channel->MaySend({}, entry, 4096, pair.now));
    channel->OnSent({}, entry, {}, 4096, pair.now);
    flags.push_back(channel->address().flags);
  }
  EXPECT_EQ(std::count(flags.begin(), flags.end(), wire::kFrameAckNow), 2);
  EXPECT_EQ(std::count(flags.begin(), flags.end(), 0), 6);
}

TEST_F(ChannelSetTest, TargetOfAnotherInstance_LeadsToANewChannel) {
  Channel* old = pair.a().Reach(pair.b(), pair.now);
  pair.a().Hold(old);
  pair.Settle();
  EXPECT_EQ(pair.a().Reach(pair.b(), pair.now), old);
  pair.Restart(1);
  Channel* fresh = pair.a().Reach(pair.b(), pair.now);
  ASSERT_NE(fresh, nullptr);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(pair.a().Reach(pair.b(), pair.now), fresh) << "while the old one is on its way out";
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_TRUE(pair.a().opened);
  EXPECT_EQ(pair.a().why, wire::ChannelReason::kStaleEpoch);
  EXPECT_EQ(fresh->state(), ChannelState::kOpen);
}

TEST_F(ChannelSetTest, OwnNumbersExhausted_NothingUntilOneIsFree) {
  channel::ChannelOptions few = ChannelPair::OptionsOf(0);
  few.numbers.resize(2);
  ChannelPair other(few, ChannelPair::OptionsOf(1));
  Channel* first = other.a().Reach(other.b(), other.now, 0);
  EXPECT_NE(other.a().Reach(other.b(), other.now, 4), nullptr);
  EXPECT_EQ(other.a().Reach(other.b(), other.now, 8), nullptr);
  other.Settle();
  // Unused: closed after a minute.
  EXPECT_EQ(first->state(), ChannelState::kOpen);
  other.Advance(Seconds(61));
  EXPECT_NE(other.a().Reach(other.b(), other.now, 8), nullptr);
}

// The receiver processes frames more slowly than they arrive.
TEST_F(ChannelSetTest, Narrowed_TheNextAcknowledgementAllowsFewFrames) {
  Channel* const channel = OpenAndSend(1);
  std::vector<uint32_t> rooms;
  const auto look = [&](const ChannelPacket& packet) {
    if (!packet.Is(Operation::kChannelAck)) return false;
    wire::ChannelAck ack;
    EXPECT_EQ(wire::DecodeAck(packet.Decoded().payload, ack), DropReason::kNone);
    rooms.push_back(ack.room);
    return false;
  };
  const auto send = [&](uint32_t message) {
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
    pair.Advance(Milliseconds(1), look);
  };
  pair.b().Known(pair.a())->Narrow();
  send(2);
  send(3);
  ASSERT_GE(rooms.size(), 2u);
  EXPECT_EQ(rooms.front(), 16u);
  EXPECT_EQ(rooms.back(), pair.b().options.window);
}

}  // namespace
}  // namespace rocegw::testing::channel_set
