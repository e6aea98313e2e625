// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/faults.h"

#include <utility>

namespace rocegw::sim {
namespace {

constexpr uint32_t kDataBytes = 64;
constexpr size_t kVariantByte = 4;  // FECN, BECN and reserved bits of the BTH

bool Matches(const FaultRule& rule, const Packet& packet) {
  if (rule.opcode && *rule.opcode != packet.opcode()) return false;
  if (rule.destination_qpn && *rule.destination_qpn != packet.destination_qpn()) return false;
  if (rule.psn && *rule.psn != packet.psn()) return false;
  if (rule.data_only && packet.size <= kDataBytes) return false;
  return !rule.where || rule.where(packet);
}

}  // namespace

size_t Faults::Add(FaultRule rule) {
  rules_.push_back(std::move(rule));
  active_ = true;
  return rules_.size() - 1;
}

void Faults::Set(const FaultProbabilities& probabilities) {
  probabilities_ = probabilities;
  active_ = probabilities.any() || !rules_.empty();
}

void Faults::Calm() {
  probabilities_ = {};
  active_ = false;
}

Faults::Verdict Faults::Judge(const Packet& packet, TimePoint now) {
  for (FaultRule& rule : rules_) {
    if (!Matches(rule, packet)) continue;
    if (rule.matched++ < rule.skip || rule.acted >= rule.times) continue;
    ++rule.acted;
    return {rule.kind, rule.delay};
  }
  if (!probabilities_.any()) return {};
  // Draws once for each kind, in a fixed order, whatever the results.
  const FaultProbabilities& p = probabilities_;
  bad_ = bad_ && now < bad_until_;
  const bool turn = random_.Chance(bad_ ? p.to_good : p.to_bad);
  const bool lose = random_.Chance(p.lose);
  const bool duplicate = random_.Chance(p.duplicate);
  const bool delay = random_.Chance(p.delay);
  const bool corrupt = random_.Chance(p.corrupt);
  const bool mark = random_.Chance(p.mark);
  const auto by = static_cast<int64_t>(
      random_.Below(static_cast<uint64_t>(p.delay_most.ns < 1 ? 1 : p.delay_most.ns)));
  if (turn && !bad_) bad_until_ = now + p.bad_most;
  bad_ ^= turn;
  if (lose || bad_) return {FaultKind::kLose, {}};
  if (delay) return {FaultKind::kDelay, Nanoseconds(by + 1)};
  if (duplicate) return {FaultKind::kDuplicate, {}};
  if (corrupt) return {FaultKind::kCorrupt, {}};
  if (mark) return {FaultKind::kMark, {}};
  return {};
}

void Faults::Corrupt(Packet& packet) {
  const uint64_t bits = uint64_t{packet.size} * 8;
  uint64_t bit = random_.Below(bits);
  if (bit / 8 == kVariantByte) bit = 0;
  packet.damaged = true;
  packet.data[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
}

}  // namespace rocegw::sim
