// SPDX-License-Identifier: Apache-2.0
// Steps between turns: each mode of the policy, and what late yields change. The last tests check
// random schedules against what each mode promises.
#include "gateway/base/timing/wait_policy.h"

#include <gtest/gtest.h>

#include <random>

namespace rocegw {
namespace {

constexpr TimePoint kStart = TimePoint{} + Seconds(10);
constexpr Duration kLate = LateYields::kLate + Nanoseconds(1);

WaitPolicy Make(WaitMode mode) {
  WaitParameters parameters;
  parameters.mode = mode;
  WaitPolicy policy(parameters);
  policy.OnSleep(kStart);
  return policy;
}

WaitStep NextAfter(WaitPolicy& policy, Duration without_work) {
  return policy.Next(kStart + without_work, false);
}

TEST(WaitPolicy, Busy_PollsForEver) {
  WaitPolicy policy = Make(WaitMode::kBusy);
  EXPECT_EQ(policy.Next(kStart, true), WaitStep::kPoll);
  EXPECT_EQ(NextAfter(policy, Seconds(1)), WaitStep::kPoll);
}

TEST(WaitPolicy, Event_SleepsAfterEachTurn) {
  WaitPolicy policy = Make(WaitMode::kEvent);
  EXPECT_EQ(policy.Next(kStart, true), WaitStep::kSleep);
  EXPECT_EQ(policy.Next(kStart, false), WaitStep::kSleep);
}

TEST(WaitPolicy, EventBatch_SleepsAfterTheFirstTurnWithoutWork) {
  WaitPolicy policy = Make(WaitMode::kEventBatch);
  EXPECT_EQ(policy.Next(kStart, true), WaitStep::kPoll);
  EXPECT_EQ(policy.Next(kStart, false), WaitStep::kSleep);
}

TEST(WaitPolicy, Hybrid_PollsForSomeTimeAndSleepsThen) {
  WaitPolicy policy = Make(WaitMode::kHybrid);
  EXPECT_EQ(NextAfter(policy, Microseconds(50)), WaitStep::kPoll);
  EXPECT_EQ(NextAfter(policy, Nanoseconds(50001)), WaitStep::kSleep);
}

TEST(WaitPolicy, Adaptive_PollsThenYieldsThenSleeps) {
  WaitPolicy policy = Make(WaitMode::kAdaptive);
  EXPECT_EQ(NextAfter(policy, Microseconds(7)), WaitStep::kPoll);
  EXPECT_EQ(NextAfter(policy, Microseconds(8)), WaitStep::kYield);
  policy.OnYield(kStart + Microseconds(8), kStart + Microseconds(9));
  EXPECT_EQ(NextAfter(policy, Microseconds(16)), WaitStep::kPoll) << "8 us after the last yield";
  EXPECT_EQ(NextAfter(policy, Microseconds(17)), WaitStep::kYield);
  EXPECT_EQ(NextAfter(policy, Nanoseconds(50001)), WaitStep::kSleep);
}

TEST(WaitPolicy, AdaptiveWorkComes_BeginsAnew) {
  WaitPolicy policy = Make(WaitMode::kAdaptive);
  EXPECT_EQ(policy.Next(kStart + Microseconds(45), true), WaitStep::kPoll);
  EXPECT_EQ(NextAfter(policy, Microseconds(52)), WaitStep::kPoll);
  EXPECT_EQ(NextAfter(policy, Microseconds(53)), WaitStep::kYield);
  EXPECT_EQ(NextAfter(policy, Microseconds(96)), WaitStep::kSleep);
}

TEST(WaitPolicy, AdaptiveAfterALateYield_SleepsWhereItWouldYield) {
  WaitPolicy policy = Make(WaitMode::kAdaptive);
  EXPECT_FALSE(policy.crowded(kStart));
  policy.OnYield(kStart, kStart + kLate);
  EXPECT_TRUE(policy.crowded(kStart + kLate));
  EXPECT_EQ(policy.Next(kStart + kLate, true), WaitStep::kPoll);
  EXPECT_EQ(policy.Next(kStart + kLate + Microseconds(7), false), WaitStep::kPoll);
  EXPECT_EQ(policy.Next(kStart + kLate + Microseconds(8), false), WaitStep::kSleep);
  const TimePoint later = kStart + kLate + LateYields::kShortest;
  policy.OnSleep(later);
  EXPECT_FALSE(policy.crowded(later));
  EXPECT_EQ(policy.Next(later + Microseconds(8), false), WaitStep::kYield);
}

TEST(WaitPolicy, PlentyOfProcessors_NeverYields) {
  WaitParameters parameters;
  parameters.may_yield = false;
  WaitPolicy policy(parameters);
  policy.OnSleep(kStart);
  EXPECT_EQ(NextAfter(policy, Microseconds(50)), WaitStep::kPoll);
  EXPECT_EQ(NextAfter(policy, Microseconds(51)), WaitStep::kSleep);
}

TEST(WaitPolicy, ThreadThatKeepsItsCore_SleepsInsteadOfYielding) {
  WaitParameters parameters;
  parameters.keeps_core = true;
  WaitPolicy policy(parameters);
  policy.OnSleep(kStart);
  EXPECT_TRUE(policy.crowded(kStart));
  EXPECT_EQ(NextAfter(policy, Microseconds(8)), WaitStep::kSleep);
}

TEST(WaitPolicy, NearDeadline_IsAwaitedAwakeUnlessOthersWantTheCore) {
  WaitPolicy policy = Make(WaitMode::kAdaptive);
  EXPECT_EQ(policy.ShortestSleep(kStart), WaitPolicy::kShortestSleep);
  policy.OnYield(kStart, kStart + kLate);
  EXPECT_EQ(policy.ShortestSleep(kStart + kLate), WaitPolicy::kShortestSleepIfCrowded);
  EXPECT_EQ(Make(WaitMode::kEvent).ShortestSleep(kStart), WaitPolicy::kShortestSleepIfCrowded);
}

TEST(WaitPolicy, NothingWouldWakeTheThread_YieldsInsteadOfSleeping) {
  for (const WaitMode mode : {WaitMode::kEvent, WaitMode::kEventBatch, WaitMode::kHybrid}) {
    WaitParameters parameters;
    parameters.mode = mode;
    parameters.may_sleep = false;
    WaitPolicy policy(parameters);
    policy.OnSleep(kStart);
    EXPECT_EQ(NextAfter(policy, Seconds(1)), WaitStep::kYield);
  }
}

class RandomSchedules : public ::testing::TestWithParam<WaitMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, RandomSchedules,
                         ::testing::Values(WaitMode::kBusy, WaitMode::kEvent, WaitMode::kEventBatch,
                                           WaitMode::kHybrid, WaitMode::kAdaptive));

// However work, turns and yields follow each other: only adaptive threads and those that nothing
// would wake yield, the latter never sleep, work is followed by a sleep in mode event only, and a
// thread without work sleeps in time.
TEST_P(RandomSchedules, KeepThePromisesOfTheMode) {
  const WaitMode mode = GetParam();
  for (uint32_t seed = 0; seed < 105; ++seed) {
    std::mt19937 random(seed);
    WaitParameters parameters;
    parameters.mode = mode;
    parameters.may_sleep = seed % 3 != 0;
    parameters.may_yield = seed % 5 != 0;
    parameters.keeps_core = seed % 7 == 0;
    WaitPolicy policy(parameters);
    TimePoint now = kStart;
    TimePoint awake_since = now;
    policy.OnSleep(now);
    for (int turn = 0; turn < 500; ++turn) {
      now = now + Nanoseconds(100 + random() % 3000);
      const bool found_work = random() % 16 == 0;
      if (found_work) awake_since = now;
      const WaitStep step = policy.Next(now, found_work);
      if (step == WaitStep::kYield) {
        ASSERT_NE(mode, WaitMode::kBusy) << seed;
        ASSERT_TRUE(mode == WaitMode::kAdaptive || !parameters.may_sleep) << seed;
        ASSERT_TRUE(parameters.may_yield) << seed;
        ASSERT_FALSE(parameters.keeps_core && parameters.may_sleep) << seed;
        const TimePoint before = now;
        now = now + (random() % 8 == 0 ? Microseconds(150) : Microseconds(1));
        policy.OnYield(before, now);
      } else if (step == WaitStep::kSleep) {
        ASSERT_TRUE(parameters.may_sleep) << seed;
        ASSERT_NE(mode, WaitMode::kBusy) << seed;
        if (found_work) {
          ASSERT_EQ(mode, WaitMode::kEvent) << seed;
        }
        now = now + Microseconds(random() % 500);
        awake_since = now;
        policy.OnSleep(now);
      } else if (mode != WaitMode::kBusy && parameters.may_sleep) {
        ASSERT_LE(now - awake_since, parameters.sleep_after) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace rocegw
