// SPDX-License-Identifier: Apache-2.0
// Merge queue against a model that applies every write in the order of its arrival. Plans complete
// in any order, as they do on several queue pairs.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gateway/far/request/merge_queue.h"
#include "tests/support/random.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kSpace = 64;  // bytes: small, so that writes overlap
constexpr uint64_t kSlab = 16;

class World {
 public:
  World(testing::Random& random, MergeLimits limits)
      : random_(random), limits_(limits), queue_(limits) {}

  void Push() {
    Part part;
    part.offset = random_.Below(kSpace);
    const uint64_t left_in_slab = kSlab - part.offset % kSlab;
    part.length = static_cast<uint32_t>(random_.Between(1, std::min<uint64_t>(left_in_slab, 4)));
    part.staged = random_.Coin();
    // The part's number travels in its buffer pointer, which the queue does not follow.
    part.buffer = reinterpret_cast<uint8_t*>(++pushed_);
    for (uint64_t at = part.offset; at < part.end(); at++) expected_[at] = pushed_;
    queue_.Push(part);
  }

  void Take() {
    const auto plan = queue_.Take(&holds_);
    if (!plan) return;
    for (size_t index = 1; index < plan->parts.size(); index++) {
      ASSERT_EQ(plan->parts[index - 1].end(), plan->parts[index].offset);
    }
    ASSERT_EQ(plan->offset() / kSlab, (plan->end() - 1) / kSlab);
    ASSERT_TRUE(plan->parts.size() == 1 || plan->length() <= limits_.most_bytes);
    ASSERT_LE(plan->segments(), limits_.most_segments);
    ASSERT_TRUE(limits_.merge || plan->parts.size() == 1);
    if (random_.Below(8) == 0) {
      holds_.Release(plan->offset());
      queue_.PutBack(*plan);
      return;
    }
    in_flight_.push_back(*plan);
  }

  void Complete() {
    if (in_flight_.empty()) return;
    const size_t chosen = random_.Below(in_flight_.size());
    for (const Part& part : in_flight_[chosen].parts) {
      for (uint64_t at = part.offset; at < part.end(); at++) {
        memory_[at] = reinterpret_cast<uintptr_t>(part.buffer);
      }
      completed_++;
    }
    holds_.Release(in_flight_[chosen].offset());
    in_flight_.erase(in_flight_.begin() + static_cast<ptrdiff_t>(chosen));
  }

  void Finish() {
    while (!queue_.empty() || !in_flight_.empty()) {
      Take();
      Complete();
    }
    EXPECT_EQ(completed_, pushed_);
    EXPECT_EQ(holds_.count(), 0u);
    EXPECT_EQ(memory_, expected_);
  }

 private:
  testing::Random& random_;
  const MergeLimits limits_;
  MergeQueue queue_;
  RangeHolds holds_;
  std::vector<Plan> in_flight_;
  std::vector<uintptr_t> memory_ = std::vector<uintptr_t>(kSpace, 0);
  std::vector<uintptr_t> expected_ = std::vector<uintptr_t>(kSpace, 0);
  uintptr_t pushed_ = 0;
  uintptr_t completed_ = 0;
};

TEST(MergeProperty, MemoryIsAsIfWritesWereExecutedInOrder) {
  testing::Random random(testing::TestSeed(34));
  for (int round = 0; round < 400; round++) {
    MergeLimits limits;
    limits.merge = random.Below(4) != 0;
    limits.slab_bytes = kSlab;
    limits.most_bytes = random.Between(4, 16);
    limits.most_segments = static_cast<uint32_t>(random.Between(1, 4));
    limits.look_ahead = static_cast<uint32_t>(random.Between(1, 16));
    World world(random, limits);
    for (int step = 0; step < 300; step++) {
      switch (random.Below(3)) {
        case 0:
          world.Push();
          break;
        case 1:
          world.Take();
          break;
        default:
          world.Complete();
      }
      if (HasFatalFailure()) return;
    }
    world.Finish();
  }
}

}  // namespace
}  // namespace rocegw::far
