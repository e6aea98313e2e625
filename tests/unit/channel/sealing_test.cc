// SPDX-License-Identifier: Apache-2.0
// Channels whose datagrams are sealed: what is forged, changed, repeated or sent without a seal
// changes nothing; what both ends want is agreed on, and nobody on the path can talk them out of
// it; keys are replaced while channels are in use; no nonce is used twice.
#include <gtest/gtest.h>

#include <set>

#include "gateway/cipher/openssl_ciphers.h"
#include "gateway/wire/byte_order.h"
#include "gateway/wire/seal/sealed_datagram.h"
#include "tests/support/random.h"
#include "tests/unit/channel/keyed_channels.h"

namespace rocegw::testing::sealing {
namespace {

using channel::Channel;
using channel::ChannelState;
using keyed::kFirst;
using keyed::kSecond;
using metrics::DropReason;
using wire::ChannelReason;
using wire::ControlKind;
using wire::Operation;

const FrameCiphers& Ciphers() {
  static const cipher::OpensslCiphers ciphers;
  return ciphers;
}

FleetKeys Keys(std::initializer_list<SecretKey> keys,
               FrameProtection protection = FrameProtection::kPreferred) {
  return keyed::WithKeys({.protection = protection, .ciphers = &Ciphers()}, keys);
}

wire::SealedParts PartsOf(const ChannelPacket& packet) {
  wire::SealedParts parts;
  EXPECT_EQ(wire::DecodeSealed(packet.Decoded(), parts), DropReason::kNone);
  return parts;
}

bool IsSealed(const ChannelPacket& packet) { return packet.Is(Operation::kChannelSealed); }

class SealingTest : public keyed::KeyedChannelsTest {
 protected:
  SealingTest() { Protect(FrameProtection::kPreferred, FrameProtection::kPreferred); }
  void Protect(FrameProtection a, FrameProtection b) {
    pair.a().set.SetKeys(Keys({kFirst}, a));
    pair.b().set.SetKeys(Keys({kFirst}, b));
  }
  void Renew() {
    std::destroy_at(&pair);
    std::construct_at(&pair);
  }
  // Opens a channel to a peer whose discovery answer had a tag and said that it seals, or not.
  Channel* Reach(bool seals = true, uint8_t traffic_class = 0) {
    return ReachWith(wire::kOptionAuthentication | (seals ? wire::kOptionSealing : 0u),
                     traffic_class);
  }
  Channel* Open(bool seals = true) { return Settled(Reach(seals)); }
  // Sends a message; returns its datagram, which is lost.
  ChannelPacket Take(Channel& channel, uint32_t message) {
    EXPECT_TRUE(pair.a().Send(channel, message, pair.now));
    ChannelPacket packet = pair.a().sent.back();
    pair.a().sent.pop_back();
    return packet;
  }
  void Works(Channel& channel, uint32_t message) {
    EXPECT_TRUE(pair.a().Send(channel, message, pair.now));
    pair.Settle();
    ASSERT_FALSE(pair.b().delivered.empty());
    EXPECT_EQ(pair.b().delivered.back(), message);
  }
  static void Flip(ChannelPacket& packet, size_t byte, uint8_t bits) {
    packet.bytes[byte] ^= bits;
    // The attacker makes the ICRC right again.
    const wire::Path path{.source = packet.meta.source,
                          .destination = packet.meta.destination,
                          .source_port = packet.meta.source_port};
    wire::SealIcrc(path, 7, packet.bytes.data(), packet.bytes.size() - wire::kIcrcLength);
  }
};

TEST_F(SealingTest, BothPrefer_EveryFrameAndAcknowledgementIsSealed) {
  Channel* const channel = Reach();
  pair.a().Hold(channel);
  int sealed = 0;
  const auto look = [&](const ChannelPacket& packet) {
    sealed += IsSealed(packet) ? 1 : 0;
    EXPECT_TRUE(IsSealed(packet) || packet.Is(Operation::kChannelControl));
    return false;
  };
  pair.Settle(look);
  ASSERT_TRUE(channel->sealed());
  ASSERT_TRUE(OtherEnd()->sealed());
  for (uint32_t i = 1; i <= 5; ++i) EXPECT_TRUE(pair.a().Send(*channel, i, pair.now));
  pair.Advance(Milliseconds(1), look);
  EXPECT_EQ(pair.b().delivered.size(), 5u);
  EXPECT_GE(sealed, 6) << "frames, and an acknowledgement";
  EXPECT_EQ(pair.a().counters.channel_unsealed_events.Read(), 0u);
  EXPECT_EQ(pair.b().counters.channel_sealed_rx_packets.Read(), 5u);
}

TEST_F(SealingTest, OneWantsEncryption_BothEncrypt) {
  Protect(FrameProtection::kPreferred, FrameProtection::kEncrypt);
  Channel* const channel = Open();
  const ChannelPacket packet = Take(*channel, 0x12345678);
  EXPECT_TRUE(PartsOf(packet).trailer.encrypted);
  const std::array<uint8_t, 4> message = {0x12, 0x34, 0x56, 0x78};
  EXPECT_EQ(std::search(packet.bytes.begin(), packet.bytes.end(), message.begin(), message.end()),
            packet.bytes.end());
  EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::kNone);
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{0x12345678}));
}

TEST_F(SealingTest, AuthenticationAlone_LeavesTheContentReadable) {
  const ChannelPacket packet = Take(*Open(), 0x12345678);
  EXPECT_FALSE(PartsOf(packet).trailer.encrypted);
  const std::array<uint8_t, 4> message = {0x12, 0x34, 0x56, 0x78};
  EXPECT_NE(std::search(packet.bytes.begin(), packet.bytes.end(), message.begin(), message.end()),
            packet.bytes.end());
}

TEST_F(SealingTest, AnyBitChanged_IsDroppedBeforeAnyStateChanges) {
  for (const FrameProtection level : {FrameProtection::kPreferred, FrameProtection::kEncrypt}) {
    Renew();
    Protect(level, level);
    Channel* const channel = Open();
    const ChannelPacket packet = Take(*channel, 1);
    const std::vector<uint8_t> before = pair.b().Written(pair.now);
    size_t tried = 0;
    for (size_t byte = 5; byte < packet.bytes.size() - wire::kIcrcLength; ++byte) {
      // Reserved bits of the BTH are neither covered nor looked at.
      if (byte == 8) continue;
      for (int bit = 0; bit < 8; ++bit) {
        ChannelPacket changed = packet;
        Flip(changed, byte, static_cast<uint8_t>(1u << bit));
        wire::RxPacket decoded;
        ASSERT_EQ(wire::Decode({changed.meta, changed.bytes}, decoded), DropReason::kNone);
        ++tried;
        const DropReason reason = pair.b().Receive(changed, pair.now);
        ASSERT_NE(reason, DropReason::kNone) << byte << "." << bit;
        ASSERT_TRUE(pair.b().delivered.empty()) << byte << "." << bit;
      }
    }
    EXPECT_EQ(tried, 8 * (packet.bytes.size() - wire::kIcrcLength - 6));
    pair.b().sent.clear();
    // A datagram for another channel number is answered by a reset, which has a rate.
    EXPECT_EQ(pair.b().Written(pair.now).size(), before.size());
    EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::kNone);
    EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1}));
  }
}

TEST_F(SealingTest, CongestionHintThatASwitchChanged_Verifies) {
  ChannelPacket packet = Take(*Open(), 1);
  Flip(packet, 4, 0x0F);
  EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::kNone);
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1}));
}

TEST_F(SealingTest, OtherAddress_DoesNotVerify) {
  Channel* const channel = Open();
  ChannelPacket packet = Take(*channel, 1);
  packet.meta.destination = ChannelPair::GidOf(9);
  Flip(packet, 12, 0);
  EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_seal);
  packet = Take(*channel, 2);
  packet.meta.source = ChannelPair::GidOf(9);
  Flip(packet, 12, 0);
  EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_wrong_address);
}

TEST_F(SealingTest, FrameOrAcknowledgementWithoutSeal_ChangesNothing) {
  Channel* const channel = Open();
  Works(*channel, 1);
  for (const bool is_frame : {true, false}) {
    uint8_t room[256];
    port::TxPacket packet{.data = room};
    wire::Headers headers;
    headers.bth.opcode = is_frame ? wire::Opcode::kChannelFrame : wire::Opcode::kChannelAck;
    headers.bth.dest_qpn = OtherEnd()->number();
    headers.bth.psn = OtherEnd()->out().una();
    size_t length = wire::EncodeHeaders(headers, packet.data);
    const wire::ChannelFrame frame{.kind = wire::FrameKind::kReadRequest,
                                   .flags = wire::kFrameLast,
                                   .epoch = OtherEnd()->epoch16(),
                                   .destination = Qpn{0x44},
                                   .source = Qpn{0x33},
                                   .message = 66};
    wire::ChannelAck ack;
    ack.epoch = OtherEnd()->epoch16();
    ack.room = 1;
    length += is_frame ? wire::EncodeFrame(frame, packet.data + length)
                       : wire::EncodeAck(ack, packet.data + length);
    packet.length = static_cast<uint32_t>(length);
    packet.path = {.source = pair.a().gid, .destination = pair.b().gid};
    const std::vector<uint8_t> before = pair.b().Written(pair.now);
    EXPECT_EQ(pair.b().Receive(Sealed(packet), pair.now), DropReason::k_channel_no_seal);
    EXPECT_EQ(pair.b().Written(pair.now), before);
  }
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1}));
}

TEST_F(SealingTest, Repeated_IsTakenOnce_AlsoOutOfOrder) {
  Channel* const channel = Open();
  std::vector<ChannelPacket> packets;
  for (uint32_t i = 1; i <= 30; ++i) packets.push_back(Take(*channel, i));
  std::reverse(packets.begin() + 1, packets.end());
  for (const ChannelPacket& packet : packets)
    EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::kNone);
  for (const ChannelPacket& packet : packets)
    EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_old);
  EXPECT_EQ(pair.b().delivered.size(), 30u);
}

// An acknowledgement has no PSN of its own that would show that it is old.
TEST_F(SealingTest, OldAcknowledgement_IsDropped) {
  Channel* const channel = Open();
  std::vector<ChannelPacket> acks;
  pair.a().Send(*channel, 1, pair.now);
  pair.Advance(Milliseconds(1), [&](const ChannelPacket& packet) {
    if (packet.meta.source == pair.b().gid && IsSealed(packet)) acks.push_back(packet);
    return false;
  });
  ASSERT_FALSE(acks.empty());
  EXPECT_EQ(pair.a().Receive(acks.front(), pair.now), DropReason::k_channel_old);
}

TEST_F(SealingTest, LostFrame_IsSentAgainUnderANewNumber) {
  Channel* const channel = Open();
  const uint64_t first = PartsOf(Take(*channel, 1)).trailer.sequence;
  std::set<uint64_t> seen = {first};
  pair.Advance(Milliseconds(100), [&](const ChannelPacket& packet) {
    if (packet.meta.source == pair.a().gid && IsSealed(packet)) {
      EXPECT_TRUE(seen.insert(PartsOf(packet).trailer.sequence).second);
    }
    return false;
  });
  EXPECT_EQ(pair.b().delivered, (std::vector<uint32_t>{1}));
  EXPECT_GE(seen.size(), 2u);
}

TEST_F(SealingTest, PeerThatDoesNotSeal_IsServedPlainAndCounted) {
  pair.b().set.SetKeys(Keys({kFirst}, FrameProtection::kOff));
  Channel* const channel = Open(false);
  EXPECT_TRUE(channel->authenticated());
  EXPECT_FALSE(channel->sealed());
  Works(*channel, 1);
  EXPECT_EQ(pair.a().counters.channel_unsealed_events.Read(), 1u);
}

// Discovery said that the peer seals, and it stopped since.
TEST_F(SealingTest, PeerThatStoppedSealing_IsServedPlainIfOnlyPreferred) {
  pair.b().set.SetKeys(Keys({kFirst}, FrameProtection::kOff));
  Channel* const channel = Open(true);
  EXPECT_FALSE(channel->sealed());
  Works(*channel, 1);
  pair.a().set.SetKeys(Keys({kFirst}, FrameProtection::kRequired));
  Channel* const other = Reach(true, 8);
  pair.a().Hold(other);
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.a().why, ChannelReason::kNotAllowed);
}

TEST_F(SealingTest, Required_OpensNothingWithoutSeal) {
  Protect(FrameProtection::kRequired, FrameProtection::kPreferred);
  EXPECT_EQ(Reach(false), nullptr);
  EXPECT_NE(Open(true), nullptr);
}

TEST_F(SealingTest, Required_RefusesOpenWithoutSeal) {
  Protect(FrameProtection::kOff, FrameProtection::kRequired);
  Channel* const channel = Reach(false);
  pair.a().Hold(channel);
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.a().why, ChannelReason::kNotAllowed);
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), 0u);
}

TEST_F(SealingTest, RequiredBeforeAKeyHasCome_OpensAndAcceptsNothing) {
  pair.b().set.SetKeys(Keys({}, FrameProtection::kRequired));
  Channel* const channel = Reach(true);
  pair.a().Hold(channel);
  pair.Advance(Seconds(1));
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.b().set.Reach(ChannelEnd::TargetOf(pair.a()), pair.b().PathTo(pair.a(), 0), 1, 0,
                               pair.now),
            nullptr);
}

// A party on the path takes the offer out of the opening or of the answer.
TEST_F(SealingTest, OfferTakenOut_OpensNothing) {
  for (const ControlKind kind : {ControlKind::kOpen, ControlKind::kOpened}) {
    Renew();
    Protect(FrameProtection::kPreferred, FrameProtection::kPreferred);
    Channel* const channel = Reach();
    pair.a().Hold(channel);
    std::vector<ChannelPacket> plain;
    pair.Settle([&](const ChannelPacket& packet) {
      if (!packet.Is(kind)) return false;
      wire::ChannelControl control = packet.Control();
      control.seals = false;
      uint8_t room[256];
      wire::Headers headers = packet.Decoded().headers;
      size_t length = wire::EncodeHeaders(headers, room);
      length += wire::EncodeControl(control, room + length);
      port::TxPacket forged{.data = room, .length = static_cast<uint32_t>(length)};
      forged.path = {.source = packet.meta.source, .destination = packet.meta.destination};
      plain.push_back(Sealed(forged));
      return true;
    });
    ASSERT_FALSE(plain.empty());
    ChannelEnd& to = kind == ControlKind::kOpen ? pair.b() : pair.a();
    EXPECT_EQ(to.Receive(plain.front(), pair.now), DropReason::k_channel_tag);
    EXPECT_NE(channel->state(), ChannelState::kOpen);
  }
}

TEST_F(SealingTest, BothOpenAtOnce_OneChannelThatSeals) {
  verbs::ChannelTarget target = ChannelEnd::TargetOf(pair.a());
  target.features = wire::kOptionAuthentication | wire::kOptionSealing;
  Channel* const a = Reach();
  Channel* const b = pair.b().set.Reach(target, pair.b().PathTo(pair.a(), 0), 77, 0, pair.now);
  pair.a().Hold(a);
  pair.b().Hold(b);
  pair.Settle();
  EXPECT_TRUE(a->sealed() && b->sealed());
  EXPECT_EQ(a->peer_number(), b->number());
  Works(*a, 1);
  EXPECT_TRUE(pair.b().Send(*b, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().delivered, (std::vector<uint32_t>{2}));
}

TEST_F(SealingTest, KeyIsReplaced_WhileFramesAreOnTheWay) {
  Channel* const channel = Open();
  Works(*channel, 1);
  const auto give = [&](std::initializer_list<SecretKey> a, std::initializer_list<SecretKey> b) {
    pair.a().set.SetKeys(Keys(a));
    pair.b().set.SetKeys(Keys(b));
  };
  give({kFirst, kSecond}, {kFirst, kSecond});
  const ChannelPacket old = Take(*channel, 2);
  give({kSecond, kFirst}, {kFirst, kSecond});
  Works(*channel, 3);
  EXPECT_EQ(channel->Snapshot().seal.tx_key_id, KeyIdOf(kSecond));
  EXPECT_EQ(OtherEnd()->Snapshot().seal.rx_key_id, KeyIdOf(kSecond));
  EXPECT_EQ(pair.b().Receive(old, pair.now), DropReason::kNone) << "made with the earlier key";
  give({kSecond}, {kSecond});
  Works(*channel, 4);
  EXPECT_EQ(pair.a().gone + pair.b().gone, 0);
}

TEST_F(SealingTest, KeyThatTheFleetHasNoMore_IsNamedByItsOwnReason) {
  Channel* const channel = Open();
  const ChannelPacket packet = Take(*channel, 1);
  pair.b().set.SetKeys(Keys({kSecond}));
  EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_key);
}

TEST_F(SealingTest, RestartedPeer_IsNoticed) {
  Channel* const channel = Open();
  Works(*channel, 1);
  pair.Restart(1);
  pair.b().set.SetKeys(Keys({kFirst}));
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Advance(Milliseconds(50));
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.a().why, ChannelReason::kUnknownChannel);
}

TEST_F(SealingTest, DatagramOfAnEarlierChannel_DoesNotVerifyOnItsSuccessor) {
  Channel* channel = Open();
  std::set<std::array<uint8_t, 16>> salts;
  for (int i = 0; i < 3; ++i) {
    // Its number is one that the next channel has not seen.
    ChannelPacket old = Take(*channel, 1);
    for (int more = 0; more < 50; ++more) old = Take(*channel, 1);
    pair.Restart(0);
    pair.a().set.SetKeys(Keys({kFirst}));
    channel = Reach();
    pair.a().Hold(channel);
    pair.Settle([&](const ChannelPacket& packet) {
      if (packet.Is(Operation::kChannelControl) && packet.Control().seals) {
        EXPECT_TRUE(salts.insert(packet.Control().seal.salt).second);
      }
      return false;
    });
    Works(*channel, 2);
    EXPECT_NE(pair.b().Receive(old, pair.now), DropReason::kNone) << "its channel is closed";
    // The attacker makes number and epoch those of the new channel.
    const size_t trailer = old.bytes.size() - wire::kIcrcLength - wire::kSealLength;
    wire::StoreBe32(old.bytes.data() + 4,
                    uint32_t{old.bytes[4]} << 24 | OtherEnd()->number().value);
    wire::StoreBe16(old.bytes.data() + trailer + 2, OtherEnd()->epoch16());
    Flip(old, 12, 0);
    EXPECT_EQ(pair.b().Receive(old, pair.now), DropReason::k_channel_seal);
    pair.b().sent.clear();
  }
}

TEST_F(SealingTest, TakenOver_GoesOnAndRepeatsNoNumber) {
  for (const FrameProtection level : {FrameProtection::kPreferred, FrameProtection::kEncrypt}) {
    Renew();
    Protect(level, level);
    Channel* channel = Open();
    Works(*channel, 1);
    const std::vector<uint8_t> state = pair.a().Written(pair.now);
    // The old gateway goes on for a while, as if it did not know that it has been replaced.
    uint64_t last = 0;
    for (uint32_t i = 0; i < 100; ++i) last = PartsOf(Take(*channel, 900 + i)).trailer.sequence;
    ASSERT_EQ(pair.a().TakeOver(state, pair.now), nullptr);
    pair.a().set.SetKeys(Keys({kFirst}, level));
    channel = pair.a().held.front();
    ASSERT_TRUE(channel->sealed());
    const ChannelPacket packet = Take(*channel, 2);
    EXPECT_GT(PartsOf(packet).trailer.sequence, last);
    EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::kNone);
    ASSERT_EQ(pair.b().TakeOver(pair.b().Written(pair.now), pair.now), nullptr);
    pair.b().set.SetKeys(Keys({kFirst}, level));
    EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_old);
    Works(*channel, 3);
  }
}

// Without keys, for example until the control thread has told them to a gateway that took over,
// nothing leaves in the clear.
TEST_F(SealingTest, NoKeysHere_NothingLeaves) {
  Channel* const channel = Open();
  pair.a().set.SetKeys({});
  pair.a().sent.clear();
  EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now));
  EXPECT_TRUE(pair.a().sent.empty());
}

TEST_F(SealingTest, FramesLeaveRoomForTheTrailer) {
  pair.a().max_datagram = 1472;
  const uint32_t plain = Open(false)->max_payload();
  Channel* const sealed = Reach(true, 8);
  EXPECT_LE(
      sealed->max_payload() + wire::kSealLength + wire::kMaxPayloadHeaderLength + wire::kIcrcLength,
      1472u);
  EXPECT_GT(plain, sealed->max_payload());
}

TEST_F(SealingTest, RandomLossRepetitionAndDelay_AllArriveOnce) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Renew();
    const FrameProtection level =
        seed % 2 == 0 ? FrameProtection::kEncrypt : FrameProtection::kRequired;
    Protect(level, level);
    Channel* const channel = Open();
    Random random(seed);
    std::vector<ChannelPacket> again;
    for (uint32_t i = 1; i <= 200; ++i) {
      if (!pair.a().Send(*channel, i, pair.now)) --i;
      if (i % 50 == 0) {
        pair.a().set.SetKeys(Keys({i % 100 == 0 ? kFirst : kSecond, kFirst}, level));
        pair.b().set.SetKeys(Keys({kFirst, kSecond}, level));
      }
      pair.Advance(Microseconds(50), [&](const ChannelPacket& packet) {
        if (random.Below(10) == 0) return true;
        if (random.Below(10) == 0) again.push_back(packet);
        return false;
      });
      for (const ChannelPacket& packet : again) {
        ChannelEnd& to = packet.meta.source == pair.a().gid ? pair.b() : pair.a();
        EXPECT_NE(to.Receive(packet, pair.now), DropReason::kNone);
      }
      again.clear();
    }
    pair.Advance(Seconds(2));
    std::vector<uint32_t> all = pair.b().delivered;
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), 200u) << seed;
    for (uint32_t i = 0; i < 200; ++i) ASSERT_EQ(all[i], i + 1);
  }
}

}  // namespace
}  // namespace rocegw::testing::sealing
