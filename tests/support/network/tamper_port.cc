// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network/tamper_port.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gateway/base/psn.h"
#include "gateway/port/steering.h"

namespace rocegw::testing {
namespace {

constexpr uint8_t kCongestionExperienced = 3;
constexpr size_t kPsnOffset = 9;

uint32_t PsnAt(const std::vector<uint8_t>& bytes) {
  return static_cast<uint32_t>(bytes[kPsnOffset]) << 16 |
         static_cast<uint32_t>(bytes[kPsnOffset + 1]) << 8 | bytes[kPsnOffset + 2];
}

}  // namespace

size_t TamperScript::Add(const TamperRule& rule) {
  rules_.push_back({rule, {}});
  return rules_.size() - 1;
}

void TamperScript::Calm() {
  probabilities_ = {};
  for (RuleState& state : rules_) state.rule.times = state.rule.acted;
}

bool TamperScript::Chance(double probability) {
  // Drawn also for zero, so that changing one probability does not shift all other decisions.
  return std::uniform_real_distribution<double>()(random_) < probability;
}

bool TamperScript::Matches(const TamperRule& rule, int direction, const Packet& packet) const {
  if (rule.direction && *rule.direction != direction) return false;
  if (packet.bytes.size() < kPsnOffset + 3) {
    return !rule.opcode && !rule.first_psn && !rule.destination_qpn;
  }
  if (rule.opcode && *rule.opcode != packet.bytes[0]) return false;
  if (rule.destination_qpn && port::DestinationQpn(packet.bytes) != Qpn{*rule.destination_qpn}) {
    return false;
  }
  if (rule.first_psn) {
    const uint32_t length = (rule.last_psn - *rule.first_psn) & kPsnMask;
    if (((PsnAt(packet.bytes) - *rule.first_psn) & kPsnMask) > length) return false;
  }
  return true;
}

void TamperScript::Pass(Direction& state, Packet packet) {
  ++passed_;
  state.ready.push_back(std::move(packet));
  for (HeldPacket& held : state.held) {
    if (held.after != 0) --held.after;
  }
  for (auto it = state.held.begin(); it != state.held.end();) {
    if (it->after == 0) {
      state.ready.push_back(std::move(it->packet));
      it = state.held.erase(it);
    } else {
      ++it;
    }
  }
}

void TamperScript::Collect(RuleState& state, Direction& direction, Packet packet) {
  state.collected.push_back(std::move(packet));
  if (state.collected.size() < state.rule.count) return;
  std::vector<Packet> packets = std::exchange(state.collected, {});
  // A rotation on top of the shuffle: never the order in which they came.
  std::vector<size_t> order(packets.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::vector<size_t> original = order;
  std::shuffle(order.begin(), order.end(), random_);
  if (order == original) std::rotate(order.begin(), order.begin() + 1, order.end());
  for (const size_t index : order) Pass(direction, std::move(packets[index]));
}

void TamperScript::Apply(TamperAction action, size_t count, size_t bit, Direction& state,
                         Packet packet) {
  switch (action) {
    case TamperAction::kDrop:
      ++dropped_;
      return;
    case TamperAction::kDelay:
      ++delayed_;
      state.held.push_back({std::move(packet), count});
      return;
    case TamperAction::kDuplicate:
      for (size_t i = 0; i < count; ++i) {
        ++duplicated_;
        state.ready.push_back(packet);
      }
      break;
    case TamperAction::kCorrupt:
      if (!packet.bytes.empty()) {
        ++corrupted_;
        const size_t at = bit % (packet.bytes.size() * 8);
        packet.bytes[at / 8] ^= static_cast<uint8_t>(1U << at % 8);
      }
      break;
    case TamperAction::kMarkCe:
      ++marked_;
      packet.meta.traffic_class |= kCongestionExperienced;
      break;
    case TamperAction::kReorder:
      break;  // needs its rule: Collect
  }
  Pass(state, std::move(packet));
}

void TamperScript::Feed(int direction, Direction& state, Packet packet) {
  for (RuleState& candidate : rules_) {
    TamperRule& rule = candidate.rule;
    if (!Matches(rule, direction, packet)) continue;
    const size_t position = rule.matched++;
    const bool reorder = rule.action == TamperAction::kReorder;
    // A reordering is one act on `count` packets.
    const size_t most = reorder ? std::min(rule.times, rule.count) : rule.times;
    if (position < rule.skip || rule.acted >= most) continue;
    ++rule.acted;
    if (reorder) {
      Collect(candidate, state, std::move(packet));
    } else {
      Apply(rule.action, rule.count, rule.bit, state, std::move(packet));
    }
    return;
  }
  // One draw each, in a fixed order, whatever comes of it.
  const bool drop = Chance(probabilities_.drop);
  const bool delay = Chance(probabilities_.delay);
  const bool duplicate = Chance(probabilities_.duplicate);
  const bool corrupt = Chance(probabilities_.corrupt);
  const bool mark = Chance(probabilities_.mark_ce);
  const auto number = static_cast<size_t>(random_());
  if (drop) {
    Apply(TamperAction::kDrop, 0, 0, state, std::move(packet));
  } else if (delay) {
    const size_t after = number % std::max<size_t>(probabilities_.delay_max, 1) + 1;
    Apply(TamperAction::kDelay, after, 0, state, std::move(packet));
  } else if (duplicate) {
    Apply(TamperAction::kDuplicate, 1, 0, state, std::move(packet));
  } else if (corrupt) {
    Apply(TamperAction::kCorrupt, 0, number, state, std::move(packet));
  } else if (mark) {
    Apply(TamperAction::kMarkCe, 0, 0, state, std::move(packet));
  } else {
    Pass(state, std::move(packet));
  }
}

size_t TamperPort::Transmit(std::span<port::TxPacket* const> packets) {
  if (script_.park_flushes_ == 0) return inner_.Transmit(packets);
  for (port::TxPacket* const packet : packets) packet->Flatten();
  parked_.insert(parked_.end(), packets.begin(), packets.end());
  return packets.size();
}

bool TamperPort::Flush() {
  if (!parked_.empty() && script_.park_flushes_ != 0 && --script_.park_flushes_ == 0) {
    const size_t taken = inner_.Transmit(parked_);
    parked_.erase(parked_.begin(), parked_.begin() + static_cast<ptrdiff_t>(taken));
  }
  return inner_.Flush() && parked_.empty();
}

size_t TamperPort::Receive(std::span<wire::RxDatagram> into) {
  handed_out_.clear();
  std::array<wire::RxDatagram, 32> burst;
  while (state_.ready.size() < into.size()) {
    const size_t count = inner_.Receive(burst);
    if (count == 0) break;
    for (size_t i = 0; i < count; ++i) {
      script_.Feed(direction_, state_,
                   {burst[i].meta, {burst[i].bytes.begin(), burst[i].bytes.end()}});
    }
  }
  const size_t count = std::min(into.size(), state_.ready.size());
  handed_out_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    handed_out_.push_back(std::move(state_.ready.front()));
    state_.ready.pop_front();
    into[i] = {handed_out_.back().meta, handed_out_.back().bytes};
  }
  return count;
}

void TamperPort::ReleaseHeld() {
  for (TamperScript::HeldPacket& held : state_.held) {
    state_.ready.push_back(std::move(held.packet));
  }
  state_.held.clear();
}

}  // namespace rocegw::testing
