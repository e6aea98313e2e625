// SPDX-License-Identifier: Apache-2.0
// Congestion control by delay, in the family of TIMELY (SIGCOMM 2015) and Swift (SIGCOMM 2020).
// Below a target round trip the window grows by a fixed step per round trip; above it the window
// shrinks in proportion to the excess, once per round trip. It needs no help from switches or the
// peer. Small windows have a higher target, so that many flows can share a link; a window below one
// packet is paced instead.
#include <cmath>

#include "gateway/flow/cc/algorithm.h"
#include "gateway/flow/cc/pacer.h"

namespace rocegw::flow {
namespace {

class Swift : public CcBase {
 public:
  static constexpr const char* kName = "swift";
  static constexpr const char* kSummary = "window by round trip time against a target";
  static constexpr CcParameter kParameters[] = {
      {"target_delay", "us", 100, 1, 1000000, "round trip to aim at, the path's own part included"},
      {"flow_scaling", "us", 100, 0, 1000000, "what the smallest window's target has on top"},
      {"increase", "/16 packet", 16, 1, 16384, "growth per round trip"},
      {"beta", "%", 80, 1, 100, "share of the excess delay by which the window shrinks"},
      {"max_decrease", "%", 50, 1, 99, "most that one round trip takes away"},
      {"initial_window", "packets", 16, 1, 65535, "window of a new flow"},
      {"min_window", "/1024 packet", 16, 1, 1024, "smallest window"},
  };

  void Init(const CcContext& c, TimePoint now) {
    window_ = std::min(c[kInitialPackets] * c.packet, c.window_limit);
    last_cut_ = now - Seconds(1);
    starting_ = true;
  }

  void TakeOver(const CcContext& c, const CcOperatingPoint& point, TimePoint now) {
    if (point.rtt.ns > 0) smoothed_ = AsFloat(point.rtt);
    if (point.window == 0) return;
    window_ = Bounded(c, static_cast<double>(point.window));
    starting_ = false;
    last_cut_ = now;
  }

  void OnSent(const CcContext& c, uint64_t bytes, TimePoint now) {
    if (window_ >= c.packet || smoothed_ == 0) {
      pacer_.Stop();
      return;
    }
    // A round trip above the target includes a queue that drains before the next packet of so small
    // a window is due. Shrinking the window is enough; the pace is not slowed further.
    const double round = std::min<double>(smoothed_, Target(c));
    pacer_.OnSent(round * static_cast<double>(bytes) / window_, Duration{}, now);
  }

  void OnFeedback(const CcContext& c, const CcFeedback& feedback, TimePoint now) {
    if (feedback.rtt.ns > 0) OnRoundTrip(c, AsFloat(feedback.rtt));
    if (smoothed_ == 0) return;
    const auto acked = static_cast<double>(feedback.acked_bytes);
    // An acknowledgement without a sample uses the smoothed round trip.
    const float delay = feedback.rtt.ns > 0 ? AsFloat(feedback.rtt) : smoothed_;
    const double target = Target(c);
    if (delay <= target) {
      // A window that is not full does not show what the network can take.
      if (static_cast<double>(feedback.in_flight_before) + c.packet <= window_) return;
      const double step = c[kIncrease] * c.packet / 16;
      Set(c, window_ + (starting_ ? acked : step * acked / std::max(window_, c.packet)), now);
      return;
    }
    starting_ = false;
    const double excess = (delay - target) / delay;
    Cut(c, 1 - c[kBeta] / 100.0 * excess, now);
  }

  // The algorithm does not use marks, but a CNP is explicit congestion, so it cuts the window.
  void OnCnp(const CcContext& c, TimePoint now) { Cut(c, 1 - c[kMaxDecrease] / 200.0, now); }
  void OnLoss(const CcContext& c, TimePoint now) { Cut(c, 0, now); }

  SendGate Gate(const CcContext& c, uint64_t in_flight) const {
    // Below one packet: one packet in flight, when it is due.
    if (window_ < c.packet) return WindowGate(c.packet, in_flight, pacer_.next());
    return WindowGate(window_, in_flight);
  }
  uint64_t Window(const CcContext&, Duration) const {
    return static_cast<uint64_t>(std::max(window_, 1.0));
  }

  void HandOver(hand_over::StateStream& state) {
    auto& [window, pacer, last_cut, smoothed, path, starting] = *this;
    state(window);
    pacer.HandOver(state);
    state(last_cut, smoothed, path, starting);
    state.Require(window >= 0 && window <= kMostWindow, "a flow's window is out of range");
  }

 private:
  enum Parameter : uint8_t {
    kTargetDelay,
    kFlowScaling,
    kIncrease,
    kBeta,
    kMaxDecrease,
    kInitialPackets,
    kMinWindow,
  };
  // Range of windows, in packets, in which the target is scaled.
  static constexpr double kScaledFrom = 0.1;
  static constexpr double kScaledTo = 100;
  static constexpr double kKnowsPath = 8;

  static float AsFloat(Duration d) { return static_cast<float>(d.ns); }

  static double Bounded(const CcContext& c, double window) {
    const double least = std::min(c[kMinWindow] * c.packet / 1024, c.window_limit);
    return std::clamp(window, least, c.window_limit);
  }

  // Updates the delay. The target does not use each flow's shortest round trip, because a late
  // flow's shortest includes the queue of the others. Only a flow that sends almost nothing and is
  // still above the target knows that the path itself is that long.
  void OnRoundTrip(const CcContext& c, float rtt) {
    if (path_ != 0) {
      path_ = std::min(path_, rtt);
    } else if (window_ <= c.packet / kKnowsPath) {
      path_ = rtt;
    }

    smoothed_ = smoothed_ == 0 ? rtt : smoothed_ + (rtt - smoothed_) / 8;
  }

  double Target(const CcContext& c) const {
    const double base = std::max<double>(c[kTargetDelay] * 1e3, path_);
    const double packets = std::clamp(window_ / c.packet, kScaledFrom, kScaledTo);
    const double at_most = 1 / std::sqrt(kScaledFrom);
    const double at_least = 1 / std::sqrt(kScaledTo);
    return base +
           c[kFlowScaling] * 1e3 * (1 / std::sqrt(packets) - at_least) / (at_most - at_least);
  }

  void Set(const CcContext& c, double window, TimePoint now) {
    const double before = window_;
    window_ = Bounded(c, window);
    if (before < c.packet) pacer_.Rescale(window_ / before, now);
  }

  void Cut(const CcContext& c, double factor, TimePoint now) {
    starting_ = false;
    if (static_cast<float>((now - last_cut_).ns) < smoothed_) return;
    last_cut_ = now;
    Set(c, window_ * std::max(factor, 1 - c[kMaxDecrease] / 100.0), now);
  }

  double window_ = 0;
  Pacer pacer_;  // for windows below one packet
  TimePoint last_cut_;
  float smoothed_ = 0;    // ns; 0: no sample
  float path_ = 0;        // ns; 0: unknown, or not above the target
  bool starting_ = true;  // doubles per round trip until the target is reached
};

}  // namespace

ROCEGW_CC_DEFINE(Swift);

}  // namespace rocegw::flow
