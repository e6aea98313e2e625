// SPDX-License-Identifier: Apache-2.0
// Departure times of a paced flow. A sender that comes late, because its timer is coarse or others
// were served first, makes up for at most the profile's burst; so the rate holds on average, and an
// idle flow does not save up. Part of an algorithm's state.
#pragma once

#include <algorithm>

#include "gateway/base/time.h"

namespace rocegw::flow {

class Pacer {
 public:
  // The next packet leaves now.
  void Start(TimePoint now) { next_ = now; }
  // No pacing.
  void Stop() { next_ = TimePoint{}; }
  // Something left that takes `interval` at the flow's rate.
  void OnSent(double interval_ns, Duration burst, TimePoint now) {
    const TimePoint from = std::max(next_, now - burst);
    const Duration interval{static_cast<int64_t>(std::min(interval_ns, kLongest))};
    next_ = std::min(from + interval, now + Duration{static_cast<int64_t>(kLongest)});
  }
  // The rate has changed by this factor: what is owed takes that much less time.
  void Rescale(double faster, TimePoint now) {
    if (next_ <= now) return;
    const double left = static_cast<double>((next_ - now).ns) / faster;
    next_ = now + Duration{static_cast<int64_t>(std::min(left, kLongest))};
  }
  TimePoint next() const { return next_; }

 private:
  // No wait is longer, whatever the rate.
  static constexpr double kLongest = 1e9;
  TimePoint next_;
};

}  // namespace rocegw::flow
