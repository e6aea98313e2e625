// SPDX-License-Identifier: Apache-2.0
// Take-overs of this gateway across its processes: numbers, pauses, refusals. Handed over with
// each take-over, so that counters do not jump back. Control thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gateway/base/time.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/metrics/duration_histogram.h"
#include "gateway/take_over/refusal.h"

namespace rocegw::take_over {

class History {
 public:
  // Counts a take-over that this process did.
  void Add(Duration blackout, uint64_t descriptors, const std::string& from_version,
           int64_t wall_ns);
  void AddRefusal(Refusal refusal);

  uint64_t count() const { return count_; }
  const metrics::DurationHistogram& blackouts() const { return blackouts_; }
  Duration last_blackout() const { return last_blackout_; }
  int64_t last_ns() const { return last_ns_; }
  uint64_t descriptors() const { return descriptors_; }
  const std::string& from_version() const { return from_version_; }
  // Refusals by position in kRefusals.
  const std::array<uint64_t, kRefusalCount>& refusals() const { return refusals_; }

  // Writes or reads the history as one record.
  void HandOver(hand_over::StateStream& state);

 private:
  uint64_t count_ = 0;
  metrics::DurationHistogram blackouts_;
  Duration last_blackout_;
  int64_t last_ns_ = 0;  // since 1970
  uint64_t descriptors_ = 0;
  std::string from_version_;  // version of the process before the last take-over
  std::array<uint64_t, kRefusalCount> refusals_{};
};

}  // namespace rocegw::take_over
