// SPDX-License-Identifier: Apache-2.0
// Flows that share a congestion control policy. It decides when to evaluate the policy and which
// flows must still switch after a new choice. Each call switches a limited number of flows, because
// there may be many. The owner keeps its flows at indices 0 to members-1; some may be empty.
// Belongs to one worker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/flow/cc_selector.h"
#include "gateway/flow/rtt.h"

namespace rocegw::flow {

class CcClass {
 public:
  CcClass(const CcPolicy& policy, CcKind otherwise, TimePoint now)
      : selector_(policy, otherwise, now) {}

  CcKind current() const { return selector_.current(); }

  // Calls change(index) for the next flows that have not switched since the last choice.
  template <typename Change>
  void ChangeSome(size_t members, Change change) {
    for (size_t i = 0; i < kChanges && next_change_ < members; ++i) change(next_change_++);
  }

  bool DueToLook(TimePoint now) const { return selector_.DueToLook(now); }
  // Evaluates the policy. `counts` holds everything except round trips, which are sampled from some
  // members in rotation; rtt_of(index) returns nullptr if there is no flow. Returns true if there
  // is a new choice.
  template <typename RttOf>
  bool Look(CcCounts counts, size_t members, RttOf rtt_of, TimePoint now) {
    int64_t samples = 0;
    for (size_t i = 0; i < std::min(kSamples, members); ++i) {
      next_sample_ = (next_sample_ + 1) % members;
      const RttEstimator* const rtt = rtt_of(next_sample_);
      if (rtt == nullptr || !rtt->has_sample()) continue;
      ++samples;
      counts.rtt = counts.rtt + rtt->smoothed();
      counts.shortest = counts.shortest + rtt->minimum();
    }
    if (samples > 1) {
      counts.rtt = counts.rtt / samples;
      counts.shortest = counts.shortest / samples;
    }
    const CcKind before = selector_.current();
    if (selector_.Look(counts, now) == before) return false;
    next_change_ = 0;
    return true;
  }

  // Writes or reads the state (gateway/hand_over).
  void HandOver(hand_over::StateStream& state);

 private:
  static constexpr size_t kSamples = 32;   // per evaluation
  static constexpr size_t kChanges = 256;  // per call

  CcSelector selector_;
  size_t next_sample_ = 0;
  size_t next_change_ = SIZE_MAX;
};

}  // namespace rocegw::flow
