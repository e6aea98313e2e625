// SPDX-License-Identifier: Apache-2.0
// Waits for the end of one request.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace rocegw::far {

// `Result`: int for requests, int64_t for those of a block pool.
template <typename Result>
class WaiterFor {
 public:
  // rocegw_memory_done or rocegw_memory_blocks_done; the argument is the waiter.
  static void OnDone(void* argument, Result result) {
    auto& waiter = *static_cast<WaiterFor*>(argument);
    const std::lock_guard lock(waiter.mutex_);
    waiter.done_ = true;
    waiter.result_ = result;
    waiter.condition_.notify_one();
  }
  // Waits at most so long. Returns whether the request has ended.
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return condition_.wait_for(lock, time, [this] { return done_; });
  }
  Result Wait() {
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [this] { return done_; });
    return result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool done_ = false;
  Result result_ = 0;
};

using Waiter = WaiterFor<int>;

}  // namespace rocegw::far
