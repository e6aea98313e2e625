// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/stop_deadline.h"

#include <chrono>
#include <utility>

namespace rocegw::process {

StopDeadline::StopDeadline(Duration within, std::function<void()> expired)
    : thread_([this, within, expired = std::move(expired)] {
        std::unique_lock lock(mutex_);
        const bool stopped = changed_.wait_for(lock, std::chrono::nanoseconds(within.ns),
                                               [this] { return stopped_; });
        if (!stopped) expired();
      }) {}

StopDeadline::~StopDeadline() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace rocegw::process
