// SPDX-License-Identifier: Apache-2.0
// Tests of the watchdog. Runs under ThreadSanitizer too.
#include "gateway/process/watchdog.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "gateway/base/unique_fd.h"
#include "gateway/process/stop_deadline.h"

namespace rocegw::process {
namespace {

constexpr Duration kSecond = Seconds(1);

// Returns true if `count` equal samples make a thread without heartbeats count as stuck.
bool StuckAfter(int count, char state, Duration cpu_per_sample) {
  StuckJudge judge(Seconds(10));
  Duration cpu;
  bool stuck = judge.OnSample(1, {state, cpu}, kSecond);
  for (int i = 0; i < count; ++i) {
    cpu = cpu + cpu_per_sample;
    stuck = judge.OnSample(1, {state, cpu}, kSecond);
  }
  return stuck;
}

TEST(StuckJudge, SleepsWithoutBeat_IsStuckAfterItsTime) {
  EXPECT_FALSE(StuckAfter(9, 'S', {}));
  EXPECT_TRUE(StuckAfter(10, 'S', {}));
  EXPECT_TRUE(StuckAfter(10, 'D', {}));
}

TEST(StuckJudge, SpinsWithoutBeat_IsStuckByTheTimeThatItUsed) {
  EXPECT_FALSE(StuckAfter(9, 'R', kSecond));
  EXPECT_TRUE(StuckAfter(10, 'R', kSecond));
}

TEST(StuckJudge, WaitsForAProcessor_IsNotStuck) {
  EXPECT_FALSE(StuckAfter(60, 'R', {}));
  EXPECT_FALSE(StuckAfter(60, 'R', Milliseconds(50)));
}

TEST(StuckJudge, Stopped_IsNotStuck) {
  EXPECT_FALSE(StuckAfter(60, 'T', {}));
  EXPECT_FALSE(StuckAfter(60, 't', {}));
}

TEST(StuckJudge, OneBeat_BeginsAnew) {
  StuckJudge judge(Seconds(10));
  for (uint64_t round = 0; round < 5; ++round) {
    for (int i = 0; i < 9; ++i) EXPECT_FALSE(judge.OnSample(round, {'S', {}}, kSecond));
  }
}

TEST(Watchdog, ThreadInABlockingRead_IsNamedWithItsStack_AndGoesOn) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  Heartbeat heartbeat;
  std::atomic<bool> end{false};
  std::thread thread([&] {
    heartbeat.Begin();
    heartbeat.Beat();
    char byte;
    (void)!::read(reader.get(), &byte, 1);
    while (!end.load()) {
      heartbeat.Beat();
      std::this_thread::yield();
    }
    heartbeat.End();
  });
  Watchdog watchdog(Milliseconds(5), Milliseconds(50));
  watchdog.Watch("worker 7", heartbeat);
  watchdog.Start();
  std::string stuck;
  while ((stuck = watchdog.Stuck()).empty()) std::this_thread::yield();
  EXPECT_TRUE(stuck.starts_with("worker 7 has been stuck for ")) << stuck;
  ASSERT_EQ(::write(writer.get(), "x", 1), 1);
  while (!watchdog.Stuck().empty()) std::this_thread::yield();
  watchdog.Stop();
  end.store(true);
  thread.join();
}

TEST(DescribeThread, ThreadInABlockingRead_HasACallStack) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  Watchdog watchdog;  // installs the handler
  watchdog.Start();
  watchdog.Stop();
  std::atomic<pid_t> id{0};
  std::thread thread([&] {
    id.store(::gettid());
    char byte;
    EXPECT_EQ(::read(reader.get(), &byte, 1), 1) << "the call goes on after the stack is taken";
  });
  while (id.load() == 0) std::this_thread::yield();
  const auto lines = DescribeThread(id.load());
  const auto frames = std::ranges::count_if(
      lines, [](const std::string& line) { return line.starts_with("call stack: "); });
  EXPECT_GE(frames, 3) << (lines.empty() ? "" : lines.back());
  ASSERT_EQ(::write(writer.get(), "x", 1), 1);
  thread.join();
}

TEST(StopDeadline, StopInTime_RunsNothing) {
  std::atomic<bool> expired{false};
  {
    const StopDeadline deadline(Seconds(3600), [&] { expired.store(true); });
  }
  EXPECT_FALSE(expired.load());
}

TEST(StopDeadline, StopThatTakesTooLong_RunsTheFunction) {
  std::atomic<bool> expired{false};
  const StopDeadline deadline(Milliseconds(1), [&] { expired.store(true); });
  while (!expired.load()) std::this_thread::yield();
}

}  // namespace
}  // namespace rocegw::process
