// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/rnic/dcqcn.h"

#include <algorithm>

namespace rocegw::sim {
namespace {
// Fraction bits of alpha below 1/1024.
constexpr uint32_t kAlphaFraction = 12;
}  // namespace

ReactionPoint::ReactionPoint(const DcqcnParameters& parameters, int64_t line_rate)
    : p_(parameters),
      line_rate_(line_rate),
      current_(line_rate),
      target_(line_rate),
      alpha_(parameters.initial_alpha << kAlphaFraction) {}

void ReactionPoint::AdvanceAlpha(TimePoint now) {
  while (alpha_at_ <= now) {
    if (alpha_ == 0 && !cnp_in_period_) {
      // alpha stays 0: skip to the current period.
      const int64_t periods = (now - alpha_at_).ns / p_.dce_tcp_rtt.ns + 1;
      alpha_at_ = alpha_at_ + p_.dce_tcp_rtt * periods;
      return;
    }
    const uint64_t kept = uint64_t{p_.dce_tcp_g} * alpha_ / 1024;
    const uint32_t gained = cnp_in_period_ ? (1024 - p_.dce_tcp_g) << kAlphaFraction : 0;
    alpha_ = static_cast<uint32_t>(kept) + gained;
    cnp_in_period_ = false;
    alpha_at_ = alpha_at_ + p_.dce_tcp_rtt;
  }
}

void ReactionPoint::Advance(TimePoint now) {
  if (!limited_) return;
  AdvanceAlpha(now);
  while (increase_at_ <= now && limited_) {
    increase_at_ = increase_at_ + p_.rpg_time_reset;
    ++timer_stage_;
    increased_ |= p_.clamp_tgt_rate_after_time_inc;
    Increase();
  }
}

void ReactionPoint::Increase() {
  const uint32_t most = std::max(timer_stage_, byte_stage_);
  const uint32_t least = std::min(timer_stage_, byte_stage_);
  if (most >= p_.rpg_threshold) {
    if (least > p_.rpg_threshold) {
      target_ += p_.rpg_hai_rate * (least - p_.rpg_threshold);
    } else {
      target_ += p_.rpg_ai_rate;
    }
  }
  target_ = std::min(target_, line_rate_);
  current_ = (current_ + target_) / 2;
  // Repeated halving with integers never reaches the target exactly.
  if (line_rate_ - current_ < line_rate_ / 10'000) {
    current_ = target_ = line_rate_;
    limited_ = false;
  }
}

void ReactionPoint::OnSent(uint64_t bytes, TimePoint now) {
  if (!limited_) return;
  Advance(now);
  if (p_.rpg_byte_reset == 0) return;
  bytes_ += bytes;
  const uint64_t period = p_.rpg_byte_reset * 64;
  while (bytes_ >= period && limited_) {
    bytes_ -= period;
    ++byte_stage_;
    increased_ = true;
    Increase();
  }
}

void ReactionPoint::OnCnp(TimePoint now) {
  Advance(now);
  if (!limited_) {
    limited_ = true;
    alpha_ = p_.initial_alpha << kAlphaFraction;
    alpha_at_ = now + p_.dce_tcp_rtt;
    if (p_.rate_to_set_on_first_cnp != 0) current_ = target_ = p_.rate_to_set_on_first_cnp;
    increased_ = true;
  }
  cnp_in_period_ = true;
  if (now < may_cut_at_) return;
  may_cut_at_ = now + p_.rate_reduce_monitor_period;
  if (increased_ || p_.clamp_tgt_rate) target_ = current_;
  increased_ = false;
  const int64_t by_alpha = current_ - (current_ * alpha_ >> (p_.rpg_gd + kAlphaFraction));
  current_ = std::max({by_alpha, current_ * p_.rpg_min_dec_fac / 100, p_.rpg_min_rate});
  timer_stage_ = byte_stage_ = 0;
  bytes_ = 0;
  increase_at_ = now + p_.rpg_time_reset;
}

}  // namespace rocegw::sim
