// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/time.h"

#include <gtest/gtest.h>

namespace rocegw {
namespace {

TEST(Duration, Units_AreNanoseconds) {
  EXPECT_EQ(Nanoseconds(7).ns, 7);
  EXPECT_EQ(Microseconds(7).ns, 7'000);
  EXPECT_EQ(Milliseconds(7).ns, 7'000'000);
  EXPECT_EQ(Seconds(7).ns, 7'000'000'000);
  EXPECT_EQ(Microseconds(3) * 4 - Microseconds(2), Microseconds(10));
  EXPECT_EQ(Seconds(1) / 1000, Milliseconds(1));
}

TEST(TimePoint, SumBeyondTheEnd_IsNever) {
  EXPECT_EQ(kNever + Nanoseconds(1), kNever);
  EXPECT_EQ(kNever + Seconds(100), kNever);
  EXPECT_EQ(TimePoint{5} + Nanoseconds(INT64_MAX), kNever);
}

TEST(TimePoint, NegativeDuration_GoesBack) {
  EXPECT_EQ(TimePoint{5} + Nanoseconds(-7), TimePoint{-2});
  EXPECT_EQ(TimePoint{5} - Nanoseconds(7), TimePoint{-2});
  EXPECT_EQ((TimePoint{5} - TimePoint{7}).ns, -2);
  EXPECT_EQ(TimePoint{INT64_MIN + 1} + Nanoseconds(-5), TimePoint{INT64_MIN});
}

TEST(Earlier, IsTheSmaller) {
  EXPECT_EQ(Earlier(TimePoint{3}, kNever), TimePoint{3});
  EXPECT_EQ(Earlier(TimePoint{3}, TimePoint{2}), TimePoint{2});
}

}  // namespace
}  // namespace rocegw
