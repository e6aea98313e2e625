// SPDX-License-Identifier: Apache-2.0
// Round trip estimate of a flow (RFC 6298 smoothing) and what follows from it for probing. Nothing
// beyond 4.2 s is told apart: idle flows are many, and 12 bytes each are enough.
#pragma once

#include "gateway/base/time.h"

namespace rocegw::flow {

class RttEstimator {
 public:
  RttEstimator() = default;
  // With a guess, such as the round trip of a handshake: it may be far above what packets need, so
  // it only says when to ask after the first of them.
  explicit RttEstimator(Duration guess);

  void OnSample(Duration rtt);

  bool has_sample() const { return minimum_ != 0; }
  Duration smoothed() const { return {smoothed_}; }
  Duration minimum() const { return {minimum_}; }
  // 0: there was none, or there are samples.
  Duration guess() const { return {has_sample() ? 0 : variation_}; }
  // Hardly any answer comes later than this.
  Duration UnlikelyLater() const { return {int64_t{smoothed_} * 2 + int64_t{variation_} * 4}; }
  // After this long without progress a lost tail is likely (cf. RFC 8985 7.2).
  Duration ProbeTimeout() const;
  // The same where the peer has just spoken: it is awake.
  Duration RecoveryTimeout() const;

 private:
  // ns
  uint32_t smoothed_ = 0;
  uint32_t variation_ = 0;  // before the first sample: the guess
  uint32_t minimum_ = 0;    // 0: no sample yet
};

}  // namespace rocegw::flow
