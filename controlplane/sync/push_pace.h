// SPDX-License-Identifier: Apache-2.0
// How many pushes of changes may begin: as many as there are for some sweeps over the whole fleet,
// then so many a second. What has to wait gathers, so a flood of changes becomes few pushes with
// many changes each, while a single change goes everywhere at once. A token bucket. Pure; one
// thread (the hub's lock).
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

  // One more, with so many nodes connected. False: not before NextAt.
  bool Take(Clock::time_point now, size_t nodes);
  // What was taken was not needed.
  void Return() { left_ += 1; }
  // After Take has refused.
  Clock::time_point NextAt() const;

 private:
  const Options options_;
  bool begun_ = false;
  double left_ = 0;
  Clock::time_point counted_;
};

}  // namespace rocegw::sync
