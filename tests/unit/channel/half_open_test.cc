// SPDX-License-Identifier: Apache-2.0
// Channels that a peer opened and did not confirm: an attacker with forged addresses can create
// them, and they must not use up others' resources.
#include <gtest/gtest.h>

#include "tests/support/channel/channel_pair.h"

namespace rocegw::testing::half_open {
namespace {

using channel::Channel;
using channel::ChannelState;
using metrics::DropReason;
using wire::ControlKind;

class HalfOpenTest : public ::testing::Test {
 protected:
  // Sends an opening of that address, with that number.
  DropReason Open(const wire::Gid& from, uint32_t number, uint32_t worker = 0) {
    uint8_t room[256];
    port::TxPacket packet{.data = room};
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelControl;
    headers.bth.dest_qpn = pair.b().options.acceptor;
    size_t length = wire::EncodeHeaders(headers, packet.data);
    length += wire::EncodeControl({.kind = ControlKind::kOpen,
                                   .channel = number,
                                   .epoch = number,
                                   .instance = 5,
                                   .window = 64,
                                   .features = ChannelPair::OptionsOf(1).features,
                                   .worker = static_cast<uint16_t>(worker)},
                                  packet.data + length);
    packet.length = static_cast<uint32_t>(length);
    packet.path = {.source = from, .destination = pair.b().gid};
    return pair.b().Receive(Sealed(packet), pair.now);
  }
  uint64_t Opened() { return pair.b().counters.channel_open_events.Read(); }
  uint64_t Closed() { return pair.b().counters.channel_close_events.Read(); }
  // Sent packets are lost.
  void AdvanceInTheDark(Duration by) {
    pair.Advance(by, [](const ChannelPacket&) { return true; });
  }

  ChannelPair pair;
};

TEST_F(HalfOpenTest, NotGoneOnWith_ClosedAfterSeconds) {
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900), DropReason::kNone);
  AdvanceInTheDark(Seconds(4));
  EXPECT_EQ(Closed(), 0u);
  AdvanceInTheDark(Seconds(4));
  EXPECT_EQ(Closed(), 1u);
}

TEST_F(HalfOpenTest, PeerThatUsesItAndIsQuiet_AnswersAndKeepsIt) {
  Channel* channel = pair.Open();
  size_t closes = 0;
  pair.Advance(Seconds(50), [&](const ChannelPacket& packet) {
    closes += packet.Is(ControlKind::kClose) ? 1 : 0;
    return false;
  });
  EXPECT_EQ(closes, 1u) << "asked once";
  EXPECT_EQ(Closed(), 0u);
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1}));
}

// An attacker who knows the addresses must not be able to close a live channel.
TEST_F(HalfOpenTest, ForgedRestart_EndsNothing) {
  Channel* channel = pair.Open();
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  // Another instance of the peer, with a number of its own and with that of the channel.
  EXPECT_EQ(Open(pair.a().gid, 0x900), DropReason::kNone);
  EXPECT_EQ(Open(pair.a().gid, channel->number().value), DropReason::kNone);
  EXPECT_EQ(Opened(), 3u);
  pair.Advance(Milliseconds(1), [](const ChannelPacket&) { return false; });
  EXPECT_EQ(Closed(), 1u) << "the peer knows nothing of the first";
  EXPECT_EQ(pair.b().gone, 0);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  EXPECT_TRUE(pair.b().Send(*back, 3, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(pair.a().delivered, (std::vector<uint32_t>{3})) << "not by what was forged";
  pair.Advance(Seconds(11), [](const ChannelPacket&) { return false; });
  EXPECT_EQ(Closed(), 2u);
  EXPECT_EQ(pair.b().gone, 0);
}

// An opening is repeated if its answer is lost; that must not create another channel.
TEST_F(HalfOpenTest, RestartThatIsRepeated_OneChannel) {
  Channel* channel = pair.Open();
  EXPECT_EQ(Open(pair.a().gid, channel->number().value), DropReason::kNone);
  EXPECT_EQ(Open(pair.a().gid, channel->number().value), DropReason::kNone);
  EXPECT_EQ(Opened(), 2u);
}

TEST_F(HalfOpenTest, PeerThatHasSent_IsNotAsked) {
  Channel* channel = pair.Open();
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  size_t closes = 0;
  pair.Advance(Seconds(50), [&](const ChannelPacket& packet) {
    closes += packet.Is(ControlKind::kClose) ? 1 : 0;
    return false;
  });
  EXPECT_EQ(closes, 0u);
}

TEST_F(HalfOpenTest, NumbersExhausted_TheOldestMakesRoomAndUsedOnesStay) {
  Channel* channel = pair.Open();
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  // 16 numbers, one is in use.
  for (uint32_t i = 0; i < 40; ++i) {
    EXPECT_EQ(Open(ChannelPair::GidOf(100 + i), 0x900 + i), DropReason::kNone) << i;
    pair.b().sent.clear();
  }
  EXPECT_EQ(pair.b().counters.channel_half_open_close_events.Read(), 25u);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1, 2}));
  // A real user still gets a number.
  Channel* another = pair.a().Reach(pair.b(), pair.now, 8);
  pair.a().Hold(another);
  pair.Settle();
  EXPECT_EQ(another->state(), ChannelState::kOpen);
}

TEST_F(HalfOpenTest, AllInUse_Refused) {
  std::vector<Channel*> all;
  for (uint8_t i = 0; i < 16; ++i) {
    all.push_back(pair.a().Reach(pair.b(), pair.now, static_cast<uint8_t>(i << 2)));
    pair.a().Hold(all.back());
  }
  pair.Settle();
  for (Channel* channel : all) EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered.size(), 16u);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900), DropReason::k_channel_refused);
  EXPECT_EQ(Closed(), 0u);
}

TEST_F(HalfOpenTest, OneAddress_NoMoreThanItsLimit) {
  channel::ChannelOptions options = ChannelPair::OptionsOf(1);
  options.half_open_limit = 3;
  pair.ends[1] = std::make_unique<ChannelEnd>(ChannelPair::GidOf(1), options);
  for (uint32_t i = 0; i < 3; ++i)
    EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900 + i, i), DropReason::kNone);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x903, 3), DropReason::k_channel_refused);
  EXPECT_EQ(Open(ChannelPair::GidOf(8), 0x903, 3), DropReason::kNone) << "others have their own";
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x901, 1), DropReason::kNone) << "a first step again";
  EXPECT_EQ(Opened(), 4u);
  // Closed after a while, which frees numbers.
  AdvanceInTheDark(Seconds(8));
  EXPECT_EQ(Closed(), 4u);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x905, 5), DropReason::kNone);
}

TEST_F(HalfOpenTest, GoneOnWith_CountsNoMore) {
  channel::ChannelOptions options = ChannelPair::OptionsOf(1);
  options.half_open_limit = 2;
  pair.ends[1] = std::make_unique<ChannelEnd>(ChannelPair::GidOf(1), options);
  for (uint8_t i = 0; i < 8; ++i) {
    Channel* channel = pair.a().Reach(pair.b(), pair.now, static_cast<uint8_t>(i << 2));
    pair.a().Hold(channel);
    pair.Settle();
    ASSERT_EQ(channel->state(), ChannelState::kOpen) << int{i};
    EXPECT_TRUE(pair.a().Send(*channel, i, pair.now));
    pair.Settle();
  }
}

// A stranger with a real address confirms each channel by one frame.
class ConfirmingStranger : public HalfOpenTest {
 protected:
  static channel::ChannelOptions Few() {
    channel::ChannelOptions options = ChannelPair::OptionsOf(1);
    options.idle_limit = 4;
    return options;
  }
  ConfirmingStranger() {
    pair.ends[1] = std::make_unique<ChannelEnd>(ChannelPair::GidOf(1), Few());
  }
  // Opens and confirms channels of the first end to the second with `count` traffic classes.
  // Returns how many are open.
  size_t Confirm(uint8_t count) {
    size_t open = 0;
    for (uint8_t i = 0; i < count; ++i) {
      const auto traffic_class = static_cast<uint8_t>(i << 2);
      if (pair.a().Reach(pair.b(), pair.now, traffic_class) == nullptr) continue;
      pair.Settle();
      // A refused channel does not exist any more.
      Channel* const channel = pair.a().Known(pair.b(), traffic_class);
      if (channel == nullptr || channel->state() != ChannelState::kOpen) continue;
      pair.a().Hold(channel);
      EXPECT_TRUE(pair.a().Send(*channel, i, pair.now));
      pair.Settle();
      ++open;
    }
    return open;
  }
  Channel* Use() {
    Channel* channel = pair.b().Reach(pair.a(), pair.now);
    if (channel != nullptr) pair.b().Hold(channel);
    return channel;
  }
};

TEST_F(ConfirmingStranger, HasNoMoreThanItsShareOfTheNumbers) {
  EXPECT_EQ(Confirm(16), 4u);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900), DropReason::kNone) << "others have theirs";
}

TEST_F(ConfirmingStranger, ChannelThatAQueuePairUses_CountsNoMore) {
  EXPECT_EQ(Confirm(1), 1u);
  Channel* used = Use();
  ASSERT_NE(used, nullptr);
  EXPECT_TRUE(pair.b().Send(*used, 1, pair.now));
  pair.Settle();
  EXPECT_EQ(Confirm(16), 5u) << "the one that is there, and four";
}

TEST_F(ConfirmingStranger, Member_IsNotBoundByIt) {
  pair.b().set.SetMember(pair.a().gid, true);
  EXPECT_EQ(Confirm(16), 16u);
}

TEST_F(ConfirmingStranger, StrangersLeaveNumbersForMembers) {
  pair.b().set.SetMember(pair.a().gid, true);
  size_t taken = 0;
  for (uint32_t i = 0; i < 40; ++i) {
    if (Open(ChannelPair::GidOf(100 + i), 0x900 + i) == DropReason::kNone) ++taken;
  }
  EXPECT_EQ(taken, 40u);
  EXPECT_EQ(Opened() - Closed(), 14u) << "two of 16 stay free";
  EXPECT_EQ(Open(pair.a().gid, 0x900), DropReason::kNone);
  EXPECT_EQ(Opened() - Closed(), 15u);
}

TEST_F(ConfirmingStranger, IdleOnesMakeRoom_WhenNumbersAreExhausted) {
  channel::ChannelOptions options = Few();
  options.numbers.resize(4);
  pair.ends[1] = std::make_unique<ChannelEnd>(ChannelPair::GidOf(1), options);
  EXPECT_EQ(Confirm(4), 4u);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900), DropReason::k_channel_refused) << "too young";
  pair.now = pair.now + Seconds(6);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900), DropReason::kNone);
}

TEST_F(HalfOpenTest, Refusals_NoMoreThanTheirRate) {
  channel::ChannelOptions options = ChannelPair::OptionsOf(1);
  options.half_open_limit = 0;
  pair.ends[1] = std::make_unique<ChannelEnd>(ChannelPair::GidOf(1), options);
  pair.b().Turn(pair.now);
  for (uint32_t i = 0; i < 1000; ++i)
    EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900 + i, i), DropReason::k_channel_refused);
  EXPECT_EQ(pair.b().sent.size(), 64u);
}

}  // namespace
}  // namespace rocegw::testing::half_open
