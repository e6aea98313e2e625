// SPDX-License-Identifier: Apache-2.0
// Round trip estimate and probe time-out.
#include "gateway/flow/rtt.h"

#include <gtest/gtest.h>

namespace rocegw::flow {
namespace {

TEST(Rtt, WithoutSample_FiftyMilliseconds) {
  RttEstimator rtt;
  EXPECT_FALSE(rtt.has_sample());
  EXPECT_EQ(rtt.ProbeTimeout(), Milliseconds(50));
}

TEST(Rtt, FirstSample_IsTheEstimate) {
  RttEstimator rtt;
  rtt.OnSample(Milliseconds(10));
  EXPECT_TRUE(rtt.has_sample());
  EXPECT_EQ(rtt.smoothed(), Milliseconds(10));
  EXPECT_EQ(rtt.minimum(), Milliseconds(10));
  // Twice the estimate plus four times half of it.
  EXPECT_EQ(rtt.ProbeTimeout(), Milliseconds(40));
}

TEST(Rtt, ShortRoundTrips_FloorOfFourMilliseconds) {
  RttEstimator rtt;
  for (int i = 0; i < 10; ++i) rtt.OnSample(Microseconds(20));
  EXPECT_EQ(rtt.ProbeTimeout(), Milliseconds(4));
  EXPECT_EQ(rtt.minimum(), Microseconds(20));
}

TEST(Rtt, Recovery_FloorOfAHundredMicroseconds) {
  RttEstimator rtt;
  EXPECT_EQ(rtt.RecoveryTimeout(), Milliseconds(50)) << "without a sample";
  rtt.OnSample(Microseconds(10));
  EXPECT_EQ(rtt.RecoveryTimeout(), Microseconds(100));
  RttEstimator slow;
  slow.OnSample(Milliseconds(1));
  EXPECT_EQ(slow.RecoveryTimeout(), Milliseconds(4));
}

TEST(Rtt, Smoothing_OneEighthAndOneQuarter) {
  RttEstimator rtt;
  rtt.OnSample(Milliseconds(8));
  rtt.OnSample(Milliseconds(16));
  EXPECT_EQ(rtt.smoothed(), Milliseconds(9));
  EXPECT_EQ(rtt.minimum(), Milliseconds(8));
  // Variation 4 -> 4 + (8 - 4) / 4 = 5.
  EXPECT_EQ(rtt.ProbeTimeout(), Milliseconds(2 * 9 + 4 * 5));
  rtt.OnSample(Milliseconds(1));
  EXPECT_EQ(rtt.smoothed(), Milliseconds(8));
  EXPECT_EQ(rtt.minimum(), Milliseconds(1));
}

TEST(Rtt, SteadyRoundTrip_VariationFades) {
  RttEstimator rtt;
  for (int i = 0; i < 200; ++i) rtt.OnSample(Milliseconds(10));
  EXPECT_GE(rtt.ProbeTimeout(), Milliseconds(20));
  EXPECT_LT(rtt.ProbeTimeout(), Milliseconds(21));
}

TEST(Rtt, NoTimeAtAll_CountsAsSomething) {
  RttEstimator rtt;
  rtt.OnSample(Duration{0});
  rtt.OnSample(Duration{-5});
  EXPECT_TRUE(rtt.has_sample());
  EXPECT_GT(rtt.minimum().ns, 0);
}

}  // namespace
}  // namespace rocegw::flow
