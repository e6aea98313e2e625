// SPDX-License-Identifier: Apache-2.0
// Bounded queue of packets of any length.
#include "gateway/worker/receive/waiting_packets.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "tests/support/random.h"

namespace rocegw::worker {
namespace {

TEST(WaitingPackets, RandomPackets_ComeOutAsTheyWentIn) {
  WaitingPackets packets;
  std::deque<std::vector<uint8_t>> model;
  rocegw::testing::Random random(rocegw::testing::TestSeed(std::random_device()()));
  uint32_t pushed = 0, popped = 0, refused = 0;
  for (int round = 0; round < 400; ++round) {
    for (size_t n = random.Below(200); n != 0; --n) {
      const std::vector<uint8_t> bytes(random.Below(4300), static_cast<uint8_t>(pushed));
      wire::RxMeta meta;
      meta.source_port = static_cast<uint16_t>(pushed);
      const bool fits = packets.HasRoom(bytes.size());
      ASSERT_EQ(packets.Push({.device = pushed, .channel = Qpn{7}, .meta = meta, .bytes = bytes}),
                fits);
      if (!fits) {
        ++refused;
        continue;
      }
      model.push_back(bytes);
      ++pushed;
    }
    ASSERT_LE(packets.used(), WaitingPackets::kBytes);
    ASSERT_EQ(packets.size(), model.size());
    uint64_t at = packets.begin();
    // Fewer than come, so that the queue is full in most rounds.
    const auto count = static_cast<uint32_t>(random.Below(packets.size() / 4 + 1));
    for (uint32_t i = 0; i < count; ++i) {
      const WaitingPacket packet = packets.Next(at);
      ASSERT_EQ(packet.device, popped);
      ASSERT_EQ(packet.channel, Qpn{7});
      ASSERT_EQ(packet.meta.source_port, static_cast<uint16_t>(popped++));
      ASSERT_EQ(std::vector<uint8_t>(packet.bytes.begin(), packet.bytes.end()), model.front());
      model.pop_front();
    }
    packets.PopBefore(at, count);
  }
  EXPECT_GT(refused, 0u) << "the queue was never full";
  EXPECT_GT(pushed, 2000u);
}

TEST(WaitingPackets, EmptyQueue_TakesThePacketsOfAWholeMemory) {
  WaitingPackets packets;
  const std::vector<uint8_t> small(64);
  uint32_t count = 0;
  while (packets.Push({.bytes = small})) ++count;
  EXPECT_EQ(count, WaitingPackets::kBytes / 128);
  uint64_t at = packets.begin();
  for (uint32_t i = 0; i < count; ++i) packets.Next(at);
  packets.PopBefore(at, count);
  EXPECT_TRUE(packets.empty());
  EXPECT_EQ(packets.used(), 0u);
}

}  // namespace
}  // namespace rocegw::worker
