// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/window/range_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace rocegw::far {
namespace {

using RangeUse = RangeMap::Use;

TEST(RangeMap, GivesOutTheFirstFreeRangeThatIsLargeEnough) {
  RangeMap map(100);
  EXPECT_EQ(map.Allocate(30), 0u);
  EXPECT_EQ(map.Allocate(30), 30u);
  EXPECT_EQ(map.Allocate(41), std::nullopt);
  map.Set(0, 30, RangeUse::kFree);
  EXPECT_EQ(map.Allocate(35), 60u);
  EXPECT_EQ(map.Allocate(30), 0u);
  EXPECT_EQ(map.Bytes(RangeUse::kGiven), 95u);
}

TEST(RangeMap, PartsOfARangeCanBeFreedAndNeighboursJoin) {
  RangeMap map(100);
  map.Allocate(100);
  map.Set(20, 40, RangeUse::kFree);
  map.Set(60, 80, RangeUse::kFree);
  EXPECT_EQ(map.Allocate(60), std::nullopt);
  map.Set(40, 60, RangeUse::kFree);
  EXPECT_EQ(map.Allocate(60), 20u);
}

TEST(RangeMap, MovedRangesAreNotGivenOutAgain) {
  RangeMap map(100);
  map.Allocate(100);
  map.Set(0, 50, RangeUse::kMoved);
  map.Set(50, 100, RangeUse::kFree);
  EXPECT_EQ(map.Allocate(50), 50u);
  EXPECT_EQ(map.Allocate(1), std::nullopt);
}

TEST(RangeMap, SplitsARangeIntoItsUses) {
  RangeMap map(100);
  map.Set(20, 40, RangeUse::kGiven);
  map.Set(40, 50, RangeUse::kMoved);
  const auto ranges = map.Get(10, 45);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].begin, 10u);
  EXPECT_EQ(ranges[0].end, 20u);
  EXPECT_EQ(ranges[1].use, RangeUse::kGiven);
  EXPECT_EQ(ranges[2].end, 45u);
  EXPECT_EQ(ranges[2].use, RangeUse::kMoved);
}

TEST(RangeMap, AgreesWithAMapOfEachByte) {
  constexpr uint64_t kBytes = 64;
  std::mt19937 chance(1);
  RangeMap map(kBytes);
  std::vector<RangeUse> model(kBytes, RangeUse::kFree);
  for (int step = 0; step < 5000; step++) {
    const uint64_t begin = chance() % kBytes;
    const uint64_t end = begin + 1 + chance() % (kBytes - begin);
    const auto use = static_cast<RangeUse>(chance() % 3);
    map.Set(begin, end, use);
    for (uint64_t at = begin; at < end; at++) model[at] = use;
    uint64_t behind = 0;
    for (const RangeMap::Range& range : map.Get(0, kBytes)) {
      ASSERT_EQ(range.begin, behind);
      for (uint64_t at = range.begin; at < range.end; at++) ASSERT_EQ(model[at], range.use);
      // Neighbours that have the same use are one range.
      ASSERT_TRUE(range.begin == 0 || model[range.begin - 1] != range.use);
      behind = range.end;
    }
    ASSERT_EQ(behind, kBytes);
  }
}

}  // namespace
}  // namespace rocegw::far
