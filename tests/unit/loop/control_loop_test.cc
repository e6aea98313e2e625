// SPDX-License-Identifier: Apache-2.0
#include "gateway/loop/control_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace rocegw {
namespace {

class Loop : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loop.Open().ok()); }
  static void Signal(int fd) {
    const uint64_t one = 1;
    ASSERT_EQ(::write(fd, &one, sizeof one), 8);
  }
  ControlLoop loop;
  UniqueFd a{::eventfd(0, EFD_NONBLOCK)};
  UniqueFd b{::eventfd(0, EFD_NONBLOCK)};
};

TEST_F(Loop, Watch_HandlerRunsWhileReady) {
  int calls = 0;
  const auto id = loop.Watch(a.get(), EPOLLIN, [&](uint32_t events) {
    EXPECT_EQ(events, static_cast<uint32_t>(EPOLLIN));
    ++calls;
  });
  loop.RunOnce({});
  EXPECT_EQ(calls, 0);
  Signal(a.get());
  loop.RunOnce({});
  loop.RunOnce({});
  EXPECT_EQ(calls, 2) << "level triggered";
  loop.Rearm(id, 0);
  loop.RunOnce({});
  EXPECT_EQ(calls, 2);
  loop.Rearm(id, EPOLLIN);
  loop.RunOnce({});
  EXPECT_EQ(calls, 3);
  loop.Unwatch(id);
  loop.RunOnce({});
  EXPECT_EQ(calls, 3);
}

TEST_F(Loop, Unwatch_FromAnotherHandlerOfTheSameRound) {
  int calls = 0;
  ControlLoop::WatchId ids[2] = {};
  const auto handler = [&](uint32_t) {
    ++calls;
    loop.Unwatch(ids[0]);
    loop.Unwatch(ids[1]);
  };
  ids[0] = loop.Watch(a.get(), EPOLLIN, handler);
  ids[1] = loop.Watch(b.get(), EPOLLIN, handler);
  Signal(a.get());
  Signal(b.get());
  loop.RunOnce({});
  EXPECT_EQ(calls, 1);
}

TEST_F(Loop, At_RunsInOrderAndNotBeforeItsTime) {
  std::vector<int> order;
  const TimePoint now = ControlLoop::Now();
  loop.At(now + Milliseconds(4), [&] { order.push_back(2); });
  loop.At(now + Milliseconds(2), [&] {
    EXPECT_GE(ControlLoop::Now().ns, (now + Milliseconds(2)).ns);
    order.push_back(1);
  });
  loop.At(now + Seconds(3600), [&] { order.push_back(3); });
  while (order.size() < 2) loop.RunOnce(Seconds(10));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(Loop, Cancel_AlsoFromAnotherTimerOfTheSameRound) {
  int calls = 0;
  const TimePoint past = ControlLoop::Now() - Milliseconds(1);
  ControlLoop::TimerId ids[2] = {};
  const auto handler = [&] {
    ++calls;
    loop.Cancel(ids[0]);
    loop.Cancel(ids[1]);
  };
  ids[0] = loop.At(past, handler);
  ids[1] = loop.At(past, handler);
  loop.RunOnce({});
  loop.RunOnce({});
  EXPECT_EQ(calls, 1);
}

TEST_F(Loop, At_ForThePast_FromAHandler_WaitsForTheNextRound) {
  int calls = 0;
  std::function<void()> again = [&] {
    ++calls;
    loop.At(ControlLoop::Now() - Seconds(1), again);
  };
  again();
  loop.RunOnce({});
  EXPECT_EQ(calls, 2);
}

TEST_F(Loop, Post_FromOtherThreads_AllRunOnTheLoop) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 500;
  int ran = 0;
  std::thread runner([&] { loop.Run(); });
  {
    std::vector<std::thread> posters;
    for (int t = 0; t < kThreads; ++t) {
      posters.emplace_back([&] {
        for (int i = 0; i < kTasks; ++i) EXPECT_TRUE(loop.Post([&ran] { ++ran; }));
      });
    }
    for (std::thread& poster : posters) poster.join();
  }
  loop.Stop();
  runner.join();
  EXPECT_EQ(ran, kThreads * kTasks);
  EXPECT_FALSE(loop.Post([&ran] { ++ran; }));
  EXPECT_EQ(ran, kThreads * kTasks);
}

// Work from another thread, announced on the descriptor only while the loop sleeps.
class Source final : public LoopSource {
 public:
  bool HasWork() const override { return work != 0; }
  void Work() override { done += work.exchange(0); }
  void SetAwake(bool now) override {
    awake = now;
    if (!now && bring_while_falling_asleep != 0)
      work += std::exchange(bring_while_falling_asleep, 0);
  }
  std::atomic<int> work{0};
  std::atomic<bool> awake{false};
  int bring_while_falling_asleep = 0;
  int done = 0;
};

TEST_F(Loop, Source_IsLookedAtInEachRound) {
  Source source;
  loop.LookAt(source);
  source.work = 3;
  loop.RunOnce(Seconds(3600));
  EXPECT_EQ(source.done, 3) << "no descriptor was written";
  EXPECT_TRUE(source.awake);
  loop.LookAway(source);
  source.work = 1;
  loop.RunOnce({});
  EXPECT_EQ(source.done, 3);
}

TEST_F(Loop, Source_WorkThatComesWhileItFallsAsleep_IsSeen) {
  Source source;
  loop.LookAt(source);
  source.bring_while_falling_asleep = 5;
  loop.RunOnce(Seconds(3600));
  EXPECT_EQ(source.done, 5);
}

TEST_F(Loop, Source_SaysThatItSleeps_WhileItWaits) {
  Source source;
  loop.LookAt(source);
  std::atomic<bool> ran{false};
  loop.At(ControlLoop::Now() + Milliseconds(1), [&] {
    EXPECT_TRUE(source.awake);
    ran = true;
  });
  std::thread other([&] {
    while (!ran || source.awake) std::this_thread::yield();
    loop.Stop();
  });
  loop.Run();
  other.join();
}

TEST_F(Loop, TwoSources_BothAreLookedAtAndSayThatTheySleep) {
  Source first, second;
  loop.LookAt(first);
  loop.LookAt(second);
  first.work = second.work = 1;
  loop.RunOnce(Seconds(3600));
  EXPECT_EQ(first.done, 1);
  EXPECT_EQ(second.done, 1);
  second.bring_while_falling_asleep = 2;
  loop.RunOnce(Seconds(3600));
  EXPECT_EQ(second.done, 3);
  EXPECT_TRUE(first.awake);
  loop.LookAway(first);
  first.work = second.work = 1;
  loop.RunOnce({});
  EXPECT_EQ(first.done, 1);
  EXPECT_EQ(second.done, 4);
}

TEST_F(Loop, AfterRound_RunsEachRound) {
  int rounds = 0;
  loop.AfterRound([&] { ++rounds; });
  loop.RunOnce({});
  loop.RunOnce({});
  EXPECT_EQ(rounds, 2);
}

}  // namespace
}  // namespace rocegw
