// SPDX-License-Identifier: Apache-2.0
// Channels that a peer opened and did not confirm: an attacker with forged addresses can create
// them, and they must not use up others' resources.
#include <gtest/gtest.h>

#include "gateway/channel/acceptor/opening_limits.h"
#include "tests/support/channel/channel_pair.h"

namespace rocegw::testing::half_open {
namespace {

using channel::Channel;
using channel::ChannelState;
using metrics::DropReason;
using wire::ControlKind;

class HalfOpenTest : public ::testing::Test {
 protected:
  // Sends an opening of that address, with that number. `cookie`: of a retry.
  DropReason Open(const wire::Gid& from, uint32_t number, uint32_t worker = 0,
                  uint32_t cookie = 0) {
    uint8_t room[256];
    port::TxPacket packet{.data = room};
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelControl;
    headers.bth.dest_qpn = pair.b().options.acceptor;
    size_t length = wire::EncodeHeaders(headers, packet.data);
    length += wire::EncodeControl({.kind = ControlKind::kOpen,
                                   .channel = number,
                                   .epoch = number,
                                   .peer_epoch = cookie,
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
  uint64_t Retries() { return pair.b().counters.channel_retry_events.Read(); }
  // Returns the cookie in the answer to the last opening; 0: it was not asked to be repeated.
  uint32_t Cookie() {
    if (pair.b().sent.empty() || !pair.b().sent.back().Is(ControlKind::kRetry)) return 0;
    return pair.b().sent.back().Control().epoch;
  }
  // Opens channels with the limit of one address from that address, and throws the answers away.
  void Flood(const wire::Gid& from) {
    for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(Open(from, 0x900 + i, i), DropReason::kNone);
    EXPECT_EQ(Retries(), 0u);
    pair.b().sent.clear();
  }
  void LimitHalfOpen(uint32_t limit) {
    channel::ChannelOptions options = ChannelPair::OptionsOf(1);
    options.half_open_limit = limit;
    pair.ends[1] = std::make_unique<ChannelEnd>(ChannelPair::GidOf(1), options);
  }
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

TEST_F(HalfOpenTest, NumbersExhausted_HalfOpenOnesMakeRoomAndUsedOnesStay) {
  Channel* channel = pair.Open();
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  // 16 numbers, one is in use. A quarter can be half-open.
  for (uint32_t i = 0; i < 40; ++i) {
    EXPECT_EQ(Open(ChannelPair::GidOf(100 + i), 0x900 + i), DropReason::kNone) << i;
    pair.b().sent.clear();
  }
  EXPECT_EQ(Opened(), 5u);
  EXPECT_EQ(Retries(), 36u);
  EXPECT_EQ(Closed(), 0u);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1, 2}));
  // A real user gets all others, and those numbers too.
  for (uint8_t i = 1; i < 16; ++i) {
    Channel* another = pair.a().Reach(pair.b(), pair.now, static_cast<uint8_t>(i << 2));
    pair.a().Hold(another);
    pair.Settle();
    EXPECT_EQ(another->state(), ChannelState::kOpen) << int{i};
  }
  EXPECT_EQ(Closed(), 4u);
}

TEST_F(HalfOpenTest, CookieThatWasSentToTheAddress_OpensAChannelThatIsNotHalfOpen) {
  LimitHalfOpen(3);
  Flood(ChannelPair::GidOf(7));
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x903, 3), DropReason::kNone);
  const uint32_t cookie = Cookie();
  ASSERT_NE(cookie, 0u);
  EXPECT_EQ(pair.b().sent.back().meta.destination, ChannelPair::GidOf(7));
  EXPECT_EQ(pair.b().sent.back().Control().peer_epoch, 0x903u);
  EXPECT_EQ(Opened(), 3u) << "nothing is kept for it";
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x903, 3, cookie), DropReason::kNone);
  EXPECT_EQ(Opened(), 4u);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x903, 3, cookie), DropReason::kNone) << "repeated";
  EXPECT_EQ(Opened(), 4u);
  AdvanceInTheDark(Seconds(8));
  EXPECT_EQ(Closed(), 3u) << "it is no half-open channel";
}

TEST_F(HalfOpenTest, CookieOfAnotherOpening_IsNoProof) {
  LimitHalfOpen(3);
  Flood(ChannelPair::GidOf(7));
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x903, 3), DropReason::kNone);
  const uint32_t cookie = Cookie();
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x904, 3, cookie), DropReason::kNone) << "number";
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x903, 4, cookie), DropReason::kNone) << "worker";
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x903, 3, cookie ^ 1), DropReason::kNone) << "forged";
  EXPECT_EQ(Opened(), 3u);
  EXPECT_EQ(Retries(), 4u);
  for (uint32_t i = 0; i < 3; ++i)
    EXPECT_EQ(Open(ChannelPair::GidOf(8), 0x900 + i, i), DropReason::kNone);
  EXPECT_EQ(Open(ChannelPair::GidOf(8), 0x903, 3, cookie), DropReason::kNone) << "address";
  EXPECT_NE(Cookie(), cookie);
  EXPECT_EQ(Opened(), 4u) << "a quarter of all";
}

TEST_F(HalfOpenTest, OldCookie_IsNoProof) {
  LimitHalfOpen(0);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900), DropReason::kNone);
  const uint32_t cookie = Cookie();
  pair.now = pair.now + Seconds(3);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900, 0, cookie), DropReason::kNone);
  EXPECT_EQ(Opened(), 1u);
  pair.now = pair.now + Seconds(9);
  EXPECT_EQ(Open(ChannelPair::GidOf(8), 0x901), DropReason::kNone);
  const uint32_t other = Cookie();
  pair.now = pair.now + Seconds(9);
  EXPECT_EQ(Open(ChannelPair::GidOf(8), 0x901, 0, other), DropReason::kNone);
  EXPECT_EQ(Opened(), 1u);
  EXPECT_EQ(Retries(), 3u);
}

// A flood must not cost a worker more than its openings.
TEST_F(HalfOpenTest, Retries_NoMoreThanTheirRate) {
  LimitHalfOpen(0);
  pair.now = pair.now + Seconds(1);
  for (uint32_t i = 0; i < 6000; ++i) Open(ChannelPair::GidOf(7), 0x900 + i, 0);
  EXPECT_EQ(Retries(), 256u);
  pair.now = pair.now + Milliseconds(10);
  for (uint32_t i = 0; i < 6000; ++i) Open(ChannelPair::GidOf(7), 0x900 + i, 0);
  EXPECT_EQ(Retries(), 306u);
}

// An attacker who forges a peer's address must not keep that peer from opening channels.
TEST_F(HalfOpenTest, ForgedAddressOfAPeer_DoesNotShutThePeerOut) {
  LimitHalfOpen(3);
  Flood(pair.a().gid);
  Channel* channel = pair.a().Reach(pair.b(), pair.now);
  pair.a().Hold(channel);
  pair.Settle();
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_EQ(Retries(), 1u);
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1}));
}

// A retry changes nothing but the next opening, and is believed only with the opener's epoch.
TEST_F(HalfOpenTest, ForgedRetry_ChangesNothing) {
  Channel* channel = pair.a().Reach(pair.b(), pair.now);
  pair.a().Hold(channel);
  const auto retry = [&](uint32_t epoch) {
    uint8_t room[256];
    port::TxPacket packet{.data = room};
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelControl;
    headers.bth.dest_qpn = channel->number();
    size_t length = wire::EncodeHeaders(headers, packet.data);
    length += wire::EncodeControl(
        {.kind = ControlKind::kRetry, .epoch = 0x77, .peer_epoch = epoch, .instance = 5},
        packet.data + length);
    packet.length = static_cast<uint32_t>(length);
    packet.path = {.source = pair.b().gid, .destination = pair.a().gid};
    return pair.a().Receive(Sealed(packet), pair.now);
  };
  EXPECT_EQ(retry(channel->epoch() ^ 1), DropReason::k_channel_epoch);
  EXPECT_EQ(retry(channel->epoch()), DropReason::kNone);
  pair.Settle();
  EXPECT_EQ(channel->state(), ChannelState::kOpen) << "a wrong cookie is no worse than none";
  const uint32_t peer_epoch = channel->peer_epoch();
  EXPECT_EQ(retry(channel->epoch()), DropReason::kNone);
  EXPECT_EQ(channel->peer_epoch(), peer_epoch) << "too late";
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
  LimitHalfOpen(3);
  Flood(ChannelPair::GidOf(7));
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x903, 3), DropReason::kNone);
  EXPECT_NE(Cookie(), 0u);
  EXPECT_EQ(Opened(), 3u);
  EXPECT_EQ(Open(ChannelPair::GidOf(8), 0x903, 3), DropReason::kNone) << "others have their own";
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x901, 1), DropReason::kNone) << "a first step again";
  EXPECT_EQ(Opened(), 4u);
  // Closed after a while, which frees numbers.
  AdvanceInTheDark(Seconds(8));
  EXPECT_EQ(Closed(), 4u);
  EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x905, 5), DropReason::kNone);
}

TEST_F(HalfOpenTest, GoneOnWith_CountsNoMore) {
  LimitHalfOpen(2);
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
  EXPECT_EQ(Opened(), 4u) << "the others have not proved their addresses";
  // Strangers of real addresses take what there is, but for two of 16.
  for (uint32_t i = 0; i < 40; ++i) {
    pair.b().sent.clear();
    Open(ChannelPair::GidOf(200 + i), 0x900 + i);
    if (Cookie() != 0) Open(ChannelPair::GidOf(200 + i), 0x900 + i, 0, Cookie());
    pair.b().Turn(pair.now);
  }
  EXPECT_EQ(Opened() - Closed(), 14u);
  EXPECT_EQ(Confirm(1), 1u) << "the member";
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
  options.idle_limit = 0;
  pair.ends[1] = std::make_unique<ChannelEnd>(ChannelPair::GidOf(1), options);
  pair.b().Turn(pair.now);
  for (uint32_t i = 0; i < 1000; ++i)
    EXPECT_EQ(Open(ChannelPair::GidOf(7), 0x900 + i, i), DropReason::k_channel_refused);
  EXPECT_EQ(pair.b().sent.size(), 64u);
}

// The end of each channel costs its worker a look at all queue pairs.
TEST(OpeningLimits, PeerThatOpensAgainAndAgain_HasItsRate) {
  channel::ChannelTable table;
  channel::OpeningLimits limits(table);
  const wire::Gid peer = ChannelPair::GidOf(7);
  const auto taken = [&](TimePoint now) {
    int count = 0;
    for (int i = 0; i < 5000; ++i) count += limits.TakesNew(peer, /*authentic=*/true, now);
    return count;
  };
  const TimePoint begin = TimePoint() + Seconds(100);
  EXPECT_EQ(taken(begin), 2048);
  EXPECT_EQ(taken(begin + Seconds(1)), 128);
  EXPECT_TRUE(limits.TakesNew(ChannelPair::GidOf(8), true, begin + Seconds(1)));
}

}  // namespace
}  // namespace rocegw::testing::half_open
