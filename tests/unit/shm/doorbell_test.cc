// SPDX-License-Identifier: Apache-2.0
// Doorbell pages: every set bit is taken, also while other bits are set, and bits of a producer
// that died between its two stores are found.
#include "gateway/shm/doorbell.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/random.h"

namespace rocegw::shm {
namespace {

void SetLeaf(rocegw_doorbell_page& page, uint32_t bit) {
  __atomic_fetch_or(&page.leaf[bit / 64], uint64_t{1} << (bit % 64), __ATOMIC_SEQ_CST);
}
void SetSummary(rocegw_doorbell_page& page, uint32_t bit) {
  __atomic_fetch_or(&page.summary, uint64_t{1} << (bit / 64), __ATOMIC_SEQ_CST);
}
void Ring(rocegw_doorbell_page& page, uint32_t bit) {
  SetLeaf(page, bit);
  SetSummary(page, bit);
}

TEST(Doorbell, Nothing_NothingTaken) {
  rocegw_doorbell_page page{};
  EXPECT_EQ(TakeDoorbells(&page, 0, [](uint32_t) { FAIL(); }), 0u);
  EXPECT_EQ(TakeAllDoorbells(&page, [](uint32_t) { FAIL(); }), 0u);
}

TEST(Doorbell, EveryBit_TakenOnce) {
  rocegw_doorbell_page page{};
  for (uint32_t bit = 0; bit < ROCEGW_DOORBELL_BITS; ++bit) {
    Ring(page, bit);
    Ring(page, bit);
    std::vector<uint32_t> taken;
    EXPECT_EQ(TakeDoorbells(&page, 0, [&](uint32_t b) { taken.push_back(b); }), 1u);
    ASSERT_EQ(taken, std::vector<uint32_t>{bit});
    ASSERT_EQ(TakeAllDoorbells(&page, [](uint32_t) {}), 0u);
  }
}

TEST(Doorbell, EveryLeafRung_TakenInTurns) {
  for (uint32_t first = 0; first < 8; ++first) {
    rocegw_doorbell_page page{};
    for (uint32_t leaf = 0; leaf < 64; ++leaf) Ring(page, leaf * 64 + 5);
    std::set<uint32_t> taken;
    const auto take = [&](uint32_t bit) { EXPECT_TRUE(taken.insert(bit).second); };
    EXPECT_EQ(TakeDoorbells(&page, first, take), 8u);
    EXPECT_TRUE(taken.contains(first * 8 * 64 + 5));
    for (uint32_t turn = 1; turn < 8; ++turn)
      EXPECT_EQ(TakeDoorbells(&page, first + turn, take), 8u);
    EXPECT_EQ(taken.size(), 64u);
    EXPECT_EQ(page.summary, 0u);
  }
}

TEST(Doorbell, RandomBits_EqualASet) {
  testing::Random random(testing::TestSeed(20261121));
  rocegw_doorbell_page page{};
  std::set<uint32_t> lost;  // leaf without summary
  std::set<uint32_t> rung;
  for (int step = 0; step < 20000; ++step) {
    const auto bit = static_cast<uint32_t>(random.Below(ROCEGW_DOORBELL_BITS));
    switch (random.Below(8)) {
      case 0: {
        std::set<uint32_t> taken;
        const auto take = [&](uint32_t b) { EXPECT_TRUE(taken.insert(b).second); };
        for (uint32_t turn = 0; page.summary != 0; ++turn) TakeDoorbells(&page, turn, take);
        // A summary bit also finds lost bits in its leaf.
        for (uint32_t b : rung) EXPECT_TRUE(taken.erase(b)) << b;
        for (uint32_t b : taken) EXPECT_TRUE(lost.erase(b)) << b;
        rung.clear();
        break;
      }
      case 1: {
        std::set<uint32_t> taken;
        TakeAllDoorbells(&page, [&](uint32_t b) { EXPECT_TRUE(taken.insert(b).second); });
        rung.merge(lost);
        EXPECT_EQ(taken, rung);
        rung.clear();
        lost.clear();
        EXPECT_EQ(page.summary, 0u);
        break;
      }
      case 2:
        SetLeaf(page, bit);
        if (!rung.contains(bit)) lost.insert(bit);
        break;
      default:
        Ring(page, bit);
        lost.erase(bit);
        rung.insert(bit);
    }
  }
}

// Producers publish an index, then set the doorbell; the consumer must see every published index.
TEST(Doorbell, RacingProducers_NoPostIsMissed) {
  constexpr uint32_t kProducers = 4;
  constexpr uint32_t kQueues = 3;  // queues of each producer, in different leaves
  constexpr uint32_t kPosts = 20000;
  rocegw_doorbell_page page{};
  std::vector<uint32_t> published(kProducers * kQueues);
  std::vector<uint32_t> seen(kProducers * kQueues);
  std::vector<uint32_t> bit_of(published.size());
  std::vector<int> queue_of(ROCEGW_DOORBELL_BITS, -1);
  for (uint32_t q = 0; q < bit_of.size(); ++q) {
    bit_of[q] = q % kQueues * 64 + q / kQueues;  // neighbours in one leaf
    queue_of[bit_of[q]] = static_cast<int>(q);
  }
  std::atomic<uint32_t> finished{0};
  std::vector<std::thread> producers;
  for (uint32_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (uint32_t i = 1; i <= kPosts; ++i) {
        const uint32_t q = p * kQueues + i % kQueues;
        __atomic_store_n(&published[q], i, __ATOMIC_RELEASE);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        Ring(page, bit_of[q]);
      }
      finished.fetch_add(1);
    });
  }
  const auto take = [&](uint32_t bit) {
    const int q = queue_of[bit];
    ASSERT_GE(q, 0);
    const uint32_t index = __atomic_load_n(&published[static_cast<size_t>(q)], __ATOMIC_ACQUIRE);
    ASSERT_GE(index, seen[static_cast<size_t>(q)]);
    seen[static_cast<size_t>(q)] = index;
  };
  uint32_t turn = 0;
  while (finished.load() != kProducers) {
    if (TakeDoorbells(&page, turn++, take) == 0) std::this_thread::yield();
  }
  TakeDoorbells(&page, turn++, take);
  for (std::thread& thread : producers) thread.join();
  EXPECT_EQ(seen, published) << "without a full scan";
  EXPECT_EQ(TakeAllDoorbells(&page, [](uint32_t) {}), 0u);
}

}  // namespace
}  // namespace rocegw::shm
