// SPDX-License-Identifier: Apache-2.0
// DCQCN, the reaction point (Zhu et al., SIGCOMM 2015), with the parameter names and presets of
// RNICs, which administrators know. Every CNP cuts the rate; a timer and a byte counter raise it
// again in three stages. A flow without CNPs, or one that has recovered, is not paced. Rates are
// integers in kbit/s. alpha is in units of 1/1024 with fraction bits, because without them it would
// fade too fast.
//
// Nothing runs while nothing is sent: the next event catches up on all periods since the last one.
// A deadline is requested only if the rate would rise before the next packet may leave.
#include "gateway/flow/cc/algorithm.h"
#include "gateway/flow/cc/pacer.h"

namespace rocegw::flow {
namespace {

class Dcqcn : public CcBase {
  static constexpr uint8_t kMostStages = 31;

 public:
  static constexpr const char* kName = "dcqcn";
  static constexpr const char* kSummary = "rate by CNPs, as RNICs do it";
  static constexpr bool kUsesMarks = true;
  static constexpr CcParameter kParameters[] = {
      {"clamp_tgt_rate", "", 0, 0, 1, "1: every cut lowers the target rate, too"},
      {"clamp_tgt_rate_after_time_inc", "", 1, 0, 1,
       "1: a rise by the timer, too, lets the next cut lower the target rate"},
      {"rpg_time_reset", "us", 300, 1, 1000000, "period of rises by the timer"},
      {"rpg_byte_reset", "x 64 bytes", 32767, 0, 1u << 24, "data between rises by count; 0: none"},
      {"rpg_threshold", "", 1, 1, 31, "rises before fast recovery ends"},
      {"rpg_ai_rate", "Mbit/s", 5, 1, 1000000, "additive increase"},
      {"rpg_hai_rate", "Mbit/s", 50, 1, 1000000, "hyper increase"},
      {"rpg_max_rate", "Mbit/s", 0, 0, 4000000, "highest rate; 0: that of the link"},
      {"rpg_min_rate", "Mbit/s", 1, 1, 1000000, "lowest rate"},
      {"rpg_gd", "", 11, 0, 15, "a cut takes alpha / 2^rpg_gd of the rate"},
      {"rpg_min_dec_fac", "%", 50, 1, 100, "what one cut leaves at least"},
      {"rate_to_set_on_first_cnp", "Mbit/s", 0, 0, 4000000, "rate after the first CNP; 0: a cut"},
      {"dce_tcp_g", "/1024", 1019, 0, 1023, "weight of the old alpha"},
      {"dce_tcp_rtt", "us", 1, 1, 1000000, "period of alpha"},
      {"rate_reduce_monitor_period", "us", 4, 0, 1000000, "cuts are at least so far apart"},
      {"initial_alpha_value", "/1024", 1023, 1, 1023, "alpha at the first CNP"},
      {"initial_window", "KiB", 32, 1, 65535, "of a new flow; grows until the first CNP"},
      {"window_time", "us", 100, 0, 1000000,
       "bounds what is in flight: rate x (round trip + this); 0: no bound"},
      {"quiet_periods", "", 6, 0, kMostStages,
       "timer rises without CNP and queue before hyper increase; 0: never"},
  };

  void Init(const CcContext& c, TimePoint now) {
    Release(c);
    last_cut_ = Low(now - Seconds(1));
    alpha_time_ = Low(now);
    window_ = Units(std::max(c[kInitialWindow] * 1024.0, c.packet));
  }

  void TakeOver(const CcContext& c, const CcOperatingPoint& point, TimePoint now) {
    window_ = kNoWindow;
    if (point.window == 0 || point.rtt.ns <= 0) return;
    if (static_cast<double>(point.window) >= c.window_limit) return;
    const double kbps = static_cast<double>(point.window) * 8e6 / static_cast<double>(point.rtt.ns);
    if (kbps >= MaxRate(c)) return;
    current_ = target_ = std::max(static_cast<uint32_t>(kbps), MinRate(c));
    Limit(c, now);
  }

  void OnSent(const CcContext& c, uint64_t bytes, TimePoint now) {
    if (!limited_) return;
    CatchUp(c, now);
    if (!limited_) return;
    pacer_.OnSent(static_cast<double>(bytes) * 8e6 / current_, c.profile.burst, now);
    if (window_ != kNoWindow) {
      sent_ += static_cast<uint32_t>(std::min<uint64_t>(bytes, 1u << 20));
      return;
    }
    const uint32_t period = c[kByteReset] * 64;
    if (period == 0) return;
    for (sent_ += static_cast<uint32_t>(std::min<uint64_t>(bytes, 1u << 30));
         sent_ >= period && limited_; sent_ -= period) {
      if (byte_stage_ < kMostStages) ++byte_stage_;
      increased_ = true;
      Raise(c, now);
    }
  }

  void OnFeedback(const CcContext& c, const CcFeedback& feedback, TimePoint now) {
    const auto in_flight = static_cast<double>(feedback.in_flight_before);
    if (feedback.rtt.ns > 0) {
      const bool held = in_flight + c.packet > Bound(c);
      const int64_t us = std::min<int64_t>((feedback.rtt.ns + 999) / 1000, kLongPath);
      path_us_ =
          static_cast<uint16_t>(path_us_ == 0 ? us : std::min<int64_t>(path_us_, us)) & kLongPath;
      no_queue_ = us <= path_us_ + path_us_ / 4 + 2;
      used_ = held ? static_cast<uint32_t>(std::clamp(
                         in_flight * 8e6 / static_cast<double>(feedback.rtt.ns), 1.0, 4e9))
                   : 0;
    }
    if (window_ != kNoWindow) {
      if (!limited_) {
        window_ = Units(window_ * kUnit + static_cast<double>(feedback.acked_bytes) * 0.75);
      } else if (sent_ >= window_ * kUnit) {
        // A window has left since the first CNP. READ responses have no round trip samples.
        if (feedback.rtt.ns > 0) EndStart(c, feedback.rtt, now);
        if (path_us_ == 0) window_ = kNoWindow;
      }
    }
    // On channels, marks in acknowledgements take the place of CNPs.
    if (feedback.marked_bytes != 0) OnCnp(c, now);
  }

  void OnCnp(const CcContext& c, TimePoint now) {
    CatchUp(c, now);
    const bool first = !limited_;
    if (limited_ && window_ != kNoWindow) {
      // The starting window limits the flow until its rate is known.
      cnp_seen_ = true;
      return;
    }
    // Rate that the window did not let the flow use must not absorb the cut, so cut from the rate
    // in use.
    if (limited_ && used_ != 0) current_ = std::max(std::min(current_, used_), MinRate(c));
    if (first) {
      alpha_ = c[kInitialAlpha] << kAlphaFraction;
      alpha_time_ = Low(now);
      cnp_seen_ = false;
      increased_ = true;
    } else {
      AdvanceAlpha(c, now);
      if (Duration{Low(now) - last_cut_} < Microseconds(c[kMonitorPeriod])) {
        cnp_seen_ = true;
        return;
      }
    }
    if (increased_ || c[kClampTarget] != 0) target_ = current_;
    increased_ = false;
    cnp_seen_ = true;
    last_cut_ = Low(now);
    const uint64_t taken = (uint64_t{current_} * alpha_) >> (c[kGd] + kAlphaFraction);
    const uint64_t left = uint64_t{current_} * c[kMinDecFac] / 100;
    uint64_t rate = std::max(current_ - std::min<uint64_t>(taken, current_), left);
    if (first && c[kFirstCnpRate] != 0)
      rate = std::min<uint64_t>(current_, uint64_t{c[kFirstCnpRate]} * 1000);
    const uint32_t before = current_;
    current_ = static_cast<uint32_t>(std::max<uint64_t>(rate, MinRate(c)));
    if (first) {
      Limit(c, now);
    } else {
      pacer_.Rescale(static_cast<double>(current_) / before, now);
    }
    RestartStages(c, now);
  }

  void OnDeadline(const CcContext& c, TimePoint now) { CatchUp(c, now); }

  TimePoint Deadline(const CcContext&) const {
    return limited_ && next_rise_ < pacer_.next() ? next_rise_ : kNever;
  }

  SendGate Gate(const CcContext& c, uint64_t in_flight) const {
    return WindowGate(Bound(c), in_flight, pacer_.next());
  }

  uint64_t Window(const CcContext& c, Duration rtt) const {
    if (!limited_ || rtt.ns <= 0) return static_cast<uint64_t>(Bound(c));
    const double bytes = static_cast<double>(current_) / 8e6 * static_cast<double>(rtt.ns);
    return static_cast<uint64_t>(std::clamp(bytes, 1.0, c.window_limit));
  }

  void HandOver(hand_over::StateStream& state) {
    auto& [pacer, next_rise, last_cut, alpha_time, current, target, sent, used, window, path_us,
           no_queue, alpha, limited, increased, cnp_seen, time_stage, byte_stage] = *this;
    pacer.HandOver(state);
    state(next_rise);
    state.LowTime(last_cut);
    state.LowTime(alpha_time);
    state(current, target, sent, used, window);
    path_us = state.Carry<uint16_t>(path_us, kLongPath) & kLongPath;
    no_queue = state.Carry<bool>(no_queue);
    alpha = state.Carry<uint32_t>(alpha, (1u << (10 + kAlphaFraction)) - 1);
    limited = state.Carry<bool>(limited);
    increased = state.Carry<bool>(increased);
    cnp_seen = state.Carry<bool>(cnp_seen);
    time_stage = state.Carry<uint32_t>(time_stage, kMostStages);
    byte_stage = state.Carry<uint32_t>(byte_stage, kMostStages);
    // The waiting times of packets are divided by the rate.
    state.Require(current != 0, "a flow has no rate");
  }

 private:
  enum Parameter : uint8_t {
    kClampTarget,
    kClampTargetAfterTimer,
    kTimeReset,
    kByteReset,
    kThreshold,
    kAiRate,
    kHaiRate,
    kMaxRate,
    kMinRate,
    kGd,
    kMinDecFac,
    kFirstCnpRate,
    kG,
    kAlphaPeriod,
    kMonitorPeriod,
    kInitialAlpha,
    kInitialWindow,
    kWindowTime,
    kQuietPeriods,
  };
  static constexpr double kUnit = 64;  // unit of window_ in bytes
  static constexpr uint16_t kNoWindow = UINT16_MAX;
  static constexpr uint16_t kLongPath = (1u << 15) - 1;  // this many us, or more
  static constexpr uint32_t kAlphaFraction = 9;          // bits
  // Link rate in kbit/s that is assumed when the port does not report its speed.
  static constexpr uint32_t kUnknownLink = 100'000'000;
  // A flow that missed so many periods starts afresh.
  static constexpr int kMostPeriods = 4096;

  static uint32_t MaxRate(const CcContext& c) {
    if (c[kMaxRate] != 0) return c[kMaxRate] * 1000;
    const uint64_t link = c.profile.link_bits_per_second / 1000;
    return link == 0 ? kUnknownLink : static_cast<uint32_t>(std::min<uint64_t>(link, 4000000000));
  }
  static uint32_t MinRate(const CcContext& c) { return std::min(c[kMinRate] * 1000, MaxRate(c)); }

  static uint16_t Units(double bytes) {
    return static_cast<uint16_t>(std::min<double>(bytes / kUnit, kNoWindow));
  }
  // Returns the low 32 bits of a time. Compared times are less than 1.3 s apart, because a flow
  // that missed more starts afresh.
  static uint32_t Low(TimePoint time) { return static_cast<uint32_t>(time.ns); }

  // Returns the limit of bytes in flight. With many flows, CNPs per flow are rare and the rate
  // falls slowly. The limit keeps the queue from growing meanwhile.
  double Bound(const CcContext& c) const {
    double bound = c.window_limit;
    if (window_ != kNoWindow) {
      bound = window_ * kUnit;
    } else if (limited_ && c[kWindowTime] != 0 && path_us_ != 0 && path_us_ != kLongPath) {
      bound = std::max(2 * c.packet, (path_us_ + c[kWindowTime]) * (current_ / 8e3));
    }
    return std::min(bound, c.window_limit);
  }

  // Ends the start of a new flow. Its fair share is about what the window let through, given what
  // all others sent before it in that time. It starts at half of that, so that the queue drains,
  // and aims at twice that, because against a flow that had the link to itself the window let
  // through too little.
  void EndStart(const CcContext& c, Duration rtt, TimePoint now) {
    const double through = window_ * kUnit * 8e6 / static_cast<double>(rtt.ns);
    window_ = kNoWindow;
    const uint32_t before = current_;
    target_ = static_cast<uint32_t>(std::clamp<double>(2 * through, MinRate(c), target_));
    current_ = static_cast<uint32_t>(std::clamp<double>(through / 2, MinRate(c), current_));
    pacer_.Rescale(static_cast<double>(current_) / before, now);
    RestartStages(c, now);
  }

  void Release(const CcContext& c) {
    limited_ = false;
    current_ = target_ = MaxRate(c);
    pacer_.Stop();
  }
  void Limit(const CcContext& c, TimePoint now) {
    limited_ = true;
    pacer_.Start(now);
    RestartStages(c, now);
  }
  void RestartStages(const CcContext& c, TimePoint now) {
    time_stage_ = byte_stage_ = 0;
    sent_ = 0;
    next_rise_ = now + Microseconds(c[kTimeReset]);
  }

  void CatchUp(const CcContext& c, TimePoint now) {
    for (int i = 0; limited_ && next_rise_ <= now; ++i) {
      if (i == kMostPeriods) {
        Release(c);
        return;
      }
      if (time_stage_ < kMostStages) ++time_stage_;
      CountQuiet(c);
      if (c[kClampTargetAfterTimer] != 0) increased_ = true;
      const TimePoint at = next_rise_;
      next_rise_ = next_rise_ + Microseconds(c[kTimeReset]);
      Raise(c, at);
    }
  }

  // Counts a timer period without congestion. The byte counter lets fast flows ask for more, but
  // flows that share a link with many others are too slow for it: when most of the others end, the
  // rest would take long to use the link. A flow that is too slow for the byte counter therefore
  // counts as if it had reached it after kQuietPeriods timer periods without a CNP and without a
  // queue.
  void CountQuiet(const CcContext& c) {
    const uint64_t periods = c[kQuietPeriods];
    const uint64_t bits = uint64_t{current_} * periods * c[kTimeReset] / 1000;
    const bool slow = c[kByteReset] == 0 || bits < uint64_t{c[kByteReset]} * 64 * 8;
    const bool quiet = periods != 0 && time_stage_ >= periods && slow && no_queue_;
    if (quiet && byte_stage_ < time_stage_) byte_stage_ = time_stage_;
    no_queue_ = false;
  }

  // Raises the rate after one event of the timer or the byte counter.
  void Raise(const CcContext& c, TimePoint now) {
    const uint32_t least = std::min(time_stage_, byte_stage_);
    const uint32_t most = std::max(time_stage_, byte_stage_);
    uint64_t target = target_;
    if (least > c[kThreshold]) {
      target += uint64_t{least - c[kThreshold]} * c[kHaiRate] * 1000;
    } else if (most >= c[kThreshold]) {
      target += uint64_t{c[kAiRate]} * 1000;
    }
    target_ = static_cast<uint32_t>(std::min<uint64_t>(target, MaxRate(c)));
    const uint32_t before = current_;
    current_ = static_cast<uint32_t>((uint64_t{current_} + target_ + 1) / 2);
    if (current_ >= MaxRate(c)) {
      Release(c);
    } else {
      pacer_.Rescale(static_cast<double>(current_) / before, now);
    }
  }

  // Advances alpha period by period: it keeps kG / 1024 of itself (RNIC parameter dce_tcp_g), and
  // gains the rest in a period with a CNP.
  void AdvanceAlpha(const CcContext& c, TimePoint now) {
    const Duration period = Microseconds(c[kAlphaPeriod]);
    int64_t periods = (Low(now) - alpha_time_) / period.ns;
    alpha_time_ += static_cast<uint32_t>(period.ns * periods);
    for (; periods > 0 && (alpha_ != 0 || cnp_seen_); --periods) {
      const uint32_t kept = alpha_ * c[kG] / 1024;
      const uint32_t gained = cnp_seen_ ? (1024 - c[kG]) << kAlphaFraction : 0;
      alpha_ = std::min(kept + gained, 1023u << kAlphaFraction);
      cnp_seen_ = false;
    }
  }

  Pacer pacer_;
  TimePoint next_rise_;
  uint32_t last_cut_ = 0;  // low bits of its time
  uint32_t alpha_time_ = 0;
  uint32_t current_ = 0;  // kbit/s
  uint32_t target_ = 0;
  uint32_t sent_ = 0;          // bytes since the last rise by count; new flow: since its first CNP
  uint32_t used_ = 0;          // kbit/s in use while the window is the limit; else 0
  uint16_t window_ = 0;        // window of a new flow, in units of kUnit
  uint16_t path_us_ : 15 = 0;  // shortest round trip; 0: no sample
  // The newest round trip since the timer's last rise was not much longer.
  uint16_t no_queue_ : 1 = false;
  uint32_t alpha_ : 10 + kAlphaFraction = 0;
  uint32_t limited_ : 1 = false;
  uint32_t increased_ : 1 = true;  // since the last cut
  uint32_t cnp_seen_ : 1 = false;  // in this period of alpha
  uint32_t time_stage_ : 5 = 0;
  uint32_t byte_stage_ : 5 = 0;
};

}  // namespace

ROCEGW_CC_DEFINE(Dcqcn);

}  // namespace rocegw::flow
