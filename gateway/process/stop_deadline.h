// SPDX-License-Identifier: Apache-2.0
// Deadline for the stop of a daemon: runs a function on its own thread unless the object is
// destroyed in time.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "gateway/base/time.h"

namespace rocegw::process {

class StopDeadline {
 public:
  StopDeadline(Duration within, std::function<void()> expired);
  ~StopDeadline();
  StopDeadline(const StopDeadline&) = delete;
  StopDeadline& operator=(const StopDeadline&) = delete;

 private:
  std::mutex mutex_;
  bool stopped_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace rocegw::process
