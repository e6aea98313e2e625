// SPDX-License-Identifier: Apache-2.0
// Base for congestion control algorithms: a class with its state as plain members, and functions
// that get the flow's context. ROCEGW_CC_DEFINE makes the algorithm table's entry from the class.
// CcBase has defaults for events that an algorithm ignores. HandOver(StateStream&) writes or reads
// the members (hand_over/state_stream.h). Runs on one worker; an algorithm uses
// no clock, allocates nothing and calls nobody.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <type_traits>

#include "gateway/flow/congestion.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::flow {

// Properties of the flow that the algorithm does not decide.
struct CcContext {
  const CcProfile& profile;
  const uint32_t* parameters;  // this algorithm's, in the order of its table
  double window_limit;
  double packet;  // bytes of a full packet

  uint32_t operator[](size_t parameter) const { return parameters[parameter]; }
};

struct CcBase {
  static constexpr bool kUsesMarks = false;
  // Limit of the windows that are taken from foreign state, in bytes. Larger than any window_limit.
  static constexpr double kMostWindow = 4294967296.0;
  static constexpr std::span<const CcParameter> kParameters{};

  void TakeOver(const CcContext&, const CcOperatingPoint&, TimePoint) {}
  void OnSent(const CcContext&, uint64_t, TimePoint) {}
  void OnFeedback(const CcContext&, const CcFeedback&, TimePoint) {}
  void OnCnp(const CcContext&, TimePoint) {}
  void OnLoss(const CcContext&, TimePoint) {}
  void OnDeadline(const CcContext&, TimePoint) {}
  TimePoint Deadline(const CcContext&) const { return kNever; }
};

// Returns what is left of the window.
inline SendGate WindowGate(double window, uint64_t in_flight, TimePoint earliest = {}) {
  const auto whole = static_cast<uint64_t>(window);
  return {whole > in_flight ? whole - in_flight : 0, earliest};
}

template <class Algorithm>
struct CcAdapter {
  static_assert(std::is_trivially_copyable_v<Algorithm>, "flows are copied byte by byte");
  static_assert(sizeof(Algorithm) <= kCcStateBytes && alignof(Algorithm) <= 8);
  static_assert(std::size(Algorithm::kParameters) <= kMaxCcParameters);

  static Algorithm& Own(CcState& s) { return *std::launder(reinterpret_cast<Algorithm*>(s.own)); }
  static const Algorithm& Own(const CcState& s) {
    return *std::launder(reinterpret_cast<const Algorithm*>(s.own));
  }
  static CcContext Context(const CcState& s) {
    // A flow that is not open yet has a window of 0 and no profile.
    const CcProfile& profile = s.profile != nullptr ? *s.profile : CcProfile::Preset();
    return {profile, profile.values[static_cast<size_t>(s.kind)],
            static_cast<double>(s.window_limit), static_cast<double>(s.packet_bytes)};
  }

  static constexpr CcAlgorithm Entry() {
    return {
        .name = Algorithm::kName,
        .summary = Algorithm::kSummary,
        .parameters = Algorithm::kParameters,
        .uses_marks = Algorithm::kUsesMarks,
        .init =
            [](CcState& s, const CcConfig& config, TimePoint now) {
              s.profile = config.profile != nullptr ? config.profile : &CcProfile::Preset();
              s.window_limit = std::max(config.window_bytes, 1u);
              s.packet_bytes = static_cast<uint16_t>(std::clamp(config.packet_bytes, 1u, 65535u));
              std::construct_at(reinterpret_cast<Algorithm*>(s.own))->Init(Context(s), now);
            },
        .take_over = [](CcState& s, const CcOperatingPoint& point,
                        TimePoint now) { Own(s).TakeOver(Context(s), point, now); },
        .on_sent = [](CcState& s, uint64_t bytes,
                      TimePoint now) { Own(s).OnSent(Context(s), bytes, now); },
        .on_feedback = [](CcState& s, const CcFeedback& feedback,
                          TimePoint now) { Own(s).OnFeedback(Context(s), feedback, now); },
        .on_cnp = [](CcState& s, TimePoint now) { Own(s).OnCnp(Context(s), now); },
        .on_loss = [](CcState& s, TimePoint now) { Own(s).OnLoss(Context(s), now); },
        .on_deadline = [](CcState& s, TimePoint now) { Own(s).OnDeadline(Context(s), now); },
        .deadline = [](const CcState& s) { return Own(s).Deadline(Context(s)); },
        .gate = [](const CcState& s,
                   uint64_t in_flight) { return Own(s).Gate(Context(s), in_flight); },
        .window = [](const CcState& s, Duration rtt) { return Own(s).Window(Context(s), rtt); },
        .hand_over =
            [](CcState& s, hand_over::StateStream& state) {
              if (state.reading()) std::construct_at(reinterpret_cast<Algorithm*>(s.own));
              Own(s).HandOver(state);
            },
    };
  }
};

}  // namespace rocegw::flow

// Used once per algorithm file, in namespace rocegw::flow.
#define ROCEGW_CC_DEFINE(name)                 \
  extern const CcAlgorithm k##name##Algorithm; \
  constexpr CcAlgorithm k##name##Algorithm = CcAdapter<name>::Entry()
