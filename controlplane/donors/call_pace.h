// SPDX-License-Identifier: Apache-2.0
// Bounds how often each caller makes a call that looks at many donors. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace rocegw::donors {

class CallPace {
 public:
  using Clock = std::chrono::steady_clock;

  // `most`: calls of one caller in a second.
  explicit CallPace(uint32_t most) : most_(most) {}

  // Counts a call. Returns false if it is one too many.
  bool May(const std::string& caller, Clock::time_point now = Clock::now()) {
    const std::lock_guard lock(mutex_);
    std::erase_if(windows_, [&](const auto& one) { return now - one.second.begin > kWindow; });
    Window& window = windows_.try_emplace(caller, Window{.begin = now}).first->second;
    return ++window.calls <= most_;
  }

 private:
  static constexpr std::chrono::seconds kWindow{1};

  struct Window {
    Clock::time_point begin;
    uint32_t calls = 0;
  };

  const uint32_t most_;
  std::mutex mutex_;
  std::map<std::string, Window> windows_;  // by caller, of the last second
};

}  // namespace rocegw::donors
