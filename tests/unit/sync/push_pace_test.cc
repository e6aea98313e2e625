// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/push_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rocegw::sync {
namespace {

using std::chrono::milliseconds;

constexpr PushPace::Options kPace{.per_second = 100, .burst_per_node = 2, .least_burst = 3};

TEST(PushPace, Burst_IsOfTheFleetsSize) {
  for (const size_t nodes : {size_t{0}, size_t{1}, size_t{50}}) {
    PushPace pace(kPace);
    const PushPace::Clock::time_point now;
    const size_t burst = std::max<size_t>(3, 2 * nodes);
    for (size_t i = 0; i < burst; ++i) EXPECT_TRUE(pace.Take(now, nodes));
    EXPECT_FALSE(pace.Take(now, nodes));
  }
}

TEST(PushPace, AfterTheBurst_SoManyASecond) {
  PushPace pace(kPace);
  PushPace::Clock::time_point now;
  while (pace.Take(now, 1)) {
  }
  size_t taken = 0;
  for (int i = 0; i < 1000; ++i) {
    now += milliseconds(1);
    while (pace.Take(now, 1)) ++taken;
  }
  EXPECT_GE(taken, 99u);
  EXPECT_LE(taken, 100u);
}

TEST(PushPace, NextAt_IsWhenOneMayGo) {
  PushPace pace(kPace);
  const PushPace::Clock::time_point now;
  while (pace.Take(now, 1)) {
  }
  EXPECT_GT(pace.NextAt(), now + milliseconds(9));
  EXPECT_LE(pace.NextAt(), now + milliseconds(11));
  EXPECT_TRUE(pace.Take(pace.NextAt(), 1));
}

TEST(PushPace, Returned_MayBeTakenAgain) {
  PushPace pace(kPace);
  const PushPace::Clock::time_point now;
  while (pace.Take(now, 1)) {
  }
  pace.Return();
  EXPECT_TRUE(pace.Take(now, 1));
  EXPECT_FALSE(pace.Take(now, 1));
}

}  // namespace
}  // namespace rocegw::sync
