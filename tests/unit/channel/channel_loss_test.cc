// SPDX-License-Identifier: Apache-2.0
// Loss on channels: frames that are built again, paths that fail, wait queues, a port without
// buffers.
#include <gtest/gtest.h>

#include "tests/unit/channel/channel_set_fixture.h"

namespace rocegw::testing::channel_set {
namespace {

TEST_F(ChannelSetTest, LostFrame_BuiltAgainUnderItsPsn) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  int lost = 0;
  for (uint32_t message = 10; message < 20; ++message)
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
  pair.Settle([&](const ChannelPacket& packet) {
    return packet.Is(Operation::kChannelFrame) && lost++ == 3;
  });
  pair.Advance(Milliseconds(10));
  EXPECT_EQ(pair.b().delivered.size(), 11u);
  EXPECT_EQ(std::set<uint32_t>(pair.b().delivered.begin(), pair.b().delivered.end()).size(), 11u);
  EXPECT_EQ(pair.a().counters.channel_resent_packets.Read(), 1u) << "and nothing else";
  EXPECT_TRUE(channel->out().idle());
}

TEST_F(ChannelSetTest, LostFrameThatNobodyWaitsFor_ItsPsnIsFilled) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  pair.a().forgotten = {10};
  bool lost = false;
  for (uint32_t message = 10; message < 20; ++message)
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
  pair.Settle([&](const ChannelPacket& packet) {
    if (lost || !packet.Is(Operation::kChannelFrame)) return false;
    return lost = true;
  });
  pair.Advance(Milliseconds(10));
  EXPECT_EQ(pair.b().delivered.size(), 10u);
  EXPECT_TRUE(channel->out().idle());
}

TEST_F(ChannelSetTest, ArrivedFrames_AreToldOnceToWhoAskedForIt) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  EXPECT_EQ(pair.a().arrived, Numbers()) << "nobody asked";
  channel->ReportArrivals();
  pair.a().forgotten = {10};
  bool lost = false;
  for (uint32_t message = 10; message < 20; ++message)
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
  pair.Settle([&](const ChannelPacket& packet) {
    if (lost || !packet.Is(Operation::kChannelFrame)) return false;
    return lost = true;
  });
  pair.Advance(Milliseconds(10));
  std::ranges::sort(pair.a().arrived);
  EXPECT_EQ(pair.a().arrived, (Numbers{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}))
      << "also the one whose place was filled";
}

TEST_F(ChannelSetTest, Traffic_OfAPeerIncludesChannelsThatAreGone) {
  EXPECT_TRUE(pair.a().set.Traffic().empty());
  const auto send = [&] {
    Channel* channel = pair.Open();
    EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now, 1, 0, 100));
    pair.Settle();
    pair.Advance(Milliseconds(1));
    return channel;
  };
  Channel* channel = send();
  const auto open = pair.a().set.Traffic();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].peer, pair.b().gid);
  EXPECT_EQ(open[0].channels, 1u);
  EXPECT_EQ(open[0].arrived_bytes, 100u);
  EXPECT_EQ(open[0].channels_rtt, 1u);
  channel->Abandon(wire::ChannelReason::kIdle);
  channel->Due();
  pair.Settle();
  const auto gone = pair.a().set.Traffic();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].channels, 0u);
  EXPECT_EQ(gone[0].arrived_bytes, 100u);
  send();
  EXPECT_EQ(pair.a().set.Traffic()[0].arrived_bytes, 200u);
}

TEST_F(ChannelSetTest, SilentPath_OtherSourcePortAfterSixProbes) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  const uint16_t before = channel->source_port();
  // Everything on that path is lost.
  const auto broken = [&](const ChannelPacket& packet) {
    return packet.meta.source_port == before;
  };
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Advance(Seconds(2), broken);
  EXPECT_NE(channel->source_port(), before);
  EXPECT_GE(pair.a().counters.channel_path_change_events.Read(), 1u);
  EXPECT_EQ(pair.b().delivered, (Numbers{1, 2}));
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
}

// Packets from b are lost, and b itself waits for no answers.
TEST_F(ChannelSetTest, AnswersToProbesAreLost_WhoGivesThemTakesAnotherPort) {
  Channel* channel = OpenAndSend(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  pair.Advance(Milliseconds(1));
  const uint16_t before = back->source_port();
  const auto broken = [&](const ChannelPacket& packet) {
    return packet.meta.source == pair.b().gid && packet.meta.source_port == before;
  };
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Advance(Seconds(2), broken);
  EXPECT_NE(back->source_port(), before);
  EXPECT_TRUE(channel->rests());
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
}

TEST_F(ChannelSetTest, SeveralPaths_HavePortsOfTheirOwn_AndOneThatFailsTakesThatOfAnother) {
  channel::ChannelOptions with_paths = ChannelPair::OptionsOf(0);
  with_paths.paths = 3;
  ChannelPair pairs(with_paths, ChannelPair::OptionsOf(1));
  Channel* first = pairs.Open();
  std::vector<Channel*> all{first};
  for (uint32_t paths = 1; paths < 3; ++paths)
    all.push_back(pairs.a().set.Beside(*first, paths, pairs.now));
  EXPECT_EQ(pairs.a().set.Beside(*first, 3, pairs.now), nullptr) << "there are no more";
  pairs.Settle();
  std::set<uint16_t> ports;
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_NE(all[i], nullptr);
    EXPECT_EQ(pairs.a().set.Beside(*all[i], 3 - i, pairs.now), i == 0 ? nullptr : first);
    EXPECT_TRUE(pairs.a().Send(*all[i], i, pairs.now));
    ports.insert(all[i]->source_port());
  }
  pairs.Settle();
  pairs.Advance(Milliseconds(1));
  EXPECT_EQ(ports.size(), 3u);
  const uint16_t failed = all[1]->source_port();
  EXPECT_TRUE(pairs.a().Send(*all[1], 9, pairs.now));
  pairs.Advance(Seconds(1),
                [&](const ChannelPacket& packet) { return packet.meta.source_port == failed; });
  EXPECT_NE(all[1]->source_port(), failed);
  EXPECT_TRUE(ports.contains(all[1]->source_port()));
  EXPECT_EQ(pairs.b().delivered, (Numbers{0, 1, 2, 9}));
}

TEST_F(ChannelSetTest, SilentPeer_EndsAfterTwentyFourProbes) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  size_t probes = 0;
  const TimePoint begin = pair.now;
  TimePoint end = begin;
  pair.Advance(Seconds(20), [&](const ChannelPacket& packet) {
    if (packet.Is(ControlKind::kProbe)) {
      ++probes;
      end = pair.now;
    }
    return true;
  });
  EXPECT_EQ(probes, 24u);
  EXPECT_GE(end - begin, Seconds(3));
  EXPECT_EQ(pair.a().gone, 1);
}

TEST_F(ChannelSetTest, NoEndpoint_ItsSenderIsToldToTryAgain) {
  Channel* channel = pair.Open();
  pair.b().refuse = true;
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  ASSERT_EQ(pair.a().replies.size(), 1u);
  EXPECT_TRUE(pair.a().replies[0].not_ready());
  EXPECT_EQ(pair.a().replies[0].message, 2u);
  EXPECT_EQ(pair.a().replies[0].attempt, 1);
  EXPECT_EQ(pair.a().replies[0].destination, Qpn{0x33});
}

TEST_F(ChannelSetTest, RefusalThatIsLost_IsBuiltAgain) {
  Channel* channel = pair.Open();
  pair.b().refuse = true;
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  bool lost = false;
  pair.Settle([&](const ChannelPacket& packet) {
    if (lost || packet.meta.source != pair.b().gid || !packet.Is(Operation::kChannelFrame))
      return false;
    return lost = true;
  });
  EXPECT_TRUE(pair.a().replies.empty());
  pair.Advance(Seconds(1));
  EXPECT_EQ(pair.a().replies.size(), 1u);
}

TEST_F(ChannelSetTest, WindowFull_TurnsGoAroundAmongThoseInLine) {
  channel::ChannelOptions narrow = ChannelPair::OptionsOf(1);
  narrow.window = 2;
  ChannelPair other(ChannelPair::OptionsOf(0), narrow);
  Channel* channel = other.Open();
  EXPECT_TRUE(other.a().Send(*channel, 1, other.now, 1));
  EXPECT_TRUE(other.a().Send(*channel, 2, other.now, 1));
  for (uint32_t qp : {3, 4, 5}) EXPECT_FALSE(other.a().Send(*channel, qp, other.now, qp));
  EXPECT_TRUE(other.a().turns.empty());
  other.Advance(Milliseconds(1));
  EXPECT_EQ(other.a().turns, (Numbers{3, 4, 5}));
}

TEST_F(ChannelSetTest, PortWithoutPackets_NothingIsForgotten) {
  Channel* channel = Begun();
  pair.a().port_budget = 0;
  pair.a().Turn(pair.now);
  EXPECT_TRUE(pair.a().sent.empty());
  EXPECT_TRUE(pair.a().set.busy());
  pair.a().port_budget = 1000;
  pair.Settle();
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
}

TEST_F(ChannelSetTest, LateTimerOfAChannelThatIsGone_Ignored) {
  EXPECT_FALSE(pair.a().set.OnTimer(0, pair.now));
  Channel* channel = pair.Open();
  channel->Release();
  pair.a().held.clear();
  pair.Advance(Seconds(62));
  EXPECT_FALSE(pair.a().set.OnTimer(0, pair.now));
}

}  // namespace
}  // namespace rocegw::testing::channel_set
