// SPDX-License-Identifier: Apache-2.0
// Congestion control by proportional hints, after Unified Bus's C-AQM, for channels between
// gateways. Every acknowledgement brings a level from 0 (idle) to 1 (full). Switches stamp the
// level, or it is derived from the share of marked bytes (gateway/wire/congestion_hint.h).
//
// Per round trip the window W loses beta * level * W and gains (1 - level) * W * (step / W)^(3/4).
// Windows settle where loss and gain are equal, which is the same W for all flows that see the same
// level. The exponent makes small windows grow faster in proportion, and limits the load of many
// flows. A smaller exponent lets windows of a few packets drift apart, because they sample the
// level at different times; a larger one makes large windows too slow. No window is below one
// packet.
#include <cmath>

#include "gateway/flow/cc/algorithm.h"
#include "gateway/wire/congestion_hint.h"

namespace rocegw::flow {
namespace {

class Caqm : public CcBase {
 public:
  static constexpr const char* kName = "caqm";
  static constexpr const char* kSummary = "window by proportional hints between gateways";
  static constexpr bool kUsesMarks = true;
  static constexpr CcParameter kParameters[] = {
      {"step", "packets", 1, 1, 1024, "scale of growth; at least 1/64 of what the link holds"},
      {"beta", "%", 50, 1, 100, "what a full path takes away per round trip"},
      {"initial_window", "packets", 16, 1, 65535, "window of a new flow"},
  };

  void Init(const CcContext& c, TimePoint) {
    window_ = std::min(c[kInitialPackets] * c.packet, c.window_limit);
    round_left_ = static_cast<float>(window_);
  }

  void TakeOver(const CcContext& c, const CcOperatingPoint& point, TimePoint) {
    if (point.rtt.ns > 0) shortest_ = static_cast<float>(point.rtt.ns);
    if (point.window == 0) return;
    Set(c, static_cast<double>(point.window));
    round_left_ = static_cast<float>(window_);
    starting_ = false;
  }

  void OnFeedback(const CcContext& c, const CcFeedback& feedback, TimePoint) {
    if (feedback.rtt.ns > 0) {
      const auto rtt = static_cast<float>(feedback.rtt.ns);
      shortest_ = shortest_ == 0 ? rtt : std::min(shortest_, rtt);
    }
    const auto acked = static_cast<double>(feedback.acked_bytes);
    if (acked == 0) return;
    const auto in_flight = static_cast<double>(feedback.in_flight_before);
    const auto marked = static_cast<double>(feedback.marked_bytes);
    const uint8_t said = feedback.hint & wire::kHintLevelMask;
    // A hint without marks comes from a switch; a path with stamping switches always sends a hint.
    if (said == 0) {
      stamped_ = false;
    } else if (marked == 0) {
      stamped_ = true;
    }
    double level = 0;
    // A window that is not full does not show what the network can take.
    bool may_grow = in_flight + c.packet > window_;
    if (stamped_) {
      level = (said - 1) / static_cast<double>(wire::kHintSteps);
      may_grow = may_grow && (feedback.hint & wire::kHintIncrease) != 0;
    }
    if (level > 0 || marked > 0) starting_ = false;
    marked_ += static_cast<float>(marked);
    if (!stamped_ && marked_ > 0) may_grow = false;
    const double growth = !may_grow ? 0 : starting_ ? 1 : (1 - level) * Growth(Step(c) / window_);
    const double change = growth - c[kBeta] / 100.0 * level;
    Set(c, window_ + change * std::min(acked, window_));
    acked_ += static_cast<float>(acked);
    round_left_ -= static_cast<float>(acked);
    if (round_left_ <= 0) EndRound(c, std::max(in_flight - acked, c.packet));
  }

  void OnCnp(const CcContext& c, TimePoint) { CutOnce(c); }
  void OnLoss(const CcContext& c, TimePoint) { CutOnce(c); }

  SendGate Gate(const CcContext& c, uint64_t in_flight) const {
    return WindowGate(std::min(window_ + remainder_, c.window_limit), in_flight);
  }
  uint64_t Window(const CcContext&, Duration) const {
    return static_cast<uint64_t>(std::max(window_, 1.0));
  }

  void HandOver(hand_over::StateStream& state) {
    auto& [window, shortest, round_left, acked, marked, share, remainder, starting, stamped, cut] =
        *this;
    state(window, shortest, round_left, acked, marked, share, remainder, starting, stamped, cut);
    state.Require(window >= 0 && window <= kMostWindow, "a flow's window is out of range");
  }

 private:
  enum Parameter : uint8_t { kStep, kBeta, kInitialPackets };

  void Set(const CcContext& c, double window) {
    window_ = std::clamp(window, std::min(c.packet, c.window_limit), c.window_limit);
  }

  double Step(const CcContext& c) const {
    const double link = static_cast<double>(c.profile.link_bits_per_second) / 8e9;
    return std::max(c[kStep] * c.packet, link * shortest_ / 64);
  }

  // Returns ratio^(3/4). Square roots are exact on every machine, pow() is not.
  static double Growth(double ratio) {
    const double root = std::sqrt(ratio);
    return root * std::sqrt(root);
  }

  void Cut(const CcContext& c, double factor) {
    starting_ = false;
    Set(c, window_ * factor);
  }

  // Cuts the window once per round for congestion that was not reported by hints (CNP, loss).
  void CutOnce(const CcContext& c) {
    if (cut_) return;
    cut_ = true;
    Cut(c, 1 - c[kBeta] / 100.0);
  }

  // Ends a round. Marks are binary, so their share is smoothed over rounds.
  void EndRound(const CcContext& c, double in_flight) {
    share_ += (std::min(marked_ / acked_, 1.0F) - share_) / 16;
    if (!stamped_ && marked_ > 0 && !cut_) Cut(c, 1 - c[kBeta] / 100.0 * share_);
    acked_ = marked_ = 0;
    cut_ = false;
    round_left_ = static_cast<float>(in_flight);
    // Only whole packets leave, so the fraction of the window carries over to the next round.
    // Otherwise small windows of nearly equal size would constantly differ by a packet.
    remainder_ = static_cast<float>(std::fmod(window_ + remainder_, c.packet));
  }

  double window_ = 0;
  float shortest_ = 0;    // round trip in ns; 0: no sample
  float round_left_ = 0;  // bytes to be acknowledged before the round ends
  float acked_ = 0;       // in this round
  float marked_ = 0;
  float share_ = 1;       // share of marked bytes, smoothed over rounds
  float remainder_ = 0;   // fraction of a packet left from the last round's window
  bool starting_ = true;  // doubles per round trip until the first sign of congestion
  bool stamped_ = false;  // hints come from switches
  bool cut_ = false;      // the window was cut in this round
};

}  // namespace

ROCEGW_CC_DEFINE(Caqm);

}  // namespace rocegw::flow
