// SPDX-License-Identifier: Apache-2.0
// Round trip estimator of a flow (RFC 6298 smoothing) with the probe timeouts that follow from it.
// Times are capped at 4.2 s (32 bits of ns), so that each of the many idle flows needs 12 bytes
// only.
#pragma once

#include "gateway/base/time.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::flow {

class RttEstimator {
 public:
  RttEstimator() = default;
  // Starts with a guess, such as the round trip of a handshake. A guess may be far too high, so it
  // is used only for the first probe timeout.
  explicit RttEstimator(Duration guess);

  void OnSample(Duration rtt);

  bool has_sample() const { return minimum_ != 0; }
  Duration smoothed() const { return {smoothed_}; }
  Duration minimum() const { return {minimum_}; }
  // Returns the guess; 0: there was none, or there are samples.
  Duration guess() const { return {has_sample() ? 0 : variation_}; }
  // Returns a time after which an answer hardly ever arrives.
  Duration UnlikelyLater() const { return {int64_t{smoothed_} * 2 + int64_t{variation_} * 4}; }
  // Returns how long without progress makes a lost tail likely (cf. RFC 8985 7.2).
  Duration ProbeTimeout() const;
  // Returns the probe timeout after the peer has just sent something, so it is awake.
  Duration RecoveryTimeout() const;

  // Writes or reads the state (hand_over/state_stream.h).
  void HandOver(hand_over::StateStream& state);

 private:
  // Unit of all three: ns.
  uint32_t smoothed_ = 0;
  uint32_t variation_ = 0;  // before the first sample: the guess
  uint32_t minimum_ = 0;    // 0: no sample yet
};

}  // namespace rocegw::flow
