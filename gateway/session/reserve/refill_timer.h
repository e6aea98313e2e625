// SPDX-License-Identifier: Apache-2.0
// Timer of the refills of reserves: a user of a reserve schedules a refill, and the reserves' owner
// carries it out. Owner: session server, control thread.
#pragma once

#include <functional>

#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::session {

class RefillTimer {
 public:
  // `quiet`: time from a use of a reserve to its refill.
  RefillTimer(ControlLoop& loop, Duration quiet) : loop_(loop), quiet_(quiet) {}
  ~RefillTimer() { loop_.Unwatch(watch_); }
  RefillTimer(const RefillTimer&) = delete;
  RefillTimer& operator=(const RefillTimer&) = delete;

  // Enables the timer: from now on it calls `refill`. Only the first call has an effect.
  void Begin(std::function<void()> refill);
  // Schedules a refill after the quiet time. Allocates nothing.
  void Later() { Arm(quiet_); }
  // Schedules a refill, unless one is scheduled already.
  void Arm(Duration after);
  // Returns true if a refill is scheduled.
  bool armed() const { return armed_; }

 private:
  void OnTimer();

  ControlLoop& loop_;
  const Duration quiet_;
  std::function<void()> refill_;
  UniqueFd timer_;
  ControlLoop::WatchId watch_ = 0;
  bool armed_ = false;
};

}  // namespace rocegw::session
