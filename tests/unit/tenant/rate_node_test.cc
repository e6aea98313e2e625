// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/rate_node.h"

#include <gtest/gtest.h>

namespace rocegw::tenant {
namespace {

class RateNodeTest : public ::testing::Test {
 protected:
  // Returns how many are granted at this moment.
  int Drain(RateNode& pool, const RateNode** refused_by = nullptr) {
    for (int granted = 0; granted < 100000; ++granted) {
      if (const RateNode* by = pool.Take(now)) {
        if (refused_by != nullptr) *refused_by = by;
        return granted;
      }
    }
    ADD_FAILURE() << "no limit";
    return -1;
  }

  TimePoint now{Seconds(1000).ns};
  RateNode gateway{nullptr};
  RateNode red{&gateway};
  RateNode blue{&gateway};
  RateNode red1{&red};
  RateNode red2{&red};
  RateNode blue1{&blue};
};

TEST_F(RateNodeTest, NoLimit_AlwaysGranted) {
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(red1.Take(now), nullptr);
}

TEST_F(RateNodeTest, PoolsPeak_ASecondsWorthThenTheRate) {
  red1.SetRates(0, 10);
  const RateNode* by = nullptr;
  EXPECT_EQ(Drain(red1, &by), 10);
  EXPECT_EQ(by, &red1);
  now = now + Milliseconds(500);
  EXPECT_EQ(Drain(red1), 5);
  now = now + Seconds(60);
  EXPECT_EQ(Drain(red1), 10);
  EXPECT_EQ(red2.Take(now), nullptr);
}

TEST_F(RateNodeTest, Zero_NeverGranted) {
  red1.SetRates(0, 0);
  now = now + Seconds(60);
  EXPECT_EQ(red1.Take(now), &red1);
}

TEST_F(RateNodeTest, TenantsPeak_SharedByItsPools) {
  red.SetRates(0, 10);
  EXPECT_EQ(Drain(red1), 10);
  EXPECT_EQ(red2.Take(now), &red);
  EXPECT_EQ(blue1.Take(now), nullptr);
}

TEST_F(RateNodeTest, Committed_NobodyElseUsesItUp) {
  gateway.SetRates(0, 100);
  blue1.SetRates(30, 60);
  const RateNode* by = nullptr;
  EXPECT_EQ(Drain(red1, &by), 70);
  EXPECT_EQ(by, &gateway);
  EXPECT_EQ(Drain(blue1, &by), 30);
  EXPECT_EQ(by, &gateway);
}

TEST_F(RateNodeTest, CommittedOfATenant_IsForAnyOfItsPools) {
  gateway.SetRates(0, 100);
  red.SetRates(40, 50);
  red1.SetRates(10, 100);
  EXPECT_EQ(Drain(blue1), 60);
  EXPECT_EQ(Drain(red2), 30);
  EXPECT_EQ(Drain(red1), 10);
}

TEST_F(RateNodeTest, TogetherNeverMoreThanTheGatewaysRate) {
  gateway.SetRates(0, 100);
  red.SetRates(20, 90);
  red1.SetRates(10, 80);
  blue1.SetRates(30, 90);
  int granted = Drain(red1) + Drain(red2) + Drain(blue1);
  EXPECT_EQ(granted, 100);
  for (int i = 0; i < 100; ++i) {
    now = now + Milliseconds(50);
    granted += Drain(blue1) + Drain(red2) + Drain(red1);
  }
  EXPECT_LE(granted, 100 + 5 * 100);
  EXPECT_GE(granted, 100 + 5 * 100 - 5);
}

TEST_F(RateNodeTest, RateChanged_FullStaysFullEmptyStaysEmpty) {
  red1.SetRates(0, 10);
  red1.SetRates(0, 1000);
  EXPECT_EQ(Drain(red1), 1000);
  red1.SetRates(0, 10);
  EXPECT_EQ(Drain(red1), 0);
  now = now + Seconds(1);
  EXPECT_EQ(Drain(red1), 10);
}

TEST_F(RateNodeTest, ClockThatStandsStill_GrantsNothingTwice) {
  red1.SetRates(0, 1);
  EXPECT_EQ(red1.Take(now), nullptr);
  EXPECT_EQ(red1.Take(now - Seconds(5)), &red1);
  EXPECT_EQ(red1.Take(now), &red1);
}

}  // namespace
}  // namespace rocegw::tenant
