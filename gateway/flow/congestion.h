// SPDX-License-Identifier: Apache-2.0
// Congestion control: an algorithm gets events and answers how much may be sent, from when, and
// when it wants to be called. It never sends, arms timers or calls its owner. State is plain data
// in a tagged union, chosen by kind, so that flows can be copied and handed over. A new algorithm
// is one file in gateway/flow/cc and one line in algorithms.def there;
// docs/develop/congestion_control.md shows how. Units: bytes and nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "gateway/base/time.h"
#include "gateway/flow/cc_profile.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::flow {

// Returns the bit by which gateways offer the algorithm to each other (wire::GatewayOption).
constexpr uint32_t OptionOf(CcKind kind) {
  return wire::kOptionCcStatic << static_cast<uint32_t>(kind);
}

struct CcConfig {
  CcKind kind = CcKind::kStatic;
  uint32_t window_bytes = 256 * 1024;  // limit of bytes in flight for every algorithm
  uint32_t packet_bytes = 4096;        // payload of a full packet (the path MTU)
  const CcProfile* profile = nullptr;  // nullptr: presets; not owned, outlives the flow
};

// Permission to send this many bytes, not before `earliest`.
struct SendGate {
  uint64_t bytes = 0;
  TimePoint earliest;
};

// Congestion information of one acknowledgement.
struct CcFeedback {
  uint64_t acked_bytes = 0;
  uint64_t marked_bytes = 0;  // part of acked_bytes that was CE-marked
  uint64_t in_flight_before = 0;
  Duration rtt;      // 0: no sample
  uint8_t hint = 0;  // hint of the path, between gateways only (wire/congestion_hint.h); 0: none
};

// Operating point that an algorithm hands to the one that replaces it.
struct CcOperatingPoint {
  uint64_t window = 0;  // bytes per round trip; 0: unknown
  Duration rtt;         // 0: unknown
};

inline constexpr size_t kCcStateBytes = 48;

// State of a flow: common fields, and space for the state of one algorithm. Fits one cache line.
struct CcState {
  const CcProfile* profile = nullptr;
  uint32_t window_limit = 0;
  uint16_t packet_bytes = 0;
  CcKind kind = CcKind::kStatic;
  alignas(8) unsigned char own[kCcStateBytes] = {};
};
static_assert(sizeof(CcState) <= 64);

struct CcAlgorithm {
  const char* name;  // name in configurations
  const char* summary;
  std::span<const CcParameter> parameters;
  bool uses_marks;  // packets are sent with ECT(0), and marks change the rate
  // Initialises the state; state.kind is set already.
  void (*init)(CcState&, const CcConfig&, TimePoint now);
  // Continues from another algorithm's operating point. Called after init.
  void (*take_over)(CcState&, const CcOperatingPoint&, TimePoint now);
  void (*on_sent)(CcState&, uint64_t bytes, TimePoint now);
  void (*on_feedback)(CcState&, const CcFeedback&, TimePoint now);
  void (*on_cnp)(CcState&, TimePoint now);
  void (*on_loss)(CcState&, TimePoint now);
  void (*on_deadline)(CcState&, TimePoint now);
  TimePoint (*deadline)(const CcState&);
  SendGate (*gate)(const CcState&, uint64_t in_flight);
  // Returns the bytes that may be in the network during a round trip of `rtt`.
  uint64_t (*window)(const CcState&, Duration rtt);
  // Writes or reads the algorithm's own state.
  void (*hand_over)(CcState&, hand_over::StateStream&);
};

const CcAlgorithm& AlgorithmOf(CcKind kind);
// Returns kCount if there is no algorithm of this name.
CcKind FindCcKind(std::string_view name);

// Writes or reads a configuration; its profile stays.
void HandOver(hand_over::StateStream& state, CcConfig& config);
// Writes or reads the state; a flow that is read uses `profile` from now on.
void HandOver(hand_over::StateStream& state, CcState& cc, const CcProfile& profile);

}  // namespace rocegw::flow
