// SPDX-License-Identifier: Apache-2.0
// Congestion control: an algorithm gets events and answers how much may be sent, from when, and
// when it wants to be called. It never sends, arms timers or calls its owner. State is plain data
// in a tagged union, chosen by kind, so that flows can be copied and handed over. A new algorithm
// is one entry in the table of congestion.cc.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"

namespace rocegw::flow {

enum class CcKind : uint8_t { kStatic, kCount };

struct CcConfig {
  CcKind kind = CcKind::kStatic;
  uint32_t window_bytes = 256 * 1024;
};

// What may be sent: this many bytes, not before `earliest`.
struct SendGate {
  uint64_t bytes = 0;
  TimePoint earliest;
};

// What an acknowledgement told.
struct CcFeedback {
  uint64_t acked_bytes = 0;
  uint64_t in_flight_before = 0;
  Duration rtt;  // 0: no sample
  bool ce_marked = false;
};

struct StaticCc {
  uint64_t window = 0;
};

struct CcState {
  CcKind kind = CcKind::kStatic;
  union {
    StaticCc fixed{};
  };
};

struct CcAlgorithm {
  const char* name;
  void (*init)(CcState&, const CcConfig&, TimePoint now);
  void (*on_sent)(CcState&, uint64_t bytes, TimePoint now);
  void (*on_feedback)(CcState&, const CcFeedback&, TimePoint now);
  void (*on_cnp)(CcState&, TimePoint now);
  void (*on_loss)(CcState&, TimePoint now);
  void (*on_deadline)(CcState&, TimePoint now);
  TimePoint (*deadline)(const CcState&);
  SendGate (*gate)(const CcState&, uint64_t in_flight);
};

const CcAlgorithm& AlgorithmOf(CcKind kind);

}  // namespace rocegw::flow
