// SPDX-License-Identifier: Apache-2.0
// A thread whose polls find nothing, where pollers may outnumber cores: it gives its core away.
// Where somebody uses that core, it comes back when the scheduler's slice ends, long after what the
// thread waits for; for some time the thread then sleeps instead, and the daemon wakes it, which
// gives it a core at once. It sleeps on one queue only, so whoever polls several in turn yields.
// A thread has one; times are of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

namespace rocegw::client {

class IdlePoller {
 public:
  // The thread polls that queue now.
  void TurnTo(const void* queue) {
    if (queue_ == queue) return;
    queue_ = queue;
    rested_ = false;
  }
  // It has polled nothing else since it last gave its core away, and cores are wanted.
  bool ShouldSleep(int64_t now_ns) const { return rested_ && now_ns < crowded_until_ns_; }
  // It gave its core away, and got one again.
  void OnYield(int64_t before_ns, int64_t after_ns) {
    if (after_ns - before_ns > kLateYieldNs) crowded_until_ns_ = after_ns + kCrowdedNs;
    rested_ = true;
  }

  // A yield that nobody uses takes a microsecond.
  static constexpr int64_t kLateYieldNs = 10'000;
  static constexpr int64_t kCrowdedNs = 100'000'000;

 private:
  const void* queue_ = nullptr;
  bool rested_ = false;  // since it turned to the queue
  int64_t crowded_until_ns_ = 0;
};

// Of the calling thread.
IdlePoller& ThisPoller();
void YieldCore(IdlePoller& poller);
// While *word, shared with the daemon, is `value`, until it is woken; not for long. Not a
// cancellation point.
void SleepUntilWoken(uint32_t* word, uint32_t value);

}  // namespace rocegw::client
