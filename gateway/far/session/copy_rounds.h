// SPDX-License-Identifier: Apache-2.0
// Order in which the disk copy gets the pages that it lacks: slab after slab, round after round.
// Stretches that fail are passed over. A round in which some failed is followed by a pause, and so
// are many failures in a row, so that a disk that takes nothing costs the donors few reads. Values.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace rocegw::far {

class CopyRounds {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kFirstPause{1};
  static constexpr std::chrono::seconds kLongestPause{30};
  static constexpr uint32_t kMostFailuresInARow = 16;

  struct Place {
    uint32_t slab = 0;
    uint64_t position = 0;  // in the slab
  };

  // The search for pages goes on here.
  Place place() const { return place_; }
  bool MayCopy(TimePoint now) const { return now >= resume_at_; }

  // A stretch was copied, or was not. Returns whether the round goes on without a pause.
  bool StretchEnded(bool copied, Place behind, TimePoint now) {
    failed_ = failed_ || !copied;
    in_a_row_ = copied ? 0 : in_a_row_ + 1;
    if (in_a_row_ < kMostFailuresInARow) return true;
    place_ = behind;
    Pause(now);
    return false;
  }
  // Ends the pause.
  void Resume() { resume_at_ = {}; }
  void SlabEnded(uint32_t slab) { place_ = {slab + 1, 0}; }
  void RoundEnded(TimePoint now) {
    place_ = {};
    if (failed_) {
      Pause(now);
    } else {
      pause_ = {};
    }
    failed_ = false;
  }

 private:
  void Pause(TimePoint now) {
    pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
    resume_at_ = now + pause_;
    in_a_row_ = 0;
  }

  Place place_;
  bool failed_ = false;  // a stretch of this round
  uint32_t in_a_row_ = 0;
  std::chrono::seconds pause_{};
  TimePoint resume_at_;
};

}  // namespace rocegw::far
