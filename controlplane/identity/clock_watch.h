// SPDX-License-Identifier: Apache-2.0
// Detection of changes of the system clock, by comparison with the steady clock. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "controlplane/identity/certificate.h"

namespace rocegw::identity {

// Step back after which a process restarts: gRPC waits by the wall clock, for as long as the step.
inline constexpr std::chrono::seconds kStepToStartAnew{-60};
// Exit code of a daemon's work that must restart within the same process.
inline constexpr int kStartAnew = -2;

// Steps below this come from NTP, or from pauses of a busy machine.
inline constexpr std::chrono::seconds kSmallestClockStep(30);

class ClockWatch {
 public:
  // Returns the seconds by which the clock was set forward (negative: back) since the last call. A
  // suspension of the machine counts as set forward.
  std::optional<std::chrono::seconds> Look(TimePoint now,
                                           std::chrono::steady_clock::time_point steady);
  uint64_t steps() const { return steps_; }

 private:
  bool looked_ = false;
  TimePoint now_;
  std::chrono::steady_clock::time_point steady_;
  uint64_t steps_ = 0;
};

// Returns a text for the log.
std::string ClockStepText(std::chrono::seconds step);

}  // namespace rocegw::identity
