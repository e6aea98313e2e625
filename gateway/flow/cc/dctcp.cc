// SPDX-License-Identifier: Apache-2.0
// DCTCP (RFC 8257): a window that is cut once per round trip in proportion to the share of marked
// bytes, and grows by a packet per round trip. It needs a receiver that counts marks exactly, as
// channels do. A CNP counts as one marked packet.
#include "gateway/flow/cc/algorithm.h"

namespace rocegw::flow {
namespace {

class Dctcp : public CcBase {
 public:
  static constexpr const char* kName = "dctcp";
  static constexpr const char* kSummary = "window by the share of ECN marks, once per round trip";
  static constexpr bool kUsesMarks = true;
  static constexpr CcParameter kParameters[] = {
      {"gain", "/1024", 64, 1, 1024, "weight of the newest round in the average share of marks"},
      {"initial_window", "packets", 16, 1, 65535, "window of a new flow"},
      {"increase", "packets", 1, 1, 1024, "growth per round trip without marks"},
  };

  void Init(const CcContext& c, TimePoint) {
    window_ = std::min(c[kInitialPackets] * c.packet, c.window_limit);
    threshold_ = c.window_limit;
    alpha_ = 1;
    round_left_ = window_;
  }

  void TakeOver(const CcContext& c, const CcOperatingPoint& point, TimePoint) {
    if (point.window == 0) return;
    window_ = Bounded(c, static_cast<double>(point.window));
    threshold_ = window_;
    round_left_ = window_;
  }

  void OnFeedback(const CcContext& c, const CcFeedback& feedback, TimePoint) {
    const auto acked = static_cast<double>(feedback.acked_bytes);
    const auto in_flight = static_cast<double>(feedback.in_flight_before);
    acked_ += acked;
    marked_ += static_cast<double>(feedback.marked_bytes);
    // A window that is not full does not show what the network can take.
    if (marked_ == 0 && in_flight + c.packet > window_) {
      window_ += window_ < threshold_ ? acked : c[kIncreasePackets] * c.packet * acked / window_;
      window_ = Bounded(c, window_);
    }
    round_left_ -= static_cast<float>(acked);
    if (round_left_ <= 0) EndRound(c, std::max(in_flight - acked, c.packet));
  }

  void OnCnp(const CcContext& c, TimePoint) { marked_ += c.packet; }

  void OnLoss(const CcContext& c, TimePoint) {
    if (lost_) return;
    lost_ = true;
    Cut(c, 0.5);
  }

  SendGate Gate(const CcContext&, uint64_t in_flight) const {
    return WindowGate(window_, in_flight);
  }
  uint64_t Window(const CcContext&, Duration) const { return static_cast<uint64_t>(window_); }

  void HandOver(hand_over::StateStream& state) {
    auto& [window, threshold, acked, marked, round_left, alpha, lost] = *this;
    state(window, threshold, acked, marked, round_left, alpha, lost);
    state.Require(window >= 0 && window <= kMostWindow, "a flow's window is out of range");
  }

 private:
  enum Parameter : uint8_t { kGain, kInitialPackets, kIncreasePackets };

  static double Bounded(const CcContext& c, double window) {
    return std::clamp(window, std::min(c.packet, c.window_limit), c.window_limit);
  }

  void Cut(const CcContext& c, double factor) {
    window_ = Bounded(c, window_ * factor);
    threshold_ = window_;
  }

  // Ends a round: a window of bytes is acknowledged. The bytes in flight now form the next round.
  void EndRound(const CcContext& c, double in_flight) {
    const double gain = c[kGain] / 1024.0;
    const double share = acked_ > 0 ? std::min(marked_ / acked_, 1.0) : 0;
    alpha_ = static_cast<float>((1 - gain) * alpha_ + gain * share);
    if (marked_ > 0 && !lost_) Cut(c, 1 - alpha_ / 2.0);
    acked_ = marked_ = 0;
    lost_ = false;
    round_left_ = static_cast<float>(in_flight);
  }

  double window_ = 0;
  double threshold_ = 0;  // slow start ends here
  double acked_ = 0;      // in this round
  double marked_ = 0;
  float round_left_ = 0;
  float alpha_ = 1;
  bool lost_ = false;  // in this round
};

}  // namespace

ROCEGW_CC_DEFINE(Dctcp);

}  // namespace rocegw::flow
