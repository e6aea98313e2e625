// SPDX-License-Identifier: Apache-2.0
// Which packets of a burst share a datagram, and in which order.
#include "gateway/worker/send/frame_bundler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/codec.h"

namespace rocegw::worker {
namespace {

using wire::Opcode;

class FrameBundlerTest : public ::testing::Test {
 protected:
  FrameBundlerTest() { bundler_.Begin({.max_datagram = kMost, .burst = 32}); }

  static constexpr size_t kMost = 1500;

  // Returns a datagram of the channel with `bytes` behind its BTH.
  port::TxPacket& Packet(uint32_t channel, uint32_t psn, size_t bytes,
                         Opcode opcode = Opcode::kChannelFrame) {
    std::vector<uint8_t>& data = bytes_.emplace_back(8192);
    port::TxPacket& packet = packets_.emplace_back();
    packet.data = data.data();
    packet.path.destination = wire::Gid::FromV4(0xC0000202);
    packet.bundles = true;
    wire::Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.dest_qpn = Qpn{channel};
    headers.bth.psn = Psn(psn);
    packet.length = static_cast<uint32_t>(wire::EncodeHeaders(headers, packet.data) + bytes);
    return packet;
  }
  // Returns the PSNs in a packet.
  static std::vector<uint32_t> PsnsIn(const port::TxPacket& packet) {
    const std::span<const uint8_t> bytes(packet.data, packet.length);
    std::span<const uint8_t> rest = bytes.subspan(wire::kBthLength);
    EXPECT_EQ(bytes[0], 0xC3);
    EXPECT_EQ(wire::CheckBundle(rest), metrics::DropReason::kNone);
    std::vector<uint32_t> psns;
    wire::BundleEntry entry;
    while (wire::TakeEntry(rest, entry)) psns.push_back(entry.psn.value);
    return psns;
  }

  FrameBundler bundler_;

 private:
  std::deque<std::vector<uint8_t>> bytes_;
  std::deque<port::TxPacket> packets_;
};

TEST_F(FrameBundlerTest, PacketsOfAChannel_ShareOneDatagramInOrder) {
  port::TxPacket& first = Packet(5, 1, 100);
  EXPECT_FALSE(bundler_.Join(first));
  EXPECT_TRUE(bundler_.Join(Packet(5, 2, 40)));
  EXPECT_TRUE(bundler_.Join(Packet(5, 9, 24, Opcode::kChannelAck)));
  EXPECT_EQ(PsnsIn(first), (std::vector<uint32_t>{1, 2, 9}));
  EXPECT_EQ(bundler_.bundles(), 1u);
  EXPECT_EQ(bundler_.entries(), 3u);
}

TEST_F(FrameBundlerTest, PayloadsByReference_AreCopiedIntoTheBundle) {
  const std::vector<uint8_t> outside(60, 0x5A);
  port::TxPacket& first = Packet(5, 1, 100);
  port::TxPacket& second = Packet(5, 2, 100);
  for (port::TxPacket* packet : {&first, &second})
    packet->outside = {outside.data(), 40, static_cast<uint32_t>(outside.size())};
  EXPECT_FALSE(bundler_.Join(first));
  EXPECT_TRUE(first.refers()) << "it may leave alone";
  EXPECT_TRUE(bundler_.Join(second));
  EXPECT_FALSE(first.refers());
  EXPECT_EQ(PsnsIn(first), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(std::count(first.data, first.data + first.length, 0x5A), 2 * 60);
}

TEST_F(FrameBundlerTest, OnePacket_StaysAsItIs) {
  port::TxPacket& only = Packet(5, 1, 100);
  EXPECT_FALSE(bundler_.Join(only));
  EXPECT_EQ(only.data[0], 0xC0);
  EXPECT_EQ(only.length, 112u);
  EXPECT_EQ(bundler_.bundles(), 0u);
}

TEST_F(FrameBundlerTest, ChannelsInTurn_EachFillTheirOwn) {
  port::TxPacket& first = Packet(5, 1, 100);
  port::TxPacket& second = Packet(6, 1, 100);
  EXPECT_FALSE(bundler_.Join(first));
  EXPECT_FALSE(bundler_.Join(second));
  EXPECT_TRUE(bundler_.Join(Packet(5, 2, 100)));
  EXPECT_TRUE(bundler_.Join(Packet(6, 2, 100)));
  EXPECT_EQ(PsnsIn(first), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(PsnsIn(second), (std::vector<uint32_t>{1, 2}));
}

TEST_F(FrameBundlerTest, MoreChannelsThanAreRemembered_StillLeave) {
  for (uint32_t channel = 1; channel <= 40; ++channel)
    EXPECT_FALSE(bundler_.Join(Packet(channel, 1, 100)));
  EXPECT_TRUE(bundler_.Join(Packet(40, 2, 100)));
  EXPECT_TRUE(bundler_.Join(Packet(33, 2, 100)));
  EXPECT_FALSE(bundler_.Join(Packet(1, 2, 100))) << "forgotten";
}

TEST_F(FrameBundlerTest, FullDatagram_BeginsTheNextOne) {
  port::TxPacket& first = Packet(5, 1, 700);
  EXPECT_FALSE(bundler_.Join(first));
  // 12 + 8 + 700 + 8 + 764 + 4 bytes of ICRC are less than the most, and 4 more bytes are too many.
  EXPECT_TRUE(bundler_.Join(Packet(5, 2, 764)));
  EXPECT_LE(first.length + wire::kIcrcLength, kMost);
  port::TxPacket& next = Packet(5, 3, 4);
  EXPECT_FALSE(bundler_.Join(next));
  EXPECT_TRUE(bundler_.Join(Packet(5, 4, 4)));
  EXPECT_EQ(PsnsIn(first), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(PsnsIn(next), (std::vector<uint32_t>{3, 4}));
}

TEST_F(FrameBundlerTest, LongPacket_LeavesAloneAndKeepsTheOrder) {
  port::TxPacket& first = Packet(5, 1, 100);
  EXPECT_FALSE(bundler_.Join(first));
  EXPECT_FALSE(bundler_.Join(Packet(5, 2, FrameBundler::kMostJoined)));
  EXPECT_EQ(first.data[0], 0xC0);
  // The packet behind the long one may not leave before it.
  EXPECT_TRUE(bundler_.Join(Packet(5, 3, 100)));
  EXPECT_EQ(first.data[0], 0xC0);
}

TEST_F(FrameBundlerTest, PeerWithoutTheOption_GetsEachPacketAlone) {
  for (uint32_t psn = 1; psn <= 3; ++psn) {
    port::TxPacket& packet = Packet(5, psn, 100);
    packet.bundles = false;
    EXPECT_FALSE(bundler_.Join(packet));
    EXPECT_EQ(packet.data[0], 0xC0);
  }
}

TEST_F(FrameBundlerTest, OtherPath_IsAnotherDatagram) {
  EXPECT_FALSE(bundler_.Join(Packet(5, 1, 100)));
  port::TxPacket& port = Packet(5, 2, 100);
  port.path.source_port = 0xC999;
  EXPECT_FALSE(bundler_.Join(port));
  port::TxPacket& host = Packet(5, 3, 100);
  host.path.destination = wire::Gid::FromV4(0xC0000203);
  EXPECT_FALSE(bundler_.Join(host));
  port::TxPacket& ecn = Packet(5, 4, 100);
  ecn.path.traffic_class = wire::kEcnEct0;
  EXPECT_FALSE(bundler_.Join(ecn));
}

TEST_F(FrameBundlerTest, NewBurst_ForgetsThePacketsOfTheLast) {
  EXPECT_FALSE(bundler_.Join(Packet(5, 1, 100)));
  bundler_.Begin({.max_datagram = kMost, .burst = 32});
  EXPECT_FALSE(bundler_.Join(Packet(5, 2, 100)));
}

TEST_F(FrameBundlerTest, KnownChecksum_IsForgottenWithTheFirstEntry) {
  port::TxPacket& first = Packet(5, 1, 100);
  first.known_crc = {20, 80, 0x12345678};
  EXPECT_FALSE(bundler_.Join(first));
  EXPECT_EQ(first.known_crc.length, 80u);
  EXPECT_TRUE(bundler_.Join(Packet(5, 2, 100)));
  EXPECT_EQ(first.known_crc.length, 0u);
}

}  // namespace
}  // namespace rocegw::worker
