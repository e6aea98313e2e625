// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/rtt.h"

#include <algorithm>

namespace rocegw::flow {
namespace {
// A peer that shares its cores is now and then late by a scheduler slice; probing sooner only makes
// duplicates.
constexpr Duration kProbeFloor = Milliseconds(4);
constexpr Duration kProbeWithoutSample = Milliseconds(50);
}  // namespace

void RttEstimator::OnSample(Duration rtt) {
  rtt.ns = std::max<int64_t>(rtt.ns, 1);
  if (!has_sample_) {
    has_sample_ = true;
    smoothed_ = minimum_ = rtt;
    variation_ = rtt / 2;
    return;
  }
  minimum_ = std::min(minimum_, rtt);
  const int64_t error = rtt.ns > smoothed_.ns ? rtt.ns - smoothed_.ns : smoothed_.ns - rtt.ns;
  variation_.ns += (error - variation_.ns) / 4;
  smoothed_.ns += (rtt.ns - smoothed_.ns) / 8;
}

Duration RttEstimator::ProbeTimeout() const {
  if (!has_sample_) return kProbeWithoutSample;
  return std::max(kProbeFloor, smoothed_ * 2 + variation_ * 4);
}

}  // namespace rocegw::flow
