// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/clock_watch.h"

namespace rocegw::identity {

std::optional<std::chrono::seconds> ClockWatch::Look(TimePoint now,
                                                     std::chrono::steady_clock::time_point steady) {
  using std::chrono::duration_cast;
  using std::chrono::seconds;
  const seconds step =
      duration_cast<seconds>(now - now_) - duration_cast<seconds>(steady - steady_);
  const bool set = looked_ && std::chrono::abs(step) >= kSmallestClockStep;
  looked_ = true;
  now_ = now;
  steady_ = steady;
  if (!set) return std::nullopt;
  ++steps_;
  return step;
}

std::string ClockStepText(std::chrono::seconds step) {
  return "the clock of this host was set " + std::string(step.count() > 0 ? "forward" : "back") +
         " by " + std::to_string(std::chrono::abs(step).count()) +
         " s (or the host was suspended): certificates are judged anew";
}

}  // namespace rocegw::identity
