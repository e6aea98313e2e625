// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/step_times.h"

#include <gtest/gtest.h>

namespace rocegw::take_over {
namespace {

TEST(StepTimes, NameLongSteps_AndAddThoseOfOneName) {
  StepTimes steps;
  steps.Begin(TimePoint{1000});
  steps.End("settled", TimePoint{1000} + Microseconds(20));
  steps.End("rested", TimePoint{1000} + Microseconds(1020));
  steps.End("rested", TimePoint{1000} + Microseconds(1320));
  EXPECT_EQ(steps.Line(), "rested 1.3 ms");
  steps.End("sent", TimePoint{1000} + Microseconds(3320));
  EXPECT_EQ(steps.Line(), "rested 1.3 ms, sent 2.0 ms");
  steps.Begin(TimePoint{});
  EXPECT_EQ(steps.Line(), "nothing took 0.1 ms");
}

}  // namespace
}  // namespace rocegw::take_over
