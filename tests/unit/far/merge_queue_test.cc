// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/request/merge_queue.h"

#include <gtest/gtest.h>

namespace rocegw::far {
namespace {

Part At(uint64_t offset, uint32_t length = 4096, bool staged = true) {
  Part part;
  part.offset = offset;
  part.length = length;
  part.staged = staged;
  return part;
}

TEST(MergeQueue, AdjacentPartsBecomeOneOperation) {
  MergeQueue queue({});
  for (const uint64_t page : {4, 5, 3, 6}) queue.Push(At(page * 4096));
  const auto plan = queue.Take(nullptr);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->offset(), 3u * 4096);
  EXPECT_EQ(plan->length(), 4u * 4096);
  EXPECT_EQ(plan->segments(), 1u);
  EXPECT_TRUE(queue.empty());
}

TEST(MergeQueue, PartThatWasPassedOverIsMergedOnceTheGapIsFilled) {
  MergeQueue queue({});
  for (const uint64_t page : {1, 3, 2}) queue.Push(At(page * 4096));
  const auto plan = queue.Take(nullptr);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->parts.size(), 3u);
}

TEST(MergeQueue, PartsOfADeviceThatIsGoneAreStaged) {
  MergeQueue queue({});
  queue.Push(At(0, 4096, false));
  queue.Push(At(4096, 4096, true));
  queue.StageAll();
  const auto plan = queue.Take(nullptr);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->staged_bytes(), 8192u);
  EXPECT_EQ(plan->segments(), 1u);
}

TEST(MergeQueue, OthersStayInTheirOrder) {
  MergeQueue queue({});
  for (const uint64_t page : {1, 10, 2, 20}) queue.Push(At(page * 4096));
  EXPECT_EQ(queue.Take(nullptr)->parts.size(), 2u);
  EXPECT_EQ(queue.Take(nullptr)->offset(), 10u * 4096);
  EXPECT_EQ(queue.Take(nullptr)->offset(), 20u * 4096);
}

TEST(MergeQueue, WithoutMergingEachPartIsAnOperation) {
  MergeLimits limits;
  limits.merge = false;
  MergeQueue queue(limits);
  queue.Push(At(0));
  queue.Push(At(4096));
  EXPECT_EQ(queue.Take(nullptr)->parts.size(), 1u);
  EXPECT_EQ(queue.Take(nullptr)->parts.size(), 1u);
}

TEST(MergeQueue, StaysWithinASlab) {
  MergeLimits limits;
  limits.slab_bytes = 8192;
  MergeQueue queue(limits);
  queue.Push(At(4096));
  queue.Push(At(8192));
  EXPECT_EQ(queue.Take(nullptr)->length(), 4096u);
}

TEST(MergeQueue, StaysWithinBytesAndSegments) {
  MergeLimits limits;
  limits.most_bytes = 3 * 4096;
  limits.most_segments = 2;
  MergeQueue bytes(limits);
  for (uint64_t page = 0; page < 4; page++) bytes.Push(At(page * 4096));
  EXPECT_EQ(bytes.Take(nullptr)->length(), 3u * 4096);
  MergeQueue segments(limits);
  for (uint64_t page = 0; page < 3; page++) segments.Push(At(page * 4096, 4096, false));
  EXPECT_EQ(segments.Take(nullptr)->segments(), 2u);
}

TEST(MergeQueue, WriteWaitsForTheHeldRangeThatItOverlaps) {
  MergeQueue queue({});
  RangeHolds holds;
  queue.Push(At(0, 8192));
  queue.Push(At(4096));
  const auto first = queue.Take(&holds);
  ASSERT_TRUE(first);
  EXPECT_FALSE(queue.Take(&holds));
  holds.Release(first->offset());
  EXPECT_TRUE(queue.Take(&holds));
}

TEST(MergeQueue, WriteDoesNotOvertakeAnEarlierOneOfTheSameBytes) {
  MergeQueue queue({});
  RangeHolds holds;
  queue.Push(At(0));
  queue.Push(At(8192, 8192));
  queue.Push(At(4096, 8192));  // adjacent to the first, overlaps the second
  EXPECT_EQ(queue.Take(&holds)->length(), 4096u);
  EXPECT_EQ(queue.Take(&holds)->offset(), 8192u);
  EXPECT_FALSE(queue.Take(&holds));
}

TEST(MergeQueue, PlanThatWasPutBackComesFirst) {
  MergeQueue queue({});
  queue.Push(At(0));
  queue.Push(At(4096));
  queue.Push(At(40960));
  const auto plan = queue.Take(nullptr);
  queue.PutBack(*plan);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.Take(nullptr)->length(), 8192u);
}

}  // namespace
}  // namespace rocegw::far
