// SPDX-License-Identifier: Apache-2.0
// Channels without use: they rest after a second and close after a minute.
#include <gtest/gtest.h>

#include "tests/unit/channel/channel_set_fixture.h"

namespace rocegw::testing::channel_set {
namespace {

TEST_F(ChannelSetTest, UnusedForAMinute_BothEndsClose) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Seconds(120));
  EXPECT_EQ(channel->state(), ChannelState::kOpen) << "somebody uses it";
  channel->Release();
  pair.a().held.clear();
  pair.Advance(Seconds(61));
  EXPECT_EQ(pair.a().counters.channel_close_events.Read(), 1u);
  EXPECT_EQ(pair.b().counters.channel_close_events.Read(), 1u);
  EXPECT_EQ(pair.Open()->state(), ChannelState::kOpen) << "there may be another one";
}

TEST_F(ChannelSetTest, CloseOfWhatThePeerUses_IsTakenBack) {
  Channel* channel = OpenAndSend(1);
  // Only the other end is idle; this one is held.
  pair.Advance(Seconds(300));
  EXPECT_EQ(pair.b().counters.channel_close_events.Read(), 0u);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (Numbers{1, 2}));
}

TEST_F(ChannelSetTest, CloseThatNobodyAnswers_EndsAllTheSame) {
  Channel* channel = OpenAndSend(1);
  channel->Release();
  pair.a().held.clear();
  pair.Advance(Seconds(63), [](const ChannelPacket&) { return true; });
  EXPECT_EQ(pair.a().counters.channel_close_events.Read(), 1u);
}

// A resting channel has no timer.
TEST_F(ChannelSetTest, LastUserLeavesOneAtRest_ClosedAfterAMinute) {
  Channel* channel = OpenAndSend(1);
  pair.b().Hold(pair.b().Reach(pair.a(), pair.now));
  pair.Advance(Seconds(30));
  ASSERT_TRUE(channel->rests());
  channel->Release();
  pair.a().held.clear();
  const auto dark = [](const ChannelPacket&) { return true; };
  pair.Advance(Seconds(59), dark);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  pair.Advance(Seconds(3), dark);
  EXPECT_EQ(pair.a().counters.channel_close_events.Read(), 1u);
}

TEST_F(ChannelSetTest, IdleForASecond_RestsAndGoesOnWhereItWas) {
  Channel* channel = OpenAndSend(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  pair.b().Hold(back);
  pair.Advance(Milliseconds(500));
  EXPECT_FALSE(channel->rests());
  pair.Advance(Seconds(2));
  EXPECT_TRUE(channel->rests());
  EXPECT_TRUE(back->rests());
  const channel::ChannelBytes bytes = pair.a().set.MeasureBytes();
  EXPECT_EQ(bytes.awake + bytes.in_flight, 0u);
  const channel::ChannelSnapshot before = channel->Snapshot();
  EXPECT_EQ(before.users, 1u);
  EXPECT_GT(before.window, 0u);
  const uint16_t port = channel->source_port();
  // Either end may begin, and both continue with the next PSN.
  EXPECT_TRUE(pair.b().Send(*back, 2, pair.now));
  pair.Settle();
  EXPECT_FALSE(channel->rests());
  EXPECT_TRUE(pair.a().Send(*channel, 3, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().delivered, (Numbers{2}));
  EXPECT_EQ(pair.b().delivered, (Numbers{1, 3}));
  EXPECT_EQ(channel->source_port(), port);
  const channel::ChannelSnapshot after = channel->Snapshot();
  EXPECT_EQ(after.congestion, before.congestion);
  EXPECT_GE(after.window, before.window / 2);
  EXPECT_EQ(after.resent, before.resent);
  EXPECT_EQ(pair.a().counters.channel_resent_packets.Read(), 0u);
}

TEST_F(ChannelSetTest, LossAfterARest_BuiltAgainUnderItsPsn) {
  Channel* channel = OpenAndSend(1);
  pair.b().Hold(pair.b().Reach(pair.a(), pair.now));
  pair.Advance(Seconds(5));
  ASSERT_TRUE(channel->rests());
  int lost = 0;
  for (uint32_t message = 10; message < 20; ++message)
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
  pair.Settle([&](const ChannelPacket& packet) {
    return packet.Is(Operation::kChannelFrame) && lost++ == 3;
  });
  pair.Advance(Milliseconds(10));
  EXPECT_EQ(pair.b().delivered.size(), 11u);
  EXPECT_EQ(pair.a().counters.channel_resent_packets.Read(), 1u);
}

TEST_F(ChannelSetTest, PeerRestartedDuringARest_FrameDrawsResetAndTheChannelEnds) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Seconds(5));
  ASSERT_TRUE(channel->rests());
  pair.Restart(1);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_TRUE(pair.b().delivered.empty());
}

// A restarted peer begins with its own opening.
TEST_F(ChannelSetTest, OneAtRestThatIsReplaced_Ends) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Seconds(5));
  ASSERT_TRUE(channel->rests());
  pair.Restart(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  pair.b().Hold(back);
  EXPECT_FALSE(pair.b().Send(*back, 3, pair.now)) << "it is not open yet";
  pair.Settle();
  EXPECT_TRUE(pair.b().Send(*back, 3, pair.now));
  pair.Advance(Milliseconds(1));
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.a().why, ChannelReason::kStaleEpoch);
  EXPECT_EQ(pair.a().delivered, (Numbers{3}));
}

}  // namespace
}  // namespace rocegw::testing::channel_set
