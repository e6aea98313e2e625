// SPDX-License-Identifier: Apache-2.0
// Heartbeat of a long-lived thread, for the process's watchdog (process/watchdog.h). The thread
// beats in each round of its loop, at least once per second even when idle.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace rocegw {

class Heartbeat {
 public:
  // Called by the thread itself: at its start, in each round, at its end.
  void Begin() { thread_.store(::gettid(), std::memory_order_relaxed); }
  void Beat() {
    beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void End() { thread_.store(0, std::memory_order_relaxed); }

  // Any thread. 0: the thread has not started, or has ended.
  pid_t thread() const { return thread_.load(std::memory_order_relaxed); }
  uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }

 private:
  std::atomic<pid_t> thread_{0};
  std::atomic<uint64_t> beats_{0};
};

}  // namespace rocegw
