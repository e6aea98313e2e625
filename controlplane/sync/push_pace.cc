// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/push_pace.h"

#include <algorithm>

namespace rocegw::sync {

using Seconds = std::chrono::duration<double>;

bool PushPace::Take(Clock::time_point now, size_t nodes) {
  const double most =
      std::max(options_.least_burst, options_.burst_per_node * static_cast<double>(nodes));
  left_ =
      begun_ ? std::min(most, left_ + Seconds(now - counted_).count() * options_.per_second) : most;
  begun_ = true;
  counted_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

PushPace::Clock::time_point PushPace::NextAt() const {
  const Seconds missing(std::max(0.0, 1 - left_) / options_.per_second);
  // Rounded up, so that the token exists at the wake-up.
  return counted_ + std::chrono::duration_cast<Clock::duration>(missing) +
         std::chrono::microseconds(1);
}

}  // namespace rocegw::sync
