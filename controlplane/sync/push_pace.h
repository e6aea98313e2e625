// SPDX-License-Identifier: Apache-2.0
// Rate limit for pushes, as a token bucket: a burst of some sweeps over the whole fleet, then so
// many per second. Waiting changes accumulate, so a flood of changes becomes few pushes with many
// changes each, while a single change is sent everywhere at once. Pure; one thread (the hub's
// lock).
#pragma once

#include <chrono>
#include <cstddef>

namespace rocegw::sync {

class PushPace {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    double per_second = 1000;
    double burst_per_node = 5;
    double least_burst = 1000;
  };

  explicit PushPace(const Options& options) : options_(options) {}

  // Takes a token, with so many nodes connected. Returns false if none is left before NextAt.
  bool Take(Clock::time_point now, size_t nodes);
  // Returns an unused token.
  void Return() { left_ += 1; }
  // Time of the next token, after Take has refused.
  Clock::time_point NextAt() const;

 private:
  const Options options_;
  bool begun_ = false;
  double left_ = 0;
  Clock::time_point counted_;
};

}  // namespace rocegw::sync
