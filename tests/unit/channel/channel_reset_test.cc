// SPDX-License-Identifier: Apache-2.0
// Resets of channels: by a peer that restarted, and by strangers.
#include <gtest/gtest.h>

#include "tests/unit/channel/channel_set_fixture.h"

namespace rocegw::testing::channel_set {
namespace {

TEST_F(ChannelSetTest, PeerRestarted_FrameDrawsResetAndTheChannelEnds) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  pair.Restart(1);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1) << "its users learn of it at once";
  EXPECT_TRUE(pair.b().delivered.empty());
  EXPECT_NE(pair.Open(), nullptr);
}

TEST_F(ChannelSetTest, PeerRestartedAndOpens_TheOldOneEnds) {
  OpenAndSend(1);
  pair.Restart(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  pair.b().Hold(back);
  pair.Settle();
  EXPECT_EQ(back->state(), ChannelState::kOpen);
  EXPECT_EQ(pair.a().gone, 0) << "anybody could have said so";
  EXPECT_TRUE(pair.b().Send(*back, 3, pair.now));
  pair.Advance(Milliseconds(1));
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.a().delivered, (Numbers{3}));
}

// The 16 bits of an epoch in frames can be guessed; both epochs cannot.
TEST_F(ChannelSetTest, ForgedReset_ChangesNothingUnlessItNamesBothEpochs) {
  Channel* channel = OpenAndSend(1);
  const auto reset = [&](uint32_t number, uint32_t epoch, const wire::Gid& from,
                         uint32_t peer_epoch = 0) {
    uint8_t room[256];
    port::TxPacket packet{.data = room};
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelControl;
    headers.bth.dest_qpn = channel->number();
    size_t length = wire::EncodeHeaders(headers, packet.data);
    length += wire::EncodeControl({.kind = ControlKind::kReset,
                                   .reason = ChannelReason::kUnknownChannel,
                                   .channel = number,
                                   .epoch = epoch,
                                   .peer_epoch = peer_epoch},
                                  packet.data + length);
    packet.length = static_cast<uint32_t>(length);
    packet.path = {.source = from, .destination = pair.a().gid};
    return pair.a().Receive(Sealed(packet), pair.now);
  };
  const uint32_t number = channel->peer_number().value;
  const uint32_t epoch = channel->peer_epoch();
  EXPECT_EQ(reset(number, epoch ^ 1, pair.b().gid), DropReason::k_channel_epoch);
  EXPECT_EQ(reset(number + 1, epoch, pair.b().gid), DropReason::k_unknown_channel);
  EXPECT_EQ(reset(number, epoch, ChannelPair::GidOf(9)), DropReason::k_unknown_channel);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_EQ(reset(number, epoch & 0xFFFF, pair.b().gid), DropReason::kNone);
  size_t probes = 0;
  pair.Settle([&](const ChannelPacket& packet) {
    probes += packet.Is(ControlKind::kProbe) ? 1 : 0;
    return false;
  });
  EXPECT_EQ(probes, 1u) << "the peer is asked, and has the channel";
  EXPECT_EQ(reset(number, epoch, pair.b().gid, channel->epoch() ^ 0x10000), DropReason::kNone);
  EXPECT_EQ(reset(number, epoch ^ 0x10000, pair.b().gid, channel->epoch()), DropReason::kNone);
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 0);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (Numbers{1, 2}));
  EXPECT_EQ(reset(number, epoch, pair.b().gid, channel->epoch()), DropReason::kNone);
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1);
}

// A reset that answers a frame causes one probe at a time, whoever sends it.
TEST_F(ChannelSetTest, ForgedResets_DrawNoMoreThanOneProbe) {
  Channel* channel = OpenAndSend(1);
  for (int i = 0; i < 100; ++i) channel->Challenge(pair.now);
  channel->Due();
  pair.a().Turn(pair.now);
  EXPECT_EQ(CountOf(pair.a().sent, ControlKind::kProbe), 1u);
}

TEST_F(ChannelSetTest, FrameOfAnotherEpochOrAddress_Dropped) {
  Channel* channel = OpenAndSend(1);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  ChannelPacket packet = pair.a().sent.front();
  pair.a().sent.clear();
  ChannelPacket elsewhere = packet;
  elsewhere.meta.source = ChannelPair::GidOf(9);
  wire::Path path{.source = elsewhere.meta.source,
                  .destination = pair.b().gid,
                  .source_port = packet.meta.source_port};
  wire::SealIcrc(path, 7, elsewhere.bytes.data(), elsewhere.bytes.size() - wire::kIcrcLength);
  EXPECT_EQ(pair.b().Receive(elsewhere, pair.now), DropReason::k_wrong_address);
  packet.bytes[wire::kBthLength + 3] ^= 1;  // changes the epoch
  path.source = pair.a().gid;
  wire::SealIcrc(path, 7, packet.bytes.data(), packet.bytes.size() - wire::kIcrcLength);
  EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_epoch);
  EXPECT_EQ(pair.b().delivered, (Numbers{1}));
}

TEST_F(ChannelSetTest, FrameThatCameBefore_NotDeliveredAgain) {
  Channel* channel = pair.Open();
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  const ChannelPacket packet = pair.a().sent.front();
  pair.Settle();
  EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_duplicate);
  EXPECT_EQ(pair.b().delivered, (Numbers{2}));
}

TEST_F(ChannelSetTest, Resets_NoMoreThanTheirRate) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  const ChannelPacket packet = pair.a().sent.front();
  pair.Restart(1);
  // The bucket is full after a while: 64 at once and 1,000 a second.
  pair.now = pair.now + Seconds(10);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_unknown_channel);
    pair.now = pair.now + Microseconds(100);
  }
  const size_t resets = CountOf(pair.b().sent, ControlKind::kReset);
  EXPECT_GE(resets, 560u);
  EXPECT_LE(resets, 566u);
}

}  // namespace
}  // namespace rocegw::testing::channel_set
