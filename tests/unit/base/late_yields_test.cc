// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/timing/late_yields.h"

#include <gtest/gtest.h>

namespace rocegw {
namespace {

constexpr Duration kLate = LateYields::kLate + Nanoseconds(1);
constexpr Duration kShortest = LateYields::kShortest;
constexpr Duration kLongest = LateYields::kLongest;

// Records a yield that ends at `back`. Returns how long crowded() is true afterwards.
Duration After(LateYields& yields, TimePoint back, Duration taken) {
  yields.OnYield(back - taken, back);
  Duration length{};
  while (yields.crowded(back + length)) length = length + Milliseconds(1);
  return length;
}

TEST(LateYields, BackAtOnce_IsNotCrowded) {
  LateYields yields;
  EXPECT_FALSE(yields.crowded(TimePoint{}));
  EXPECT_EQ(After(yields, TimePoint{} + Seconds(1), LateYields::kLate), Duration{});
}

TEST(LateYields, OneLateYieldAtTheVeryBeginning_IsCrowdedForTheShortestWhile) {
  LateYields yields;
  EXPECT_EQ(After(yields, TimePoint{} + kLate, kLate), kShortest);
}

TEST(LateYields, LateAgainAndAgain_LooksLessAndLessOften) {
  LateYields yields;
  TimePoint now = TimePoint{} + Seconds(1);
  for (Duration expected = kShortest; expected < kLongest; expected = expected * 2) {
    const Duration length = After(yields, now, kLate);
    EXPECT_EQ(length, expected);
    now = now + length + Milliseconds(1);
  }
  EXPECT_EQ(After(yields, now, kLate), kLongest);
  EXPECT_EQ(After(yields, now + kLongest, kLate), kLongest);
}

TEST(LateYields, LateLongAfterTheLast_BeginsAnew) {
  LateYields yields;
  TimePoint now = TimePoint{} + Seconds(1);
  for (int i = 0; i < 3; ++i) now = now + After(yields, now, kLate);
  EXPECT_FALSE(yields.crowded(now));
  EXPECT_EQ(After(yields, now + Seconds(10), kLate), kShortest);
}

TEST(LateYields, YieldsInTimeBetween_ChangeNothing) {
  LateYields yields;
  const TimePoint now = TimePoint{} + Seconds(1);
  const Duration first = After(yields, now, kLate);
  yields.OnYield(now + first, now + first + Microseconds(1));
  EXPECT_EQ(After(yields, now + first + Milliseconds(1), kLate), kShortest * 2);
}

}  // namespace
}  // namespace rocegw
