// SPDX-License-Identifier: Apache-2.0
// TCP Reno: one packet more per round trip, half of the window after a loss or a mark. Example of
// docs/develop/congestion_control.md.
#include "gateway/flow/cc/algorithm.h"

namespace rocegw::flow {
namespace {

class Reno : public CcBase {
 public:
  static constexpr const char* kName = "reno";
  static constexpr const char* kSummary = "a packet more per round trip, half after a loss";
  static constexpr bool kUsesMarks = true;
  static constexpr CcParameter kParameters[] = {
      {"initial_window", "packets", 10, 1, 65535, "window of a new flow"},
      {"decrease", "%", 50, 1, 99, "what a loss takes away"},
  };

  void Init(const CcContext& c, TimePoint) { Set(c, c[kInitialPackets] * c.packet); }

  void TakeOver(const CcContext& c, const CcOperatingPoint& point, TimePoint) {
    if (point.window != 0) Set(c, static_cast<double>(point.window));
  }

  void OnFeedback(const CcContext& c, const CcFeedback& feedback, TimePoint now) {
    if (feedback.rtt.ns > 0) rtt_ = feedback.rtt;
    if (feedback.marked_bytes != 0) {
      OnLoss(c, now);
    } else {
      Set(c, window_ + c.packet * static_cast<double>(feedback.acked_bytes) / window_);
    }
  }

  void OnLoss(const CcContext& c, TimePoint now) {
    if (now < cut_again_) return;
    cut_again_ = now + rtt_;
    Set(c, window_ * (1 - c[kDecrease] / 100.0));
  }

  SendGate Gate(const CcContext&, uint64_t in_flight) const {
    return WindowGate(window_, in_flight);
  }
  uint64_t Window(const CcContext&, Duration) const { return static_cast<uint64_t>(window_); }
  // Writes or reads all members, for a gateway that takes over (hand_over/state_stream.h).
  void HandOver(hand_over::StateStream& state) {
    auto& [window, cut_again, rtt] = *this;
    state(window, cut_again, rtt);
    state.Require(window >= 0 && window <= kMostWindow, "a flow's window is out of range");
  }

 private:
  enum Parameter : uint8_t { kInitialPackets, kDecrease };

  void Set(const CcContext& c, double window) {
    window_ = std::clamp(window, std::min(c.packet, c.window_limit), c.window_limit);
  }

  double window_ = 0;
  TimePoint cut_again_;
  Duration rtt_;
};

}  // namespace

ROCEGW_CC_DEFINE(Reno);

}  // namespace rocegw::flow
