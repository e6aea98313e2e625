// SPDX-License-Identifier: Apache-2.0
// Timer wheel, compared with a list of deadlines.
#include "gateway/base/timing/timer_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/random.h"

namespace rocegw {
namespace {

constexpr TimePoint kStart{1'000'000'007};
constexpr Duration kSlot = Microseconds(64);

std::vector<uint32_t> Due(TimerWheel& wheel, TimePoint now) {
  std::vector<WorkerObject> due;
  wheel.Advance(now, due);
  std::vector<uint32_t> indices;
  indices.reserve(due.size());
  for (const WorkerObject owner : due) indices.push_back(owner.slot().index);
  std::sort(indices.begin(), indices.end());
  return indices;
}

TEST(TimerWheel, Empty_NeverHasADeadline) {
  TimerWheel wheel(kStart);
  EXPECT_EQ(wheel.NextDeadline(), kNever);
  EXPECT_TRUE(Due(wheel, kStart + Seconds(1000)).empty());
  wheel.Arm(SlotHandle{1, 0}, kNever);
  EXPECT_EQ(wheel.size(), 0u);
}

TEST(TimerWheel, Deadline_IsRoundedUpToTheSlot) {
  TimerWheel wheel(kStart);
  wheel.Arm(SlotHandle{1, 0}, kStart + Nanoseconds(1));
  EXPECT_EQ(wheel.NextDeadline(), kStart + kSlot);
  EXPECT_TRUE(Due(wheel, kStart + kSlot - Nanoseconds(1)).empty());
  EXPECT_EQ(Due(wheel, kStart + kSlot), std::vector<uint32_t>{1});
}

TEST(TimerWheel, DeadlineOnASlot_IsExact) {
  TimerWheel wheel(kStart);
  wheel.Arm(SlotHandle{1, 0}, kStart + kSlot * 10);
  EXPECT_EQ(wheel.NextDeadline(), kStart + kSlot * 10);
  EXPECT_TRUE(Due(wheel, kStart + kSlot * 10 - Nanoseconds(1)).empty());
  EXPECT_EQ(Due(wheel, kStart + kSlot * 10), std::vector<uint32_t>{1});
}

TEST(TimerWheel, PassedDeadline_IsDueAtOnce) {
  TimerWheel wheel(kStart);
  const TimePoint now = kStart + Seconds(1);
  EXPECT_TRUE(Due(wheel, now).empty());
  wheel.Arm(SlotHandle{1, 0}, kStart);
  wheel.Arm(SlotHandle{2, 0}, TimePoint{0});
  wheel.Arm(SlotHandle{3, 0}, now);
  EXPECT_LE(wheel.NextDeadline(), now);
  EXPECT_EQ(Due(wheel, now + kSlot), (std::vector<uint32_t>{1, 2, 3}));
}

TEST(TimerWheel, AfterDueAgainInTheSameSlot_IsFound) {
  TimerWheel wheel(kStart);
  const TimePoint now = kStart + kSlot * 5;
  wheel.Arm(SlotHandle{1, 0}, now);
  EXPECT_EQ(Due(wheel, now), std::vector<uint32_t>{1});
  wheel.Arm(SlotHandle{2, 0}, now);
  EXPECT_EQ(Due(wheel, now), std::vector<uint32_t>{2});
}

TEST(TimerWheel, ClockGoingBack_YieldsNothing) {
  TimerWheel wheel(kStart);
  EXPECT_TRUE(Due(wheel, kStart + Seconds(2)).empty());
  wheel.Arm(SlotHandle{1, 0}, kStart + Seconds(2) + kSlot);
  EXPECT_TRUE(Due(wheel, kStart + Seconds(1)).empty());
  EXPECT_TRUE(Due(wheel, TimePoint{0}).empty());
  EXPECT_EQ(Due(wheel, kStart + Seconds(3)), std::vector<uint32_t>{1});
}

TEST(TimerWheel, ManyTurnsAway_IsDueOnTime) {
  TimerWheel wheel(kStart);
  const TimePoint far = kStart + Seconds(3600) + Nanoseconds(5);
  wheel.Arm(SlotHandle{7, 3}, far);
  TimePoint now = kStart;
  int wakes = 0;
  // A worker that sleeps until NextDeadline gets there in few steps.
  while (wheel.size() != 0 && wakes < 10) {
    now = wheel.NextDeadline();
    std::vector<WorkerObject> due;
    wheel.Advance(now, due);
    ++wakes;
    for (const WorkerObject owner : due) EXPECT_EQ(owner.slot(), (SlotHandle{7, 3}));
  }
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(wakes, 1);
  EXPECT_GE(now, far);
  EXPECT_LT(now, far + kSlot);
}

TEST(TimerWheel, LatestDeadline_DoesNotOverflow) {
  TimerWheel wheel(TimePoint{-5});
  wheel.Arm(SlotHandle{1, 0}, TimePoint{kNever.ns - 1});
  EXPECT_GT(wheel.NextDeadline(), TimePoint{0} + Seconds(1'000'000'000));
  EXPECT_LT(wheel.NextDeadline(), kNever);
  EXPECT_TRUE(Due(wheel, TimePoint{0} + Seconds(1'000'000)).empty());
  EXPECT_EQ(wheel.size(), 1u);
}

struct Armed {
  uint32_t index;
  TimePoint deadline;
};

TimePoint Rounded(TimePoint deadline) {
  if (deadline <= kStart) return kStart;
  const int64_t distance = deadline.ns - kStart.ns;
  return kStart + kSlot * ((distance + kSlot.ns - 1) / kSlot.ns);
}

// Advances by random steps, from much less than a slot to many turns of the wheel.
TEST(TimerWheel, RandomUse_IsThatOfAList) {
  testing::Random random(testing::TestSeed(81));
  for (int run = 0; run < 30; ++run) {
    TimerWheel wheel(kStart);
    std::vector<Armed> model;
    TimePoint now = kStart;
    uint32_t next_index = 0;
    const auto some_duration = [&random] {
      static constexpr int64_t kScales[] = {1000, 100'000, 10'000'000, 300'000'000, 5'000'000'000};
      return Nanoseconds(static_cast<int64_t>(random.Below(kScales[random.Below(5)])));
    };
    for (int step = 0; step < 3000; ++step) {
      for (size_t i = random.Below(4); i != 0; --i) {
        const TimePoint deadline =
            random.Below(10) == 0 ? now - some_duration() : now + some_duration();
        wheel.Arm(SlotHandle{next_index, 1}, deadline);
        model.push_back({next_index++, deadline});
      }
      ASSERT_EQ(wheel.size(), model.size());
      TimePoint expected_next = kNever;
      for (const Armed& a : model) expected_next = Earlier(expected_next, Rounded(a.deadline));
      const TimePoint next = wheel.NextDeadline();
      if (expected_next > now) {
        ASSERT_EQ(next, expected_next);
      } else {
        ASSERT_LE(next, now);
      }
      now = random.Below(3) == 0 && next != kNever && next > now ? next : now + some_duration();
      std::vector<uint32_t> expected;
      std::erase_if(model, [&](const Armed& a) {
        if (Rounded(a.deadline) > now) return false;
        expected.push_back(a.index);
        return true;
      });
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(Due(wheel, now), expected) << "run " << run << " step " << step;
    }
  }
}

}  // namespace
}  // namespace rocegw
