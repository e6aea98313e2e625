// SPDX-License-Identifier: Apache-2.0
// What a thread does whose polls find nothing, when pollers may outnumber cores. If another thread
// uses the core that it yields, the poller comes back when the scheduler's slice ends, long after
// its completion. For some time the thread then sleeps instead, and the daemon wakes it, which
// gives it a core at once. It sleeps on one queue only; a thread that polls several yields. One
// object per thread; times are of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

#include "gateway/base/timing/wait_policy.h"

namespace rocegw::client {

// How threads of this process poll; the environment chooses (PollingFromEnvironment).
struct Polling {
  WaitMode mode = WaitMode::kBusy;
  uint32_t empty_polls = 0;  // after so many in a row a poll yields or sleeps; 0: never
  bool operator==(const Polling&) const = default;
};

// Reads ROCEGW_POLL, ROCEGW_POLL_EMPTY and ROCEGW_POLL_YIELD; nullptr: not set. `processors`: those
// that the process may use.
Polling ChoosePolling(const char* mode, const char* empty_polls, const char* yield, int processors);
Polling PollingFromEnvironment();

class IdlePoller {
 public:
  // Records that the thread polls that queue now.
  void TurnTo(const void* queue) {
    if (queue_ == queue) return;
    queue_ = queue;
    rested_ = false;
  }
  void Use(WaitMode mode) {
    if (mode_ == mode) return;
    mode_ = mode;
    policy_ = WaitPolicy(ParametersOf(mode));
  }
  // Returns true if the thread has polled no other queue since its last yield, and the policy says
  // that it should sleep.
  bool ShouldSleep(int64_t now_ns) {
    return rested_ && policy_.Next({now_ns}, false) == WaitStep::kSleep;
  }
  // Records a yield and its duration.
  void OnYield(int64_t before_ns, int64_t after_ns) {
    policy_.OnYield({before_ns}, {after_ns});
    rested_ = true;
  }

  // Duration of a yield that shows a scarce core; a yield that no thread uses takes a microsecond.
  static constexpr int64_t kLateYieldNs = 10'000;
  static constexpr int64_t kCrowdedNs = 100'000'000;

 private:
  // Empty polls count the time without work, so the policy's own times are zero.
  static constexpr WaitParameters ParametersOf(WaitMode mode) {
    constexpr Duration kCrowded = Nanoseconds(kCrowdedNs);
    WaitParameters parameters;
    parameters.mode = mode;
    parameters.yield_after = {};
    parameters.sleep_after = mode == WaitMode::kAdaptive ? Duration{INT64_MAX} : Duration{};
    parameters.late_yields = LateYields(Nanoseconds(kLateYieldNs), kCrowded, kCrowded);
    return parameters;
  }

  const void* queue_ = nullptr;
  bool rested_ = false;  // has yielded since it turned to the queue
  WaitMode mode_ = WaitMode::kAdaptive;
  WaitPolicy policy_{ParametersOf(WaitMode::kAdaptive)};
};

// Returns the object of the calling thread.
IdlePoller& ThisPoller();
void YieldCore(IdlePoller& poller);
// Sleeps while *word, shared with the daemon, is `value`, until woken or after a short time. Not a
// cancellation point.
void SleepUntilWoken(uint32_t* word, uint32_t value);

}  // namespace rocegw::client
