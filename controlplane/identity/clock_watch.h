// SPDX-License-Identifier: Apache-2.0
// Notices that the system's clock was set, by comparing it with the steady clock. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "controlplane/identity/certificate.h"

namespace rocegw::identity {

// After such a step back a process starts anew: gRPC waits by the wall clock, for as long as the
// step.
inline constexpr std::chrono::seconds kStepToStartAnew{-60};
// The exit code with which a daemon's work ends that is to start anew in the same process.
inline constexpr int kStartAnew = -2;

// What NTP does without anybody's noticing, and a busy machine's pauses between two looks.
inline constexpr std::chrono::seconds kSmallestClockStep(30);

class ClockWatch {
 public:
  // Seconds by which the clock was set forward (or back, negative) since the last call. Time in
  // which the machine was suspended counts as set forward.
  std::optional<std::chrono::seconds> Look(TimePoint now,
                                           std::chrono::steady_clock::time_point steady);
  uint64_t steps() const { return steps_; }

 private:
  bool looked_ = false;
  TimePoint now_;
  std::chrono::steady_clock::time_point steady_;
  uint64_t steps_ = 0;
};

// For the log.
std::string ClockStepText(std::chrono::seconds step);

}  // namespace rocegw::identity
