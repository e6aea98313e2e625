// SPDX-License-Identifier: Apache-2.0
// Driver of a congestion control algorithm: events in, gate and deadline out. Time moves only when
// the test moves it.
#pragma once

#include "gateway/flow/congestion.h"

namespace rocegw::testing {

class CcDriver {
 public:
  static constexpr TimePoint kStart{1'000'000'000};

  explicit CcDriver(flow::CcKind kind, double gbps = 10, uint32_t window = 1 << 20) {
    profile.link_bits_per_second = static_cast<uint64_t>(gbps * 1e9);
    config = {.kind = kind, .window_bytes = window, .packet_bytes = 1000, .profile = &profile};
  }
  // Call after the parameters are set.
  void Start() {
    state.kind = config.kind;
    algorithm().init(state, config, now);
  }

  const flow::CcAlgorithm& algorithm() const { return flow::AlgorithmOf(config.kind); }
  void Set(const char* parameter, uint64_t value) { profile.Set(config.kind, parameter, value); }
  void Wait(Duration by) { now = now + by; }
  void Sent(uint64_t bytes) { algorithm().on_sent(state, bytes, now); }
  void Acked(const flow::CcFeedback& feedback) { algorithm().on_feedback(state, feedback, now); }
  void Cnp() { algorithm().on_cnp(state, now); }
  void Loss() { algorithm().on_loss(state, now); }
  void TakeOver(uint64_t window, Duration rtt) { algorithm().take_over(state, {window, rtt}, now); }
  flow::SendGate Gate(uint64_t in_flight = 0) const { return algorithm().gate(state, in_flight); }
  TimePoint Deadline() const { return algorithm().deadline(state); }
  void OnDeadline() { algorithm().on_deadline(state, now); }
  uint64_t Window(Duration rtt = Microseconds(100)) const { return algorithm().window(state, rtt); }
  // Returns the rate of an algorithm that has one, in Mbit/s.
  double Rate() const { return static_cast<double>(Window(Milliseconds(1))) * 8 / 1000; }

  flow::CcProfile profile;
  flow::CcConfig config;
  flow::CcState state;
  TimePoint now = kStart;
};

}  // namespace rocegw::testing
