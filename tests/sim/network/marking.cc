// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/marking.h"

#include "gateway/wire/congestion_hint.h"

namespace rocegw::sim {
namespace {
constexpr uint8_t kFirstPrivateOpcode = 0xC0;
constexpr size_t kHintByte = 4;
}  // namespace

bool WantsMark(const EcnRule& rule, uint64_t queued, Random& random) {
  switch (rule.kind) {
    case EcnRule::Kind::kNone:
      return false;
    case EcnRule::Kind::kStep:
      return queued >= rule.k_min;
    case EcnRule::Kind::kRed:
      break;
  }
  if (queued <= rule.k_min) return false;
  if (queued >= rule.k_max) return true;
  const double share =
      static_cast<double>(queued - rule.k_min) / static_cast<double>(rule.k_max - rule.k_min);
  return random.Chance(share * rule.p_max);
}

void StampHint(const HintRule& rule, uint64_t queued, Packet& packet) {
  if (rule.high == 0 || packet.opcode() < kFirstPrivateOpcode) return;
  packet.data[kHintByte] = wire::RaiseHint(packet.data[kHintByte], queued, rule.low, rule.high);
}

}  // namespace rocegw::sim
