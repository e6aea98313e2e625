// SPDX-License-Identifier: Apache-2.0
// How often one node's heartbeats are read: each is looked at under locks that all nodes share. A
// node that sends more is read later, and its connection's window holds it back. One stream's.
#pragma once

#include <algorithm>
#include <chrono>

namespace rocegw::api {

class HeartbeatPace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kBurst = 32;
  static constexpr std::chrono::milliseconds kEach{100};

  // Counts a heartbeat. Returns for how long the stream is not read; zero: not at all.
  Clock::duration Take(Clock::time_point now) {
    // The time at which all heartbeats so far are paid for.
    paid_ = std::max(paid_, now) + kEach;
    return std::max(paid_ - now - kBurst * Clock::duration(kEach), Clock::duration(0));
  }

 private:
  Clock::time_point paid_;
};

}  // namespace rocegw::api
