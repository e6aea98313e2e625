// SPDX-License-Identifier: Apache-2.0
// What an output queue writes into packets about congestion.
//
// ECN (RFC 3168): packets that are ECN capable get CE, by one of two rules on the bytes that wait:
// RED as DCQCN assumes (Zhu et al., SIGCOMM 2015: never below k_min, always above k_max, linearly
// up to p_max between), or a step as DCTCP assumes (always from k_min on).
//
// Hints, for congestion control between gateways (wire/congestion_hint.h): byte 4 of the BTH, which
// the ICRC does not cover, of packets whose opcode is 0xC0 or more, says how full the fullest queue
// of the path is, in 63 steps between two thresholds.
//
// Values of one link; one thread.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "tests/sim/network/packet.h"
#include "tests/sim/network/random.h"

namespace rocegw::sim {

struct EcnRule {
  enum class Kind : uint8_t { kNone, kRed, kStep };
  Kind kind = Kind::kNone;
  uint64_t k_min = 5 * 1024;  // bytes; the step, for kStep
  uint64_t k_max = 200 * 1024;
  double p_max = 0.01;
};

// Whether a packet that finds `queued` bytes waiting is to be marked. Draws for RED only.
bool WantsMark(const EcnRule& rule, uint64_t queued, Random& random);

struct HintRule {
  uint64_t low = 0;   // bytes that wait: as good as none
  uint64_t high = 0;  // the queue is as full as it should ever be; 0: this link gives no hints
};

// The packet finds `queued` bytes waiting.
void StampHint(const HintRule& rule, uint64_t queued, Packet& packet);

}  // namespace rocegw::sim
