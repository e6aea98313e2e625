// SPDX-License-Identifier: Apache-2.0
// Yielding of a thread whose polls find nothing, when pollers may outnumber cores. If another
// thread uses the yielded core, the poller comes back when the scheduler's slice ends, long after
// its completion. For some time the thread then sleeps instead, and the daemon wakes it, which
// gives it a core at once. It sleeps on one queue only; a thread that polls several yields. One
// object per thread; times are of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

namespace rocegw::client {

class IdlePoller {
 public:
  // Records that the thread polls that queue now.
  void TurnTo(const void* queue) {
    if (queue_ == queue) return;
    queue_ = queue;
    rested_ = false;
  }
  // Returns true if the thread has polled no other queue since its last yield, and cores are
  // scarce.
  bool ShouldSleep(int64_t now_ns) const { return rested_ && now_ns < crowded_until_ns_; }
  // Records a yield and its duration.
  void OnYield(int64_t before_ns, int64_t after_ns) {
    if (after_ns - before_ns > kLateYieldNs) crowded_until_ns_ = after_ns + kCrowdedNs;
    rested_ = true;
  }

  // Duration of a yield that shows a scarce core; a yield that no thread uses takes a microsecond.
  static constexpr int64_t kLateYieldNs = 10'000;
  static constexpr int64_t kCrowdedNs = 100'000'000;

 private:
  const void* queue_ = nullptr;
  bool rested_ = false;  // has yielded since it turned to the queue
  int64_t crowded_until_ns_ = 0;
};

// Returns the object of the calling thread.
IdlePoller& ThisPoller();
void YieldCore(IdlePoller& poller);
// Sleeps while *word, shared with the daemon, is `value`, until woken or after a short time. Not a
// cancellation point.
void SleepUntilWoken(uint32_t* word, uint32_t value);

}  // namespace rocegw::client
