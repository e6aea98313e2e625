// SPDX-License-Identifier: Apache-2.0
// DCQCN as RNICs implement it, for the RNIC model only. Written from the published algorithm (Zhu
// et al., SIGCOMM 2015) and the parameters of ConnectX adapters. It shares no code with the
// gateway's congestion control, so that each checks the other.
//
// ReactionPoint: one sending queue pair. Its rate falls with each CNP and rises again by timer and
// byte counter: first halfway back to the previous rate, then by steps. NotificationPoint: one
// receiving queue pair. Decides which marked packets cause a CNP. Rates are bit/s. Value types; one
// thread.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"

namespace rocegw::sim {

// Names and defaults as adapters show them. Descriptions of rpg_byte_reset differ in its unit; here
// it counts 64 bytes, because with single bytes the rises before the next CNP would outweigh every
// CNP.
struct DcqcnParameters {
  bool clamp_tgt_rate = false;
  bool clamp_tgt_rate_after_time_inc = true;
  Duration rpg_time_reset = Microseconds(300);
  uint64_t rpg_byte_reset = 32767;  // in units of 64 bytes
  uint32_t rpg_threshold = 1;
  int64_t rpg_ai_rate = 5'000'000;
  int64_t rpg_hai_rate = 50'000'000;
  int64_t rpg_min_rate = 1'000'000;
  uint32_t rpg_gd = 11;
  uint32_t rpg_min_dec_fac = 50;         // percent
  int64_t rate_to_set_on_first_cnp = 0;  // 0: off
  uint32_t dce_tcp_g = 1019;             // weight of the old alpha, of 1024
  Duration dce_tcp_rtt = Microseconds(1);
  Duration rate_reduce_monitor_period = Microseconds(4);
  // Unit 1/1024; kept with a fraction, because otherwise it could not rise again.
  uint32_t initial_alpha = 1023;
  Duration min_time_between_cnps = Microseconds(4);
};

class ReactionPoint {
 public:
  ReactionPoint(const DcqcnParameters& parameters, int64_t line_rate);

  // Returns the current rate.
  int64_t Rate(TimePoint now) {
    Advance(now);
    return current_;
  }
  void OnSent(uint64_t bytes, TimePoint now);
  void OnCnp(TimePoint now);

 private:
  void Advance(TimePoint now);
  void AdvanceAlpha(TimePoint now);
  void Increase();

  const DcqcnParameters p_;
  const int64_t line_rate_;
  int64_t current_;
  int64_t target_;
  bool limited_ = false;   // a CNP has arrived; before that, the rate is the line rate
  bool increased_ = true;  // since the last cut
  uint32_t alpha_;
  bool cnp_in_period_ = false;
  TimePoint alpha_at_;     // end of the current period
  TimePoint increase_at_;  // next expiry of the timer
  TimePoint may_cut_at_;
  uint32_t timer_stage_ = 0;
  uint32_t byte_stage_ = 0;
  uint64_t bytes_ = 0;
};

class NotificationPoint {
 public:
  // Returns true if a CNP is to be sent for this marked packet.
  bool OnMarked(const DcqcnParameters& parameters, TimePoint now) {
    if (now < next_) return false;
    next_ = now + parameters.min_time_between_cnps;
    return true;
  }

 private:
  TimePoint next_;
};

}  // namespace rocegw::sim
