// SPDX-License-Identifier: Apache-2.0
// Shares of pools in the transmit buffers whose packets wait for memory.
#include "gateway/worker/send/held_packets.h"

#include <gtest/gtest.h>

namespace rocegw::testing::held_packets {
namespace {

using worker::HeldPackets;
using worker::PoolAccounts;

size_t Fill(HeldPackets& held, PoolAccounts& pool) {
  size_t added = 0;
  for (; held.MayAdd(pool); ++added) held.Add(pool);
  return added;
}

TEST(HeldPackets, OnePool_HasAQuarterOfThePort) {
  HeldPackets held;
  PoolAccounts pool;
  EXPECT_EQ(Fill(held, pool), HeldPackets::kMost / 2);
  held.Remove(pool, HeldPackets::kMost / 2);
  EXPECT_EQ(held.all(), 0u);
  EXPECT_EQ(Fill(held, pool), HeldPackets::kMost / 2) << "all are free again";
}

TEST(HeldPackets, FurtherPools_FindSome) {
  HeldPackets held;
  PoolAccounts pools[40];
  for (size_t i = 0; i < 40; ++i) EXPECT_GE(Fill(held, pools[i]), HeldPackets::kAlways) << i;
  EXPECT_LE(held.all(), HeldPackets::kMost + 40 * HeldPackets::kAlways);
  EXPECT_EQ(held.MayAdd(pools[1]), 0u);
  held.Remove(pools[0], pools[0].packets_held);
  EXPECT_GE(Fill(held, pools[0]), HeldPackets::kAlways);
}

}  // namespace
}  // namespace rocegw::testing::held_packets
