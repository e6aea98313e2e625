// SPDX-License-Identifier: Apache-2.0
// Threads whose polls find nothing: when they yield, when they sleep, and how they wake.
#include "gateway/client/rings/idle_poller.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "gateway/client/rings/monotonic_time.h"
#include "gateway/shm/sleepers.h"
#include "tests/unit/client/rings/ring_memory.h"

namespace rocegw::client {
namespace {

using ::rocegw::testing::RingMemory;

constexpr int64_t kLate = IdlePoller::kLateYieldNs + 1;

TEST(IdlePoller, YieldsComeBackAtOnce_GoesOnYielding) {
  IdlePoller poller;
  int queue = 0;
  poller.TurnTo(&queue);
  poller.OnYield(1000, 1000 + IdlePoller::kLateYieldNs);
  EXPECT_FALSE(poller.ShouldSleep(1000 + kLate));
}

TEST(IdlePoller, LateYield_SleepsForSomeTime) {
  IdlePoller poller;
  int queue = 0;
  poller.TurnTo(&queue);
  EXPECT_FALSE(poller.ShouldSleep(0));
  poller.OnYield(1000, 1000 + kLate);
  EXPECT_TRUE(poller.ShouldSleep(1000 + kLate));
  EXPECT_TRUE(poller.ShouldSleep(999 + kLate + IdlePoller::kCrowdedNs));
  EXPECT_FALSE(poller.ShouldSleep(1000 + kLate + IdlePoller::kCrowdedNs));
}

TEST(IdlePoller, SeveralQueuesInTurn_OnlyYields) {
  IdlePoller poller;
  int queues[2] = {};
  poller.TurnTo(&queues[0]);
  poller.OnYield(0, kLate);
  poller.TurnTo(&queues[1]);
  EXPECT_FALSE(poller.ShouldSleep(kLate));
  poller.OnYield(kLate, kLate + 1);
  EXPECT_TRUE(poller.ShouldSleep(kLate + 2));
  poller.TurnTo(&queues[0]);
  EXPECT_FALSE(poller.ShouldSleep(kLate + 2));
}

TEST(IdlePoller, WaitsForEvents_SleepsBehindTheFirstYieldThoughItWasNotLate) {
  IdlePoller poller;
  poller.Use(WaitMode::kEventBatch);
  int queue = 0;
  poller.TurnTo(&queue);
  EXPECT_FALSE(poller.ShouldSleep(1000));
  poller.OnYield(1000, 1001);
  EXPECT_TRUE(poller.ShouldSleep(2000));
}

TEST(Polling, NothingSet_DependsOnTheProcessors) {
  EXPECT_EQ(ChoosePolling(nullptr, nullptr, nullptr, 4), (Polling{WaitMode::kAdaptive, 64}));
  EXPECT_EQ(ChoosePolling(nullptr, nullptr, nullptr, 5), Polling());
}

TEST(Polling, Mode_IsTaken) {
  EXPECT_EQ(ChoosePolling("busy", nullptr, nullptr, 2), Polling());
  EXPECT_EQ(ChoosePolling("event", nullptr, nullptr, 8), (Polling{WaitMode::kEventBatch, 1}));
  EXPECT_EQ(ChoosePolling("hybrid", "200", nullptr, 8), (Polling{WaitMode::kHybrid, 200}));
  EXPECT_EQ(ChoosePolling("adaptive", nullptr, nullptr, 8), (Polling{WaitMode::kAdaptive, 64}));
  EXPECT_EQ(ChoosePolling("unknown", nullptr, nullptr, 2), (Polling{WaitMode::kAdaptive, 64}));
}

TEST(Polling, OlderVariable_StillWorks) {
  EXPECT_EQ(ChoosePolling(nullptr, nullptr, "on", 8), (Polling{WaitMode::kAdaptive, 64}));
  EXPECT_EQ(ChoosePolling(nullptr, nullptr, "off", 2), Polling());
  EXPECT_EQ(ChoosePolling("adaptive", nullptr, "off", 2), (Polling{WaitMode::kAdaptive, 64}));
}

TEST(Polling, CountOfEmptyPollsOutOfRange_IsTheDefault) {
  for (const char* text : {"", "0", "-1", "5x", "1000001", "99999999999999999999"})
    EXPECT_EQ(ChoosePolling("adaptive", text, nullptr, 2).empty_polls, 64u) << text;
  EXPECT_EQ(ChoosePolling("adaptive", "1000000", nullptr, 2).empty_polls, 1000000u);
}

TEST(IdlePoller, WordHasChanged_DoesNotSleep) {
  uint32_t word = 0;
  SleepUntilWoken(&word, 1);
  EXPECT_EQ(word, 0u);
}

TEST(IdlePoller, Sleeper_IsWoken) {
  uint32_t word = 0;
  std::atomic<bool> done = false;
  std::thread sleeper([&] {
    while (!done) {
      __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
      SleepUntilWoken(&word, 1);
    }
  });
  // The thread sleeps in short periods, so it is not asleep at every check.
  while (shm::WakeSleepers(&word) == 0) std::this_thread::yield();
  done = true;
  sleeper.join();
}

// Records a long yield of this thread, which polls `rings`. It counts for IdlePoller::kCrowdedNs.
void Crowd(const CompletionRings& rings) {
  constexpr int64_t kHour = 3600 * int64_t{1'000'000'000};
  ThisPoller().TurnTo(&rings);
  const int64_t now = MonotonicNs();
  ThisPoller().OnYield(now - kHour, now);
}

class RestingPolls : public ::testing::Test {
 protected:
  RestingPolls() { memory.cq().set_polling({WaitMode::kAdaptive, 2}, true); }
  uint32_t sleeping() { return memory.cq_control().sleeping; }
  int Poll() {
    ibv_wc wc;
    return memory.cq().Poll(1, &wc);
  }

  RingMemory memory;
};

TEST_F(RestingPolls, Crowded_SleepsAfterSoManyEmptyPolls) {
  Crowd(memory.cq());
  EXPECT_EQ(Poll(), 0);
  EXPECT_EQ(sleeping(), 0u);
  Crowd(memory.cq());
  EXPECT_EQ(Poll(), 0);
  EXPECT_EQ(sleeping(), 1u);
}

TEST_F(RestingPolls, DaemonThatWakesNobody_OnlyYields) {
  memory.cq().set_polling({WaitMode::kAdaptive, 2}, false);
  Crowd(memory.cq());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Poll(), 0);
  EXPECT_EQ(sleeping(), 0u);
}

TEST_F(RestingPolls, CompletionComes_DoesNotSleep) {
  Crowd(memory.cq());
  EXPECT_EQ(Poll(), 0);
  memory.Complete(1, {});
  EXPECT_EQ(Poll(), 1);
  EXPECT_EQ(Poll(), 0);
  EXPECT_EQ(sleeping(), 0u) << "counts empty polls in a row";
}

TEST_F(RestingPolls, AnotherQueueInBetween_DoesNotSleep) {
  RingMemory other;
  other.cq().set_polling({WaitMode::kAdaptive, 2}, true);
  Crowd(memory.cq());
  ibv_wc wc;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(other.cq().Poll(1, &wc), 0);
    EXPECT_EQ(Poll(), 0);
  }
  EXPECT_EQ(sleeping(), 0u);
}

TEST_F(RestingPolls, WokenByAWorker_EveryCompletionArrives) {
  constexpr int kCompletions = 2000;
  std::thread worker([&] {
    for (uint32_t i = 0; i < kCompletions; ++i) {
      while (i - __atomic_load_n(&memory.cq_control().worker[0].consumer, __ATOMIC_ACQUIRE) >= 4)
        std::this_thread::yield();
      memory.Complete(0, {});
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      shm::WakeSleepers(&memory.cq_control().sleeping);
    }
  });
  Crowd(memory.cq());
  for (int seen = 0; seen < kCompletions;) seen += Poll();
  worker.join();
  EXPECT_EQ(memory.consumer(0), uint32_t{kCompletions});
}

}  // namespace
}  // namespace rocegw::client
