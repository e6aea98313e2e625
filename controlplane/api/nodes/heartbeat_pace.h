// SPDX-License-Identifier: Apache-2.0
// Rate limit for one node's heartbeats, which are handled under locks that all nodes share. The
// stream of a node that sends more is read later, so that flow control holds it back. Per stream.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace rocegw::api {

class HeartbeatPace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kBurst = 32;
  static constexpr std::chrono::milliseconds kEach{100};
  // A heartbeat of more bytes counts as several.
  static constexpr size_t kBytes = 64 << 10;

  // Counts a heartbeat. Returns for how long the stream must not be read; zero: not at all.
  Clock::duration Take(Clock::time_point now, size_t bytes) {
    // Time at which all heartbeats so far are within the rate.
    paid_ = std::max(paid_, now) + (1 + bytes / kBytes) * kEach;
    return std::max(paid_ - now - kBurst * Clock::duration(kEach), Clock::duration(0));
  }

 private:
  Clock::time_point paid_;
};

}  // namespace rocegw::api
