// SPDX-License-Identifier: Apache-2.0
// Channels between gateways that share a key: forged, repeated or untagged packets change nothing;
// peers without a key are served as far as the policy allows; keys are replaced while channels are
// in use.
#include "gateway/wire/authentication.h"

#include <gtest/gtest.h>

#include <set>

#include "gateway/channel/acceptor/peer_sequences.h"
#include "tests/support/random.h"
#include "tests/unit/channel/keyed_channels.h"

namespace rocegw::testing::authentication {
namespace {

using channel::Channel;
using channel::ChannelState;
using keyed::kFirst;
using keyed::kSecond;
using keyed::kThird;
using metrics::DropReason;
using wire::ChannelControl;
using wire::ChannelReason;
using wire::ControlKind;

FleetKeys Keys(std::initializer_list<SecretKey> keys,
               PeerAuthentication policy = PeerAuthentication::kPreferred) {
  return keyed::WithKeys({.policy = policy}, keys);
}

class AuthenticationTest : public keyed::KeyedChannelsTest {
 protected:
  AuthenticationTest() { Give({kFirst}, {kFirst}); }
  void Give(std::initializer_list<SecretKey> a, std::initializer_list<SecretKey> b) {
    pair.a().set.SetKeys(Keys(a));
    pair.b().set.SetKeys(Keys(b));
  }
  // Opens a channel to a peer whose discovery answer had a valid tag.
  Channel* Reach(uint8_t traffic_class = 0) {
    return ReachWith(wire::kOptionAuthentication, traffic_class);
  }
  Channel* Open() { return Settled(Reach()); }
  // Returns a control packet from a to b's number by an attacker who knows everything except the
  // keys.
  ChannelPacket Forged(const ChannelControl& control, Qpn to, const SecretKey& key = kThird) {
    uint8_t room[256];
    port::TxPacket packet{.data = room};
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelControl;
    headers.bth.dest_qpn = to;
    size_t length = wire::EncodeHeaders(headers, packet.data);
    const std::span body(packet.data + length, wire::EncodeControl(control, packet.data + length));
    if (control.tagged) wire::SealControl(key, pair.a().gid, pair.b().gid, to, body);
    packet.length = static_cast<uint32_t>(length + body.size());
    packet.path = {.source = pair.a().gid, .destination = pair.b().gid};
    return Sealed(packet);
  }
  ChannelControl Known(ControlKind kind, const Channel& from, bool tagged) {
    const bool reset = kind == ControlKind::kReset;
    return {.kind = kind,
            .reason = reset || kind == ControlKind::kClose ? ChannelReason::kUnknownChannel
                                                           : ChannelReason::kNone,
            .channel = from.number().value,
            .epoch = from.epoch(),
            .peer_epoch = from.peer_epoch(),
            .probe = kind == ControlKind::kProbe ? 9u : 0u,
            .instance = pair.a().options.instance,
            .tagged = tagged,
            .sequence = tagged ? 1000u : 0u};
  }
  uint64_t Unauthenticated(ChannelEnd& end) {
    return end.counters.channel_unauthenticated_events.Read();
  }
};

TEST_F(AuthenticationTest, BothHaveTheKey_AllControlPacketsAreTagged) {
  Channel* channel = Reach();
  pair.a().Hold(channel);
  int controls = 0;
  const auto look = [&](const ChannelPacket& packet) {
    if (!packet.Is(wire::Operation::kChannelControl)) return false;
    ++controls;
    EXPECT_TRUE(packet.Control().tagged);
    return false;
  };
  pair.Settle(look);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_TRUE(channel->authenticated());
  EXPECT_TRUE(OtherEnd()->authenticated());
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle(look);
  for (Channel* held : pair.a().held) held->Release();
  pair.a().held.clear();
  pair.Advance(Seconds(130), look);
  EXPECT_GE(controls, 4) << "open, opened, close, closed";
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1}));
  EXPECT_EQ(Unauthenticated(pair.a()) + Unauthenticated(pair.b()), 0u);
  EXPECT_EQ(pair.a().counters.channel_close_events.Read(), 1u);
}

TEST_F(AuthenticationTest, ForgedWithAllNumbersRight_ChangesNothing) {
  Channel* channel = Open();
  ASSERT_NE(channel, nullptr);
  for (const ControlKind kind :
       {ControlKind::kProbe, ControlKind::kClose, ControlKind::kClosed, ControlKind::kReset}) {
    const Qpn to = kind == ControlKind::kReset ? channel->peer_number() : OtherEnd()->number();
    EXPECT_EQ(pair.b().Receive(Forged(Known(kind, *channel, true), to), pair.now),
              DropReason::k_channel_tag)
        << static_cast<int>(kind);
    pair.b().sent.clear();
    EXPECT_EQ(pair.b().Receive(Forged(Known(kind, *channel, false), to), pair.now),
              DropReason::k_channel_no_tag)
        << static_cast<int>(kind);
  }
  EXPECT_EQ(OtherEnd()->state(), ChannelState::kOpen);
  // A reset without a tag causes only a probe.
  pair.Settle();
  EXPECT_TRUE(pair.a().Send(*channel, 5, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{5}));
}

TEST_F(AuthenticationTest, WhatIsRepeated_IsTakenOnce) {
  Channel* channel = Reach();
  pair.a().Hold(channel);
  std::vector<ChannelPacket> to_b;
  pair.Settle([&](const ChannelPacket& packet) {
    if (packet.meta.source == pair.a().gid) to_b.push_back(packet);
    return false;
  });
  ASSERT_FALSE(to_b.empty());
  for (const ChannelPacket& packet : to_b) {
    EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_replayed);
    EXPECT_TRUE(pair.b().sent.empty());
  }
}

// An open contains no epoch of its receiver: its sequence number shows that it is old.
TEST_F(AuthenticationTest, OldOpenAfterTheChannelIsGone_OpensNothing) {
  Channel* channel = Reach();
  pair.a().Hold(channel);
  std::vector<ChannelPacket> opens;
  pair.Settle([&](const ChannelPacket& packet) {
    if (packet.Is(ControlKind::kOpen)) opens.push_back(packet);
    return false;
  });
  ASSERT_EQ(opens.size(), 1u);
  // Another instance of the peer, whose channels replace these.
  pair.Restart(0);
  pair.a().set.SetKeys(Keys({kFirst}));
  Open();
  pair.Settle();
  const uint64_t opened = pair.b().counters.channel_open_events.Read();
  EXPECT_EQ(pair.b().Receive(opens[0], pair.now), DropReason::k_channel_replayed);
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), opened);
}

// An opening of another instance of a, as a gateway with the key makes it. `cookie`: of a retry.
ChannelControl OpenOf(uint32_t instance, uint32_t cookie = 0) {
  return {.kind = ControlKind::kOpen,
          .channel = 0x1000 + instance,
          .epoch = 0x77000000 + instance,
          .peer_epoch = cookie,
          .instance = 5000 + instance,
          .window = 100,
          .features = wire::kOptionPresent | wire::kOptionChannel | wire::kOptionSelectiveAck |
                      wire::kOptionCcStatic,
          .tagged = true,
          .sequence = cookie == 0 ? 1u : 2u};
}

// The windows of an address are bounded: what was recorded before its window was dropped is old.
TEST_F(AuthenticationTest, OldOpenWhoseWindowWasDropped_OpensNothing) {
  const Qpn acceptor = pair.b().options.acceptor;
  const auto receive = [&](const ChannelControl& open) {
    return pair.b().Receive(Forged(open, acceptor, kFirst), pair.now);
  };
  constexpr auto kMost = static_cast<uint32_t>(channel::PeerSequences::kMostOfAddress);
  for (uint32_t instance = 1; instance <= kMost; ++instance)
    ASSERT_EQ(receive(OpenOf(instance)), DropReason::kNone);
  // A further one must show that it is new.
  pair.b().sent.clear();
  const uint64_t opened = pair.b().counters.channel_open_events.Read();
  ASSERT_EQ(receive(OpenOf(kMost + 1)), DropReason::kNone);
  ASSERT_EQ(pair.b().sent.size(), 1u);
  ASSERT_TRUE(pair.b().sent.back().Is(ControlKind::kRetry));
  const ChannelControl retry = pair.b().sent.back().Control();
  EXPECT_TRUE(retry.tagged) << "the opener believes no other";
  EXPECT_EQ(retry.peer_epoch, OpenOf(kMost + 1).epoch);
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), opened);
  ASSERT_EQ(receive(OpenOf(kMost + 1, retry.epoch)), DropReason::kNone);
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), opened + 1);
  EXPECT_EQ(receive(OpenOf(kMost + 1, retry.epoch)), DropReason::k_channel_replayed);
  // The window of the first instance made room. Its opening comes again, some time later.
  pair.Advance(Seconds(70), [](const ChannelPacket&) { return true; });
  pair.b().sent.clear();
  const uint64_t before = pair.b().counters.channel_open_events.Read();
  receive(OpenOf(1));
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), before);
  ASSERT_EQ(pair.b().sent.size(), 1u);
  EXPECT_TRUE(pair.b().sent.back().Is(ControlKind::kRetry));
}

// A peer whose window may have been dropped opens all the same, by its cookie.
TEST_F(AuthenticationTest, NewInstanceOfAFullAddress_GetsItsChannel) {
  for (uint32_t instance = 1; instance <= channel::PeerSequences::kMostOfAddress; ++instance)
    pair.b().Receive(Forged(OpenOf(instance), pair.b().options.acceptor, kFirst), pair.now);
  pair.b().sent.clear();
  Channel* const channel = Open();
  ASSERT_NE(channel, nullptr);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_TRUE(channel->authenticated());
  EXPECT_EQ(pair.b().counters.channel_retry_events.Read(), 1u);
}

// Packets of a channel are not accepted again while it lives, however many others speak.
TEST_F(AuthenticationTest, WindowOfALivingChannel_IsKept) {
  Channel* channel = Reach();
  pair.a().Hold(channel);
  std::vector<ChannelPacket> to_b;
  pair.Settle([&](const ChannelPacket& packet) {
    if (packet.meta.source == pair.a().gid) to_b.push_back(packet);
    return false;
  });
  ASSERT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  ASSERT_TRUE(OtherEnd()->confirmed());
  const Qpn acceptor = pair.b().options.acceptor;
  for (uint32_t instance = 1; instance <= 300; ++instance) {
    pair.b().sent.clear();
    pair.b().Receive(Forged(OpenOf(instance), acceptor, kFirst), pair.now);
    if (pair.b().sent.empty() || !pair.b().sent.back().Is(ControlKind::kRetry)) continue;
    const uint32_t cookie = pair.b().sent.back().Control().epoch;
    pair.b().Receive(Forged(OpenOf(instance, cookie), acceptor, kFirst), pair.now);
  }
  ASSERT_FALSE(to_b.empty());
  for (const ChannelPacket& packet : to_b)
    if (packet.Is(wire::Operation::kChannelControl)) {
      EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_replayed);
    }
}

TEST_F(AuthenticationTest, PeerWithoutKey_IsServedAndCounted) {
  pair.b().set.SetKeys({});
  Channel* channel = pair.Open();
  EXPECT_FALSE(channel->authenticated());
  EXPECT_EQ(Unauthenticated(pair.a()), 1u);
  EXPECT_EQ(Unauthenticated(pair.b()), 0u) << "has no keys either";
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1}));
}

TEST_F(AuthenticationTest, OpenOfPeerWithoutKey_IsServedAndCounted) {
  pair.a().set.SetKeys({});
  EXPECT_EQ(pair.Open()->state(), ChannelState::kOpen);
  EXPECT_EQ(Unauthenticated(pair.b()), 1u);
}

TEST_F(AuthenticationTest, Required_RefusesOpenWithoutTag) {
  pair.a().set.SetKeys({});
  pair.b().set.SetKeys(Keys({kFirst}, PeerAuthentication::kRequired));
  Channel* channel = pair.a().Reach(pair.b(), pair.now);
  pair.a().Hold(channel);
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.a().why, ChannelReason::kNotAllowed);
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), 0u);
}

TEST_F(AuthenticationTest, Required_OpensNothingWithoutTag) {
  pair.a().set.SetKeys(Keys({kFirst}, PeerAuthentication::kRequired));
  EXPECT_EQ(pair.a().Reach(pair.b(), pair.now), nullptr);
  EXPECT_NE(Open(), nullptr) << "with tags it does";
}

TEST_F(AuthenticationTest, RequiredBeforeAKeyHasCome_RefusesAll) {
  pair.a().set.SetKeys(Keys({}, PeerAuthentication::kRequired));
  EXPECT_EQ(Reach(), nullptr);
}

TEST_F(AuthenticationTest, Off_UsesNoTags) {
  pair.a().set.SetKeys(Keys({kFirst}, PeerAuthentication::kOff));
  EXPECT_FALSE(Open()->authenticated());
  EXPECT_EQ(Unauthenticated(pair.a()), 0u);
}

TEST_F(AuthenticationTest, OpenWithoutTag_EndsNoAuthenticatedChannel) {
  Channel* channel = Open();
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  // An attacker with the peer's address, on the path: sees the packets sent to it.
  const ChannelControl open{.kind = ControlKind::kOpen,
                            .channel = 0x900,
                            .epoch = 77,
                            .instance = 5,
                            .window = 64,
                            .features = ChannelPair::OptionsOf(1).features,
                            .worker = 0};
  EXPECT_EQ(pair.b().Receive(Forged(open, pair.b().options.acceptor), pair.now), DropReason::kNone);
  pair.b().Turn(pair.now);
  ASSERT_FALSE(pair.b().sent.empty());
  const ChannelControl opened = pair.b().sent.back().Control();
  pair.b().sent.clear();
  ASSERT_EQ(opened.kind, ControlKind::kOpened);
  const ChannelControl probe{.kind = ControlKind::kProbe,
                             .channel = 0x900,
                             .epoch = 77,
                             .peer_epoch = opened.epoch,
                             .probe = 1,
                             .instance = 5};
  EXPECT_EQ(pair.b().Receive(Forged(probe, Qpn{opened.channel}), pair.now), DropReason::kNone);
  pair.b().Turn(pair.now);
  EXPECT_EQ(pair.b().counters.channel_close_events.Read(), 0u);
  pair.b().sent.clear();
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1, 2}));
}

TEST_F(AuthenticationTest, RestartedPeer_IsNoticedByItsTaggedReset) {
  Channel* channel = Open();
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  pair.Settle();
  pair.Restart(1);
  pair.b().set.SetKeys(Keys({kFirst}));
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Advance(Milliseconds(50));
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.a().why, ChannelReason::kUnknownChannel);
}

TEST_F(AuthenticationTest, Rotation_WithoutAGap) {
  Channel* channel = Open();
  uint32_t message = 0;
  const auto works = [&] {
    EXPECT_TRUE(pair.a().Send(*channel, ++message, pair.now));
    pair.Settle();
    EXPECT_EQ(pair.b().delivered.back(), message);
    EXPECT_TRUE(Reach(static_cast<uint8_t>(message << 2))->authenticated());
    pair.Settle();
    EXPECT_EQ(Reach(static_cast<uint8_t>(message << 2))->state(), ChannelState::kOpen);
  };
  works();
  Give({kFirst, kSecond}, {kFirst});
  works();
  Give({kSecond, kFirst}, {kFirst, kSecond});
  works();
  Give({kSecond, kFirst}, {kSecond, kFirst});
  works();
  Give({kSecond, kThird}, {kSecond});
  works();
  EXPECT_EQ(pair.a().gone + pair.b().gone, 0);
}

TEST_F(AuthenticationTest, KeyOfNoGeneration_OpensNothing) {
  Give({kThird}, {kFirst});
  Channel* channel = Reach();
  pair.a().Hold(channel);
  pair.Advance(Seconds(1));
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), 0u);
}

// Loss, duplication and reordering of packets, while keys are replaced.
class HarmedAuthenticationTest : public AuthenticationTest,
                                 public ::testing::WithParamInterface<uint64_t> {};

TEST_P(HarmedAuthenticationTest, LossRepetitionAndRotation_AllArrivesOnce) {
  Random random(GetParam());
  std::deque<ChannelPacket> kept;
  const auto harm = [&](const ChannelPacket& packet) {
    if (random.Below(5) == 0) kept.push_back(packet);
    return random.Below(5) == 0;
  };
  Channel* channel = Reach();
  pair.a().Hold(channel);
  for (uint32_t message = 1; message <= 60; ++message) {
    if (message == 20) Give({kFirst, kSecond}, {kFirst});
    if (message == 30) Give({kSecond, kFirst}, {kFirst, kSecond});
    if (message == 40) Give({kSecond, kFirst}, {kSecond, kFirst});
    if (message == 50) Give({kSecond}, {kSecond, kFirst});
    (void)pair.a().Send(*channel, message, pair.now);
    pair.Advance(Milliseconds(2), harm);
    while (!kept.empty()) {
      const ChannelPacket again = kept.front();
      kept.pop_front();
      (again.meta.source == pair.a().gid ? pair.b() : pair.a()).Receive(again, pair.now);
    }
  }
  pair.Advance(Seconds(2));
  EXPECT_EQ(pair.a().gone, 0);
  std::vector<uint32_t> sorted = pair.b().delivered;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end()) << "taken twice";
  EXPECT_GE(sorted.size(), 40u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HarmedAuthenticationTest, ::testing::Range<uint64_t>(1, 21));

ChannelControl Numbered(uint32_t instance, uint64_t sequence) {
  return {.instance = instance, .tagged = true, .sequence = sequence};
}

// A holder of the key may name any instance and worker, and a gateway that is only replaced sees
// its peers restart without end.
TEST(PeerSequences, ManyInstancesOfOneAddress_TakeNoSpaceOfOthers) {
  const channel::ChannelTable none;
  channel::PeerSequences sequences(none);
  const wire::Gid other = wire::Gid::FromV4(1);
  ASSERT_TRUE(sequences.Take(other, 0, Numbered(7, 5)));
  for (uint32_t i = 0; i < 70000; ++i)
    ASSERT_TRUE(sequences.Take(wire::Gid::FromV4(2), i % 64, Numbered(1 + i / 64, 1))) << i;
  EXPECT_EQ(sequences.size(), channel::PeerSequences::kMostOfAddress + 1);
  EXPECT_FALSE(sequences.Take(other, 0, Numbered(7, 5))) << "its window is kept";
  EXPECT_TRUE(sequences.Take(other, 0, Numbered(8, 5)));
  EXPECT_TRUE(sequences.Take(wire::Gid::FromV4(3), 0, Numbered(1, 1)));
}

TEST(PeerSequences, LatestInstances_AreTakenOnce) {
  const channel::ChannelTable none;
  channel::PeerSequences sequences(none);
  const wire::Gid peer = wire::Gid::FromV4(1);
  for (uint32_t instance = 1; instance <= 100; ++instance) {
    for (uint16_t worker = 0; worker < 64; ++worker)
      ASSERT_TRUE(sequences.Take(peer, worker, Numbered(instance, 3)));
    // The instance before is used before the present one, as in life.
    for (uint16_t worker = 0; worker < 64; ++worker)
      ASSERT_TRUE(instance == 1 || !sequences.Take(peer, worker, Numbered(instance - 1, 3)));
    for (uint16_t worker = 0; worker < 64; ++worker)
      ASSERT_FALSE(sequences.Take(peer, worker, Numbered(instance, 3)));
  }
}

TEST(PeerSequences, ManyAddresses_TheOneLeastUsedIsForgotten) {
  const channel::ChannelTable none;
  channel::PeerSequences sequences(none);
  const wire::Gid used = wire::Gid::FromV4(1);
  uint64_t sequence = 0;
  for (uint32_t i = 0; i < 2 * channel::PeerSequences::kMost; ++i) {
    ASSERT_TRUE(sequences.Take(wire::Gid::FromV4(2 + i), 0, Numbered(1, 1))) << i;
    if (i % 1000 == 0) {
      ASSERT_TRUE(sequences.Take(used, 0, Numbered(1, ++sequence)));
    }
  }
  EXPECT_EQ(sequences.size(), channel::PeerSequences::kMost);
  EXPECT_FALSE(sequences.Take(used, 0, Numbered(1, sequence)));
}

TEST(ReplayWindow, RandomOrder_AgreesWithAModel) {
  Random random(7);
  channel::ReplayWindow window;
  std::set<uint64_t> taken;
  uint64_t highest = 0;
  int refused = 0;
  for (int i = 0; i < 100000; ++i) {
    const uint64_t middle = static_cast<uint64_t>(i) / 4 + 1;
    const uint64_t sequence = middle + random.Below(200);
    const bool old = sequence + channel::ReplayWindow::kWidth <= highest;
    const bool expected = !old && !taken.contains(sequence);
    ASSERT_EQ(window.Take(sequence), expected) << sequence << " highest " << highest;
    refused += expected ? 0 : 1;
    if (!expected) continue;
    taken.insert(sequence);
    highest = std::max(highest, sequence);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace rocegw::testing::authentication
