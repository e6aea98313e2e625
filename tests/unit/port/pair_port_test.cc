// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/pair_port.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <thread>
#include <vector>

#include "gateway/wire/crc/icrc.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::port::pair_port {
namespace {

using rocegw::testing::IsTestPacket;
using rocegw::testing::PsnOf;
using rocegw::testing::ReceiveAll;
using rocegw::testing::SendTestPacket;
using rocegw::testing::TestPath;
using rocegw::testing::WriteTestPacket;

constexpr Qpn kQpn{0x12};

TEST(PairPort_Transmit, DeliversBytesPathAndAGoodIcrc) {
  PairLink link({.first_ip_id = 0xFFFF});
  const wire::Path path = TestPath();
  ASSERT_TRUE(SendTestPacket(link.port(0), path, kQpn, 7, 100));
  ASSERT_TRUE(SendTestPacket(link.port(0), path, kQpn, 8, 0));
  const auto got = ReceiveAll(link.port(1));
  ASSERT_EQ(got.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const wire::RxMeta& meta = got[i].meta;
    EXPECT_TRUE(IsTestPacket(got[i].bytes));
    EXPECT_EQ(PsnOf(got[i].bytes), 7 + i);
    EXPECT_EQ(meta.source, path.source);
    EXPECT_EQ(meta.destination, path.destination);
    EXPECT_EQ(meta.source_port, path.source_port);
    EXPECT_EQ(meta.traffic_class, path.traffic_class);
    EXPECT_EQ(meta.hop_limit, path.hop_limit);
    EXPECT_TRUE(meta.ip_id_known);
    EXPECT_EQ(meta.ip_id, static_cast<uint16_t>(0xFFFF + i));
    uint16_t id = meta.ip_id;
    EXPECT_TRUE(wire::VerifyIcrc(meta, got[i].bytes, &id));
  }
  EXPECT_EQ(got[0].bytes.size(), 12U + 100 + 4);
  EXPECT_TRUE(ReceiveAll(link.port(0)).empty());
}

TEST(PairPort_Transmit, Ipv6HasNoIpId) {
  PairLink link;
  wire::Path path = TestPath();
  path.source.bytes[0] = path.destination.bytes[0] = 0x20;
  ASSERT_TRUE(SendTestPacket(link.port(0), path, kQpn, 1, 8));
  const auto got = ReceiveAll(link.port(1));
  ASSERT_EQ(got.size(), 1U);
  EXPECT_FALSE(got[0].meta.ip_id_known);
  uint16_t id = 0;
  EXPECT_TRUE(wire::VerifyIcrc(got[0].meta, got[0].bytes, &id));
}

TEST(PairPort_Transmit, HiddenIpIdIsRecoveredFromTheIcrc) {
  PairLink link({.ip_id_visible = false, .first_ip_id = 4711});
  ASSERT_TRUE(SendTestPacket(link.port(0), TestPath(), kQpn, 1, 8));
  const auto got = ReceiveAll(link.port(1));
  ASSERT_EQ(got.size(), 1U);
  EXPECT_FALSE(got[0].meta.ip_id_known);
  uint16_t id = 0;
  EXPECT_TRUE(wire::VerifyIcrc(got[0].meta, got[0].bytes, &id));
  EXPECT_EQ(id, 4711);
}

TEST(PairPort_Acquire, DryPoolFillsAgainWhenTheReceiverIsDone) {
  PairLink link({.packets_per_queue = 4});
  for (uint32_t psn = 0; psn < 4; ++psn) {
    ASSERT_TRUE(SendTestPacket(link.port(0), TestPath(), kQpn, psn, 8));
  }
  EXPECT_EQ(link.port(0).Acquire(), nullptr);
  std::array<wire::RxDatagram, 8> burst;
  ASSERT_EQ(link.port(1).Receive(burst), 4U);
  EXPECT_EQ(link.port(0).Acquire(), nullptr) << "the receiver still reads them";
  ASSERT_EQ(link.port(1).Receive(burst), 0U);
  std::array<TxPacket*, 4> all;
  for (TxPacket*& packet : all) packet = link.port(0).Acquire();
  EXPECT_EQ(std::count(all.begin(), all.end(), nullptr), 0);
  EXPECT_EQ(link.port(0).Acquire(), nullptr);
  for (TxPacket* packet : all) link.port(0).Release(packet);
  EXPECT_NE(link.port(0).Acquire(), nullptr);
}

TEST(PairPort_Transmit, FullRingPushesBackAndKeepsOrder) {
  PairLink link({.packets_per_queue = 16, .queue_depth = 4});
  std::vector<TxPacket*> packets;
  for (uint32_t psn = 0; psn < 6; ++psn) {
    TxPacket* packet = link.port(0).Acquire();
    packet->path = TestPath();
    packet->length = static_cast<uint32_t>(WriteTestPacket(kQpn, psn, 8, packet->data));
    packets.push_back(packet);
  }
  ASSERT_EQ(link.port(0).Transmit(packets), 4U);
  EXPECT_EQ(link.port(0).counters().tx_pushback.Read(), 1U);
  auto got = ReceiveAll(link.port(1));
  ASSERT_EQ(link.port(0).Transmit(std::span(packets).subspan(4)), 2U);
  for (auto& more : ReceiveAll(link.port(1))) got.push_back(more);
  ASSERT_EQ(got.size(), 6U);
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(PsnOf(got[i].bytes), i);
    EXPECT_EQ(got[i].meta.ip_id, i);
    uint16_t id = got[i].meta.ip_id;
    EXPECT_TRUE(wire::VerifyIcrc(got[i].meta, got[i].bytes, &id));
  }
}

TEST(PairPort_Transmit, LongerThanTheMtuIsLostAndCounted) {
  PairLink link({.mtu = 1500});
  EXPECT_EQ(link.port(0).limits().max_datagram, 1472U);
  const wire::Path ipv4 = TestPath();
  wire::Path ipv6 = ipv4;
  ipv6.source = testing::TestAddress(1, false);
  ipv6.destination = testing::TestAddress(2, false);
  uint64_t lost = 0;
  for (const auto& [path, longest] : {std::pair{ipv4, 1468U}, {ipv6, 1448U}}) {
    TxPacket* packet = link.port(0).Acquire();
    packet->path = path;
    packet->length = longest + 1;
    ASSERT_EQ(link.port(0).Transmit({&packet, 1}), 1U);
    EXPECT_EQ(link.port(0).counters().tx_lost.Read(), ++lost);
    EXPECT_TRUE(ReceiveAll(link.port(1)).empty());
    ASSERT_TRUE(SendTestPacket(link.port(0), path, kQpn, 1, longest - 12));
    EXPECT_EQ(ReceiveAll(link.port(1)).size(), 1U);
  }
}

TEST(PairPort_Steering, PacketsReachTheQueueOfTheirBucket) {
  PairLink link({.steering = {SteeringTable(1), SteeringTable(3)}});
  ASSERT_EQ(link.queues(0), 1U);
  ASSERT_EQ(link.queues(1), 3U);
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    ASSERT_TRUE(
        SendTestPacket(link.port(0), TestPath(), Qpn{bucket << kBucketShift | 5}, bucket, 8));
  }
  for (size_t queue = 0; queue < 3; ++queue) {
    const auto got = ReceiveAll(link.port(1, queue));
    EXPECT_EQ(got.size(), queue == 0 ? 22U : 21U);
    for (const auto& received : got) EXPECT_EQ(PsnOf(received.bytes) % 3, queue);
  }
}

TEST(PairPort_Receive, HonoursASmallSpan) {
  PairLink link;
  for (uint32_t psn = 0; psn < 5; ++psn) {
    ASSERT_TRUE(SendTestPacket(link.port(0), TestPath(), kQpn, psn, 8));
  }
  std::array<wire::RxDatagram, 2> two;
  std::vector<uint32_t> order;
  while (const size_t count = link.port(1).Receive(two)) {
    for (size_t i = 0; i < count; ++i) order.push_back(PsnOf(two[i].bytes));
  }
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 1, 2, 3, 4}));
}

// Two queues per side, four threads, all send to all: each (sender, receiver) stream must arrive
// complete and in order.
TEST(PairPort_Threads, StreamsArriveWholeAndInOrder) {
  constexpr uint32_t kPackets = 20000;
  PairLink link({.steering = {SteeringTable(2), SteeringTable(2)}, .packets_per_queue = 64});
  struct Tally {
    std::map<uint16_t, uint32_t> next;  // by the sender's source port
    uint64_t received = 0;
    bool ordered = true;
    bool intact = true;
  };
  std::array<Tally, 4> tallies;
  std::atomic<uint32_t> running = 4;
  const auto drive = [&](size_t side, size_t queue) {
    PairPort& port = link.port(side, queue);
    Tally& tally = tallies[side * 2 + queue];
    wire::Path path = TestPath();
    uint32_t sent = 0;
    bool done = false;
    while (running.load() != 0) {
      if (sent < 2 * kPackets) {
        // Even packets go to queue 0, odd ones to queue 1, each stream with its own count.
        path.source_port = static_cast<uint16_t>(0xC000 + queue);
        const Qpn qpn{(sent % 2) << kBucketShift | 9};
        if (SendTestPacket(port, path, qpn, sent / 2, 32)) ++sent;
      }
      for (const auto& received : ReceiveAll(port)) {
        uint32_t& next = tally.next[received.meta.source_port];
        tally.ordered = tally.ordered && PsnOf(received.bytes) == next;
        tally.intact = tally.intact && IsTestPacket(received.bytes);
        ++next;
        ++tally.received;
      }
      if (!done && sent == 2 * kPackets && tally.received == 2 * kPackets) {
        done = true;
        running.fetch_sub(1);
      }
      std::this_thread::yield();
    }
  };
  std::vector<std::thread> threads;
  for (size_t side = 0; side < 2; ++side) {
    for (size_t queue = 0; queue < 2; ++queue) threads.emplace_back(drive, side, queue);
  }
  for (std::thread& thread : threads) thread.join();
  for (const Tally& tally : tallies) {
    EXPECT_EQ(tally.received, 2 * kPackets);
    EXPECT_TRUE(tally.ordered);
    EXPECT_TRUE(tally.intact);
  }
}

}  // namespace
}  // namespace rocegw::port::pair_port
