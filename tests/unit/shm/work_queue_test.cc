// SPDX-License-Identifier: Apache-2.0
// Consumer end of an SQ or RQ ring: validation of the producer index.
#include "gateway/shm/work_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocegw::shm::work_queue {
namespace {

using Look = WorkQueue::Look;

constexpr uint32_t kEntries = 8;
constexpr uint32_t kStride = 16;

class WorkQueueTest : public ::testing::Test {
 protected:
  WorkQueueTest()
      : slots(kEntries * kStride), queue(&producer, &released, slots.data(), kEntries, kStride) {}

  uint32_t producer = 0;
  uint32_t released = 0;
  std::vector<uint8_t> slots;
  WorkQueue queue;
};

TEST_F(WorkQueueTest, Empty_NothingToFetch) {
  EXPECT_EQ(queue.Check(), Look::kEmpty);
  EXPECT_EQ(queue.entries(), kEntries);
}

TEST_F(WorkQueueTest, NoEntries_EmptyWhateverTheClientWrites) {
  producer = 1;
  WorkQueue none(&producer, &released, nullptr, 0, kStride);
  EXPECT_EQ(none.Check(), Look::kEmpty);
  EXPECT_TRUE(none.Discard());
  EXPECT_EQ(released, 0u);
  std::vector<uint8_t> slot(kStride);
  WorkQueue one(&producer, &released, slot.data(), 1, kStride);
  ASSERT_EQ(one.Check(), Look::kReady);
  EXPECT_EQ(one.Fetch(), 0u);
  EXPECT_EQ(one.Check(), Look::kEmpty);
  producer = 2;
  EXPECT_FALSE(one.Discard()) << "the first is not released yet";
  one.Release(1);
  EXPECT_TRUE(one.Discard());
  EXPECT_EQ(one.fetched(), 2u);
}

TEST_F(WorkQueueTest, Posted_FetchedInOrderAndReleased) {
  producer = 3;
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(queue.Check(), Look::kReady);
    EXPECT_EQ(queue.Slot(), slots.data() + size_t{i} * kStride);
    EXPECT_EQ(queue.Fetch(), i);
  }
  EXPECT_EQ(queue.Check(), Look::kEmpty);
  EXPECT_EQ(released, 0u) << "fetching releases nothing";
  queue.Release(2);
  EXPECT_EQ(released, 2u);
  EXPECT_EQ(queue.released(), 2u);
}

TEST_F(WorkQueueTest, Full_AllOfIt) {
  producer = kEntries;
  for (uint32_t i = 0; i < kEntries; ++i) {
    ASSERT_EQ(queue.Check(), Look::kReady);
    queue.Fetch();
  }
  EXPECT_EQ(queue.Check(), Look::kEmpty);
}

TEST_F(WorkQueueTest, MoreThanTheRing_Fault) {
  for (uint32_t index : {kEntries + 1, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    producer = index;
    EXPECT_EQ(queue.Check(), Look::kFault) << index;
  }
  // Only the current index counts: a client may correct it.
  producer = 1;
  EXPECT_EQ(queue.Check(), Look::kReady);
}

TEST_F(WorkQueueTest, MoreThanWhatIsFree_Fault) {
  producer = 5;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(queue.Check(), Look::kReady);
    queue.Fetch();
  }
  queue.Release(2);
  producer = 2 + kEntries + 1;
  EXPECT_EQ(queue.Check(), Look::kFault);
  producer = 2 + kEntries;
  EXPECT_EQ(queue.Check(), Look::kReady);
}

TEST_F(WorkQueueTest, TurnedBackOverWhatWasFetched_Fault) {
  producer = 5;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(queue.Check(), Look::kReady);
    queue.Fetch();
  }
  queue.Release(1);
  for (uint32_t index : {4u, 1u, 0u}) {
    producer = index;
    EXPECT_EQ(queue.Check(), Look::kFault) << index;
    EXPECT_EQ(queue.fetched(), 5u);
  }
}

TEST_F(WorkQueueTest, TurnedBackOverWhatIsKnownButNotFetched_KnownStays) {
  producer = 3;
  ASSERT_EQ(queue.Check(), Look::kReady);
  queue.Fetch();
  producer = 1;
  ASSERT_EQ(queue.Check(), Look::kReady) << "what was seen was posted";
  queue.Fetch();
  ASSERT_EQ(queue.Check(), Look::kReady);
  queue.Fetch();
  EXPECT_EQ(queue.Check(), Look::kFault);
}

TEST_F(WorkQueueTest, AcrossTheWrapOfTheIndex) {
  producer = released = 0xFFFFFFFD;
  queue = WorkQueue(&producer, &released, slots.data(), kEntries, kStride, 0xFFFFFFFD);
  EXPECT_EQ(queue.Check(), Look::kEmpty);
  producer = 0xFFFFFFFD + kEntries;
  for (uint32_t i = 0; i < kEntries; ++i) {
    ASSERT_EQ(queue.Check(), Look::kReady);
    EXPECT_EQ(queue.Slot(), slots.data() + ((0xFFFFFFFD + i) % kEntries) * kStride);
    EXPECT_EQ(queue.Fetch(), 0xFFFFFFFD + i);
  }
  EXPECT_EQ(queue.Check(), Look::kEmpty);
  producer += 1;
  EXPECT_EQ(queue.Check(), Look::kFault);
  queue.Release(0);
  EXPECT_EQ(released, 0u);
  EXPECT_EQ(queue.Check(), Look::kReady);
}

TEST_F(WorkQueueTest, Discard_SkipsWhatIsPostedAndFetched) {
  producer = 4;
  ASSERT_EQ(queue.Check(), Look::kReady);
  queue.Fetch();
  producer = 6;
  EXPECT_TRUE(queue.Discard());
  EXPECT_EQ(released, 6u);
  EXPECT_EQ(queue.fetched(), 6u);
  EXPECT_EQ(queue.Check(), Look::kEmpty);
}

TEST_F(WorkQueueTest, DiscardWithAnImpossibleIndex_FalseAndReleasesWhatWasFetched) {
  producer = 4;
  ASSERT_EQ(queue.Check(), Look::kReady);
  queue.Fetch();
  for (uint32_t index : {0u, 100u, 0xFFFFFFFFu}) {
    producer = index;
    EXPECT_FALSE(queue.Discard());
    EXPECT_EQ(released, 1u);
    EXPECT_EQ(queue.fetched(), 1u);
  }
}

TEST(WorkQueueWithoutEntries, NeverReads) {
  WorkQueue queue(nullptr, nullptr, nullptr, 0, 0);
  EXPECT_EQ(queue.Check(), Look::kEmpty);
}

}  // namespace
}  // namespace rocegw::shm::work_queue
