// SPDX-License-Identifier: Apache-2.0
// Departure times of a paced flow. A sender that is late, because its timer is coarse or others
// were served first, catches up with at most the profile's burst. So the rate holds on average, and
// an idle flow saves nothing up. Part of an algorithm's state.
#pragma once

#include <algorithm>

#include "gateway/base/time.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::flow {

class Pacer {
 public:
  // Starts pacing; the next packet may leave now.
  void Start(TimePoint now) { next_ = now; }
  // Stops pacing.
  void Stop() { next_ = TimePoint{}; }
  // Counts a departure that takes `interval_ns` at the flow's rate.
  void OnSent(double interval_ns, Duration burst, TimePoint now) {
    const TimePoint from = std::max(next_, now - burst);
    const Duration interval{static_cast<int64_t>(std::min(interval_ns, kLongest))};
    next_ = std::min(from + interval, now + Duration{static_cast<int64_t>(kLongest)});
  }
  // Adapts to a rate that changed by the factor `faster`: waiting times shrink accordingly.
  void Rescale(double faster, TimePoint now) {
    if (next_ <= now) return;
    const double left = static_cast<double>((next_ - now).ns) / faster;
    next_ = now + Duration{static_cast<int64_t>(std::min(left, kLongest))};
  }
  TimePoint next() const { return next_; }
  void HandOver(hand_over::StateStream& state) { state(next_); }

 private:
  // Longest wait in nanoseconds, whatever the rate.
  static constexpr double kLongest = 1e9;
  TimePoint next_;
};

}  // namespace rocegw::flow
