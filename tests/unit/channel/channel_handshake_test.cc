// SPDX-License-Identifier: Apache-2.0
// Handshake of channels: simultaneous and lost openings, refusal, and a peer that never answers.
#include <gtest/gtest.h>

#include "tests/unit/channel/channel_set_fixture.h"

namespace rocegw::testing::channel_set {
namespace {

TEST_F(ChannelSetTest, Reach_OpensOnceAndEverybodySharesIt) {
  Channel* channel = pair.a().Reach(pair.b(), pair.now);
  EXPECT_EQ(pair.a().Reach(pair.b(), pair.now), channel);
  EXPECT_EQ(channel->state(), ChannelState::kOpening);
  pair.a().Hold(channel);
  pair.Settle();
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_EQ(pair.a().Reach(pair.b(), pair.now), channel);
  // The other end's queue pairs have the channel already.
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->state(), ChannelState::kOpen);
  EXPECT_EQ(back->number(), channel->peer_number());
  EXPECT_EQ(back->peer_number(), channel->number());
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), 1u);
}

TEST_F(ChannelSetTest, MaxPayload_IsWhatFitsBehindTheLongestHeaderOfAPayload) {
  // Interfaces of 4200 bytes behind IPv4 and IPv6, of 1500 and of 9000.
  uint8_t traffic_class = 0;
  for (const auto& [datagram, payload] :
       {std::pair{4172U, 4096U}, {4152U, 4032U}, {1472U, 1408U}, {8972U, 4096U}}) {
    pair.a().max_datagram = datagram;
    EXPECT_EQ(pair.a().Reach(pair.b(), pair.now, traffic_class)->max_payload(), payload)
        << datagram;
    traffic_class += 4;
  }
}

TEST_F(ChannelSetTest, AnotherClass_AnotherChannel) {
  Channel* channel = pair.a().Reach(pair.b(), pair.now, 0);
  EXPECT_NE(pair.a().Reach(pair.b(), pair.now, 26 << 2), channel);
}

TEST_F(ChannelSetTest, BeforeUse_NothingIsOpenedOrTaken) {
  ChannelPair other(ChannelPair::OptionsOf(0), channel::ChannelOptions());
  EXPECT_EQ(other.b().Reach(other.a(), other.now), nullptr);
  other.a().Reach(other.b(), other.now);
  other.Settle();
  EXPECT_EQ(other.last_drop, DropReason::k_unknown_channel);
}

TEST_F(ChannelSetTest, Frames_DeliveredOnceAndAcknowledged) {
  Channel* channel = OpenAndSend(7);
  pair.Advance(Milliseconds(1));
  EXPECT_EQ(pair.b().delivered, (Numbers{7}));
  EXPECT_TRUE(channel->out().idle()) << "acknowledged";
  // The opposite direction on the same channel.
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  EXPECT_TRUE(pair.b().Send(*back, 8, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().delivered, (Numbers{8}));
}

TEST_F(ChannelSetTest, BeforeItIsOpen_SendersStandInLineAndComeWhenItIs) {
  Channel* channel = Begun();
  EXPECT_FALSE(pair.a().Send(*channel, 1, pair.now, 5));
  EXPECT_FALSE(pair.a().Send(*channel, 1, pair.now, 5)) << "it stands in it once";
  EXPECT_FALSE(pair.a().Send(*channel, 2, pair.now, 6));
  pair.Settle();
  EXPECT_EQ(pair.a().turns, (Numbers{5, 6}));
}

TEST_F(ChannelSetTest, FirstStepLost_SentAgainWithGrowingWaits) {
  Channel* channel = Begun();
  std::vector<TimePoint> opens;
  pair.Advance(Milliseconds(100), [&](const ChannelPacket& packet) {
    if (!packet.Is(ControlKind::kOpen)) return false;
    opens.push_back(pair.now);
    return opens.size() < 4;
  });
  ASSERT_EQ(opens.size(), 4u);
  EXPECT_LT(opens[2] - opens[1], opens[3] - opens[2]);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
}

TEST_F(ChannelSetTest, AnswerLost_GivenAgainForTheSameChannel) {
  Channel* channel = Begun();
  int answers = 0;
  pair.Advance(Milliseconds(100), [&](const ChannelPacket& packet) {
    return packet.Is(ControlKind::kOpened) && ++answers < 3;
  });
  EXPECT_EQ(answers, 3);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), 1u);
}

TEST_F(ChannelSetTest, AllAnswersLost_ProbesOfThePeerSayThatItIsThere) {
  Channel* channel = Begun();
  const TimePoint until = pair.now + Milliseconds(500);
  const auto lose = [&](const ChannelPacket& packet) {
    return packet.Is(ControlKind::kOpened) && pair.now < until;
  };
  pair.Advance(Milliseconds(1), lose);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  ASSERT_EQ(back->state(), ChannelState::kOpen);
  EXPECT_TRUE(pair.b().Send(*back, 7, pair.now));
  pair.Advance(Milliseconds(1000), lose);
  EXPECT_EQ(pair.a().gone, 0);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_EQ(pair.a().delivered, (Numbers{7}));
}

TEST_F(ChannelSetTest, BothBegin_OneChannel) {
  Channel* of_a = Begun();
  Channel* of_b = Begun(pair, pair.b(), pair.a());
  pair.Settle();
  EXPECT_EQ(of_a->state(), ChannelState::kOpen);
  EXPECT_EQ(of_b->state(), ChannelState::kOpen);
  EXPECT_EQ(of_a->peer_number(), of_b->number());
  EXPECT_EQ(of_b->peer_number(), of_a->number());
  EXPECT_EQ(pair.a().counters.channel_open_events.Read(), 1u);
  EXPECT_TRUE(pair.a().Send(*of_a, 1, pair.now));
  EXPECT_TRUE(pair.b().Send(*of_b, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().delivered, (Numbers{2}));
  EXPECT_EQ(pair.b().delivered, (Numbers{1}));
}

TEST_F(ChannelSetTest, BothBeginAndOneFirstStepIsLost_OneChannel) {
  Channel* of_a = Begun();
  Channel* of_b = Begun(pair, pair.b(), pair.a());
  bool lost = false;
  pair.Advance(Milliseconds(50), [&](const ChannelPacket& packet) {
    if (lost || !packet.Is(ControlKind::kOpen)) return false;
    return lost = true;
  });
  EXPECT_EQ(of_a->peer_number(), of_b->number());
  EXPECT_EQ(of_b->peer_number(), of_a->number());
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), 1u);
}

TEST_F(ChannelSetTest, PeerWithoutNumbers_Refuses) {
  channel::ChannelOptions none = ChannelPair::OptionsOf(1);
  none.numbers.clear();
  ChannelPair other(ChannelPair::OptionsOf(0), none);
  Begun(other, other.a(), other.b());
  other.Settle();
  EXPECT_EQ(other.a().gone, 1);
  EXPECT_EQ(other.a().counters.channel_close_events.Read(), 1u);
  EXPECT_NE(other.a().Reach(other.b(), other.now), nullptr) << "one may try again";
}

TEST_F(ChannelSetTest, NothingInCommon_RefusesAndNothingWasOpen) {
  channel::ChannelOptions plain = ChannelPair::OptionsOf(1);
  plain.features &= ~uint32_t{wire::kOptionSelectiveAck};
  ChannelPair other(ChannelPair::OptionsOf(0), plain);
  Begun(other, other.a(), other.b());
  other.Settle();
  EXPECT_EQ(other.a().gone, 1);
  EXPECT_FALSE(other.a().opened);
  EXPECT_EQ(other.a().why, wire::ChannelReason::kUnsupported);
  EXPECT_EQ(other.b().counters.channel_open_events.Read(), 0u);
}

TEST_F(ChannelSetTest, PeerThatNeverAnswers_IsGivenUp) {
  Begun();
  int opens = 0;
  const auto lose = [&](const ChannelPacket& packet) {
    opens += packet.Is(ControlKind::kOpen) ? 1 : 0;
    return true;
  };
  pair.Settle(lose);
  for (int i = 0; i < 400 && pair.a().gone == 0; ++i) {
    pair.now = pair.now + Milliseconds(1);
    pair.Settle(lose);
  }
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_FALSE(pair.a().opened);
  EXPECT_EQ(pair.a().why, wire::ChannelReason::kPathFailed);
  EXPECT_EQ(opens, 6);
}

}  // namespace
}  // namespace rocegw::testing::channel_set
