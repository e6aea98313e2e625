// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/spsc_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <thread>

#include "tests/support/random.h"

namespace rocegw {
namespace {

TEST(SpscRing, Capacity_IsRoundedUpToAPowerOfTwo) {
  EXPECT_EQ(SpscRing<int>(1).capacity(), 1u);
  EXPECT_EQ(SpscRing<int>(5).capacity(), 8u);
  EXPECT_EQ(SpscRing<int>(64).capacity(), 64u);
}

TEST(SpscRing, Full_RefusesAndLeavesTheValue) {
  SpscRing<std::unique_ptr<int>> ring(2);
  EXPECT_TRUE(ring.Push(std::make_unique<int>(1)));
  EXPECT_TRUE(ring.Push(std::make_unique<int>(2)));
  auto third = std::make_unique<int>(3);
  EXPECT_FALSE(ring.Push(std::move(third)));
  ASSERT_NE(third, nullptr);  // NOLINT(bugprone-use-after-move): a refused value is not moved
  std::unique_ptr<int> out;
  EXPECT_TRUE(ring.Pop(out));
  EXPECT_EQ(*out, 1);
  EXPECT_TRUE(ring.Push(std::move(third)));
}

TEST(SpscRing, Empty_YieldsNothing) {
  SpscRing<int> ring(4);
  int out = 42;
  EXPECT_TRUE(ring.empty());
  EXPECT_FALSE(ring.Pop(out));
  EXPECT_EQ(out, 42);
}

TEST(SpscRing, PoppedSlot_HoldsNoReference) {
  SpscRing<std::shared_ptr<int>> ring(4);
  auto value = std::make_shared<int>(1);
  ring.Push(std::shared_ptr<int>(value));
  std::shared_ptr<int> out;
  ASSERT_TRUE(ring.Pop(out));
  out.reset();
  EXPECT_EQ(value.use_count(), 1);
}

TEST(SpscRing, RandomUse_IsThatOfAQueue) {
  testing::Random random(testing::TestSeed(71));
  SpscRing<int> ring(16);
  std::deque<int> model;
  for (int i = 0; i < 100000; ++i) {
    if (random.Coin()) {
      int value = i;
      const bool fits = model.size() < ring.capacity();
      ASSERT_EQ(ring.Push(std::move(value)), fits);
      if (fits) model.push_back(i);
    } else {
      int out = -1;
      ASSERT_EQ(ring.Pop(out), !model.empty());
      if (!model.empty()) {
        ASSERT_EQ(out, model.front());
        model.pop_front();
      }
    }
    ASSERT_EQ(ring.empty(), model.empty());
  }
}

TEST(SpscRing, TwoThreads_KeepOrderAndLoseNothing) {
  constexpr uint64_t kCount = 200000;
  SpscRing<std::unique_ptr<uint64_t>> ring(64);
  std::thread producer([&ring] {
    for (uint64_t i = 0; i < kCount; ++i) {
      auto value = std::make_unique<uint64_t>(i);
      while (!ring.Push(std::move(value))) std::this_thread::yield();
    }
  });
  uint64_t expected = 0;
  std::unique_ptr<uint64_t> out;
  while (expected < kCount) {
    if (!ring.Pop(out)) {
      std::this_thread::yield();
      continue;
    }
    if (*out != expected) break;
    ++expected;
  }
  // Unblocks the producer in case of a failure above.
  while (expected < kCount && ring.Pop(out)) ++expected;
  producer.join();
  EXPECT_EQ(expected, kCount);
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace rocegw
