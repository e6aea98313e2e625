// SPDX-License-Identifier: Apache-2.0
// Producer end of a CQ ring.
#include "gateway/shm/completion_ring.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocegw::shm {
namespace {

constexpr uint32_t kEntries = 4;

rocegw_cqe Entry(uint64_t wr_id) {
  rocegw_cqe cqe{};
  cqe.wr_id = wr_id;
  cqe.sequence = 0xDEAD;
  return cqe;
}

TEST(CompletionRing, Entry_BecomesValidByItsSequence) {
  std::vector<rocegw_cqe> ring(kEntries);
  uint32_t consumer = 0;
  CompletionRing producer(ring.data(), kEntries, &consumer);
  EXPECT_TRUE(producer.Push(Entry(7)));
  EXPECT_EQ(ring[0].sequence, 1u);
  EXPECT_EQ(ring[0].wr_id, 7u);
  EXPECT_EQ(ring[1].sequence, 0u);
  EXPECT_EQ(producer.produced(), 1u);
}

TEST(CompletionRing, Full_RefusesUntilTheConsumerMoves) {
  std::vector<rocegw_cqe> ring(kEntries);
  uint32_t consumer = 0;
  CompletionRing producer(ring.data(), kEntries, &consumer);
  for (uint64_t i = 0; i < kEntries; ++i) ASSERT_TRUE(producer.Push(Entry(i)));
  EXPECT_FALSE(producer.Push(Entry(99)));
  EXPECT_EQ(ring[0].wr_id, 0u) << "nothing is overwritten";
  consumer = 1;
  EXPECT_TRUE(producer.Push(Entry(4)));
  EXPECT_EQ(ring[0].wr_id, 4u);
  EXPECT_EQ(ring[0].sequence, 5u);
  EXPECT_FALSE(producer.Push(Entry(5)));
}

TEST(CompletionRing, ImpossibleConsumer_CountsAsNoProgress) {
  std::vector<rocegw_cqe> ring(kEntries);
  uint32_t consumer = 0;
  CompletionRing producer(ring.data(), kEntries, &consumer);
  for (uint64_t i = 0; i < kEntries; ++i) ASSERT_TRUE(producer.Push(Entry(i)));
  for (uint32_t index : {5u, 100u, 0x80000000u, 0xFFFFFFFFu}) {
    consumer = index;
    EXPECT_FALSE(producer.Push(Entry(9))) << index;
  }
  consumer = 4;
  EXPECT_TRUE(producer.Push(Entry(9)));
}

TEST(CompletionRing, AcrossTheWrapOfTheIndex) {
  constexpr uint32_t kFirst = 0xFFFFFFFE;
  std::vector<rocegw_cqe> ring(kEntries);
  uint32_t consumer = kFirst;
  CompletionRing producer(ring.data(), kEntries, &consumer, kFirst);
  for (uint32_t i = 0; i < 20; ++i) {
    for (uint32_t k = 0; k < kEntries; ++k) ASSERT_TRUE(producer.Push(Entry(consumer + k)));
    ASSERT_FALSE(producer.Push(Entry(0)));
    for (uint32_t k = 0; k < kEntries; ++k, ++consumer) {
      const rocegw_cqe& cqe = ring[consumer % kEntries];
      ASSERT_EQ(cqe.sequence, consumer + 1);
      ASSERT_EQ(cqe.wr_id, consumer);
    }
  }
}

TEST(CompletionRing, MovesWithWhatTheClientHasNotTaken) {
  std::vector<rocegw_cqe> ring(kEntries), larger(4 * kEntries), smaller(kEntries / 2);
  uint32_t consumer = 0;
  CompletionRing producer(ring.data(), kEntries, &consumer);
  for (uint64_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(producer.Push(Entry(i)));
    if (i < 3) consumer = static_cast<uint32_t>(i) + 1;
  }
  EXPECT_FALSE(producer.MoveTo(smaller.data(), kEntries / 2, kEntries / 2)) << "three wait";
  EXPECT_FALSE(producer.MoveTo(larger.data(), 4 * kEntries, 2)) << "more than is asked for";
  EXPECT_FALSE(producer.MoveTo(ring.data(), kEntries, 2)) << "also where it is";
  EXPECT_TRUE(producer.MoveTo(ring.data(), kEntries, 3));
  EXPECT_TRUE(producer.Push(Entry(6))) << "it goes on where it was";
  ASSERT_TRUE(producer.MoveTo(larger.data(), 4 * kEntries, 3 * kEntries));
  for (uint64_t i = 7; i < 19; ++i) ASSERT_TRUE(producer.Push(Entry(i)));
  EXPECT_FALSE(producer.Push(Entry(99)));
  for (uint32_t i = 3; i < 19; ++i) {
    EXPECT_EQ(larger[i & (4 * kEntries - 1)].wr_id, i);
    EXPECT_EQ(larger[i & (4 * kEntries - 1)].sequence, i + 1);
  }
  consumer = 18;
  ASSERT_TRUE(producer.MoveTo(smaller.data(), kEntries / 2, 1));
  EXPECT_EQ(smaller[18 & 1].wr_id, 18u);
  EXPECT_TRUE(producer.Push(Entry(19)));
  EXPECT_FALSE(producer.Push(Entry(20)));
}

}  // namespace
}  // namespace rocegw::shm
