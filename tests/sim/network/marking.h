// SPDX-License-Identifier: Apache-2.0
// Congestion information that an output queue writes into packets.
//
// ECN (RFC 3168): ECN-capable packets get CE, by one of two rules on the queued bytes. RED as DCQCN
// assumes (Zhu et al., SIGCOMM 2015): never below k_min, always above k_max, with linearly rising
// probability up to p_max in between. Or a step as DCTCP assumes: always from k_min on.
//
// Hints, for congestion control between gateways (wire/congestion_hint.h): byte 4 of the BTH, which
// the ICRC does not cover, in packets with opcode 0xC0 or more. It tells the fill level of the
// fullest queue of the path, in 63 steps between two thresholds.
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
  uint64_t k_min = 5 * 1024;  // bytes; for kStep: the step
  uint64_t k_max = 200 * 1024;
  double p_max = 0.01;
};

// Returns true if a packet that finds `queued` bytes waiting is to be marked. Draws a random number
// for RED only.
bool WantsMark(const EcnRule& rule, uint64_t queued, Random& random);

struct HintRule {
  uint64_t low = 0;   // queued bytes that count as an empty queue
  uint64_t high = 0;  // queued bytes that count as a full queue; 0: this link writes no hints
};

// Writes the hint into a packet that finds `queued` bytes waiting.
void StampHint(const HintRule& rule, uint64_t queued, Packet& packet);

}  // namespace rocegw::sim
