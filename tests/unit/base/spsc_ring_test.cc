// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/containers/spsc_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "tests/support/random.h"

namespace rocegw {
namespace {

TEST(SpscRing, Capacity_IsRoundedUpToAPowerOfTwo) {
  EXPECT_EQ(SpscRing<int>(1).capacity(), 1u);
  EXPECT_EQ(SpscRing<int>(5).capacity(), 8u);
  EXPECT_EQ(SpscRing<int>(64).capacity(), 64u);
}

// Value that records whether it was moved from.
struct Token {
  Token() = default;
  explicit Token(int v) : value(v) {}
  Token(Token&& other) noexcept : value(std::exchange(other.value, -1)) {}
  Token& operator=(Token&& other) noexcept {
    value = std::exchange(other.value, -1);
    return *this;
  }
  int value = 0;
};

TEST(SpscRing, Full_RefusesAndLeavesTheValue) {
  SpscRing<Token> ring(2);
  EXPECT_TRUE(ring.Push(Token(1)));
  EXPECT_TRUE(ring.Push(Token(2)));
  Token third(3);
  EXPECT_FALSE(ring.Push(std::move(third)));
  EXPECT_EQ(third.value, 3);  // NOLINT(bugprone-use-after-move): refused is not moved
  Token out;
  EXPECT_TRUE(ring.Pop(out));
  EXPECT_EQ(out.value, 1);
  EXPECT_TRUE(ring.Push(Token(4)));
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
      const bool fits = model.size() < ring.capacity();
      ASSERT_EQ(ring.Push(int{i}), fits);
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
