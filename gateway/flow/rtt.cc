// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/rtt.h"

#include <algorithm>
#include <limits>

namespace rocegw::flow {
namespace {
// Least probe timeout of native flows. A peer that shares its cores is sometimes late by a
// scheduler slice; earlier probes would only make duplicates.
constexpr Duration kProbeFloor = Milliseconds(4);
constexpr Duration kRecoveryFloor = Microseconds(100);
constexpr Duration kProbeWithoutSample = Milliseconds(50);

uint32_t Clamped(Duration rtt) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(rtt.ns, 1, std::numeric_limits<uint32_t>::max()));
}
}  // namespace

RttEstimator::RttEstimator(Duration guess) : variation_(guess.ns > 0 ? Clamped(guess) : 0) {}

void RttEstimator::OnSample(Duration rtt) {
  const uint32_t sample = Clamped(rtt);
  if (!has_sample()) {
    smoothed_ = minimum_ = sample;
    variation_ = sample / 2;
    return;
  }
  minimum_ = std::min(minimum_, sample);
  const int64_t away = int64_t{sample} - smoothed_;
  const int64_t error = away > 0 ? away : -away;
  variation_ = static_cast<uint32_t>(variation_ + (error - variation_) / 4);
  smoothed_ = static_cast<uint32_t>(smoothed_ + away / 8);
}

Duration RttEstimator::ProbeTimeout() const {
  if (!has_sample()) return kProbeWithoutSample;
  return std::max(kProbeFloor, UnlikelyLater());
}

Duration RttEstimator::RecoveryTimeout() const {
  if (!has_sample()) return kProbeWithoutSample;
  return std::max(kRecoveryFloor, UnlikelyLater());
}

}  // namespace rocegw::flow
