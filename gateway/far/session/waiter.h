// SPDX-License-Identifier: Apache-2.0
// Waits for the end of one request.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace rocegw::far {

class Waiter {
 public:
  // rocegw_memory_done; the argument is the waiter.
  static void OnDone(void* argument, int status) {
    auto& waiter = *static_cast<Waiter*>(argument);
    const std::lock_guard lock(waiter.mutex_);
    waiter.done_ = true;
    waiter.status_ = status;
    waiter.condition_.notify_one();
  }
  // Waits at most so long. Returns whether the request has ended.
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return condition_.wait_for(lock, time, [this] { return done_; });
  }
  int Wait() {
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [this] { return done_; });
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool done_ = false;
  int status_ = 0;
};

}  // namespace rocegw::far
