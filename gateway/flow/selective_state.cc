// SPDX-License-Identifier: Apache-2.0
// State of selective repeat for a gateway that takes over (gateway/hand_over/state_stream.h), and
// of the choice of an algorithm by observation.
#include <algorithm>
#include <bit>
#include <limits>

#include "gateway/flow/cc_class.h"
#include "gateway/flow/receive_window.h"
#include "gateway/flow/selective_flow.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::flow {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

constexpr uint32_t kArrivedWord = 64;

// Limits an index that is written as 32 bits; `none` stands for SIZE_MAX.
void HandOverIndex(StateStream& state, size_t& index) {
  const auto most = std::numeric_limits<uint32_t>::max();
  const uint32_t low = state.Carry(static_cast<uint32_t>(std::min<size_t>(index, most)));
  index = low == most ? SIZE_MAX : low;
}

}  // namespace

void RestingFlow::HandOver(StateStream& state) {
  auto& [estimator, from, marks, bytes, losses, retransmitted, wrongly, packets, level, algorithm,
         repeated] = *this;
  estimator.HandOver(state);
  state(from, marks, bytes, losses, retransmitted, wrongly, packets);
  level = state.Carry<uint8_t>(level, 7) & 7;
  algorithm = state.Carry<uint8_t>(algorithm, kCcKinds - 1) & 31;
  state(repeated);
}

void RestingWindow::HandOver(StateStream& state) {
  auto& [from, marks, repeated] = *this;
  state(from, marks, repeated);
}

void ReceiveWindow::HandOver(StateStream& state, LedgerPool& pool) {
  const StateRecord record(state, StateKind::kReceiveWindow);
  auto& [bitmap, from, marks, newest, packets, unanswered, ack_now, repeated] = *this;
  state(from, marks);
  const uint32_t now = Ticks(state.now());
  newest = now - state.Carry(now - newest);
  packets = state.Carry<uint32_t>(packets, kMaxFlowPackets) & 0x1FFF;
  unanswered = state.Carry<uint32_t>(unanswered, kAckEvery) & 0x7F;
  ack_now = state.Carry<uint32_t>(ack_now, 1) & 1;
  repeated = state.Carry<uint32_t>(repeated, 0xFF) & 0xFF;
  // Distance from the next expected packet to the end of what has arrived; 0: no holes.
  const uint32_t reach =
      state.Carry(bitmap == nullptr ? 0 : static_cast<uint32_t>(PsnDistance(bitmap->end, from)),
                  kMaxFlowPackets);
  for (uint32_t at = 1; at < reach && state.ok(); at += kArrivedWord) {
    const uint32_t count = std::min(kArrivedWord, reach - at);
    uint64_t word = 0;
    for (uint32_t k = 0; !state.reading() && k < count; ++k)
      word |= uint64_t{Arrived(from + (at + k)) ? 1u : 0u} << k;
    state(word);
    state.Require(count == kArrivedWord || word >> count == 0, "packet beyond the window");
    for (; state.reading() && state.ok() && word != 0; word &= word - 1)
      Mark(pool, from + (at + static_cast<uint32_t>(std::countr_zero(word))));
  }
  state.Require(reach == 0 || (bitmap != nullptr && bitmap->end == from + reach),
                "window has no holes");
}

SentRecord* SelectiveFlow::Place(LedgerPool& pool, Psn psn) {
  if (directory_ == nullptr) directory_ = pool.TakePage();
  const uint32_t slot = SlotOf(psn);
  RecordChunk*& chunk = directory_->chunks[slot / kRecordsPerChunk];
  if (chunk == nullptr) chunk = pool.TakeChunk();
  const uint64_t bit = uint64_t{1} << slot % kRecordsPerChunk;
  if ((chunk->live & bit) != 0) return nullptr;
  chunk->live |= bit;
  return &At(slot);
}

void SelectiveFlow::HandOver(StateStream& state, LedgerPool& pool, List& list, bool lost) {
  const auto span = static_cast<uint32_t>(PsnDistance(next_, una_));
  const uint32_t count = state.Count(lost ? waiting_ : flying_, span);
  if (state.reading()) list = {kNone, kNone};
  uint16_t at = list.first;
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    const uint32_t ahead =
        state.Carry(state.reading() ? 0 : static_cast<uint32_t>(PsnDistance(PsnOf(at), una_)));
    if (!state.Require(ahead < span, "packet was not sent")) return;
    SentRecord* const one = state.reading() ? Place(pool, una_ + ahead) : &At(at);
    if (!state.Require(one != nullptr, "packet is in flight twice")) return;
    if (state.reading()) *one = SentRecord{};
    auto& [frame, bytes, is_lost, resent, sent, order, before, after] = *one;
    (void)is_lost, (void)before, (void)after;  // follow from the list
    flow::HandOver(state, frame);
    bytes = state.Carry<uint32_t>(bytes, (1u << 30) - 1) & ((1u << 30) - 1);
    resent = state.Carry<uint32_t>(resent, 1) & 1;
    state(sent, order);
    if (!state.reading()) {
      at = one->after;
      continue;
    }
    one->lost = lost ? 1 : 0;
    Append(list, SlotOf(una_ + ahead));
    if (lost) continue;
    state.Require(in_flight_ <= std::numeric_limits<uint32_t>::max() - one->bytes,
                  "too many bytes are in flight");
    in_flight_ += one->bytes;
  }
  if (state.reading()) (lost ? waiting_ : flying_) = static_cast<uint16_t>(count);
}

void SelectiveFlow::HandOver(StateStream& state, LedgerPool& pool, const CcProfile& profile) {
  const StateRecord record(state, StateKind::kSelectiveFlow);
  auto& [directory, timer, una, next, limit, in_flight, order, newest, newest_rtt, flight, flying,
         waiting, unasked, max_packets, probes, calm, level, repeated, marked, estimator, missing,
         cc, probe_order, episode, lost, resent, spurious, probe_number] = *this;
  // These follow from the records of both lists.
  (void)directory, (void)in_flight, (void)flying, (void)waiting;
  if (state.reading()) Stop();
  state(timer, una, next, limit, order, newest, newest_rtt, unasked, max_packets, probes, calm,
        level, repeated, marked);
  const auto reaches = [this](Psn end) {
    const int32_t ahead = PsnDistance(end, una_);
    return ahead >= 0 && static_cast<uint32_t>(ahead) <= kMaxFlowPackets;
  };
  const bool possible = reaches(next) && reaches(limit) && max_packets <= kMaxFlowPackets &&
                        level <= kMaxReorderLevel;
  if (!state.Require(possible, "flow is impossible")) {
    next = limit = una;
    return;
  }
  estimator.HandOver(state);
  HandOver(state, pool, flight, false);
  HandOver(state, pool, missing, true);
  flow::HandOver(state, cc, profile);
  state(probe_order, episode, lost, resent, spurious, probe_number);
}

void CcCounts::HandOver(StateStream& state) {
  auto& [acked, marked, hinted, notifications, lost, round_trip, least] = *this;
  state(acked, marked, hinted, notifications, lost, round_trip, least);
}

void CcSelector::HandOver(StateStream& state) {
  CcSelector copy = *this;
  auto& [policy, current, reason, before, next_look, last_switch, forget, candidate, agreed,
         switches] = copy;
  // The reader has its own rules; observations belong to the rules that were written.
  bool same = true;
  const uint32_t rules = state.Count(policy.count, CcPolicy::kMostRules);
  same &= rules == policy.count;
  for (uint32_t i = 0; i < rules; ++i) {
    CcRule rule = policy.rules[i];
    auto& [sign, threshold, algorithm] = rule;
    state.Enum(sign, CcSign::kUnmarkedLoss);
    state(threshold);
    state.Enum(algorithm, CcKind::kCount);
    same &= rule == policy.rules[i];
  }
  state.Enum(current, CcKind::kCount);
  HandOverIndex(state, reason);
  before.HandOver(state);
  state(next_look, last_switch);
  for (TimePoint& until : forget) state(until);
  HandOverIndex(state, candidate);
  state(agreed, switches);
  if (state.reading() && state.ok() && same) *this = copy;
}

void CcClass::HandOver(StateStream& state) {
  auto& [selector, next_sample, next_change] = *this;
  selector.HandOver(state);
  HandOverIndex(state, next_sample);
  HandOverIndex(state, next_change);
  if (state.reading()) next_sample = std::min<size_t>(next_sample, 1u << 24);
}

}  // namespace rocegw::flow
