// SPDX-License-Identifier: Apache-2.0
// State of flows for a gateway that takes over (gateway/hand_over/state_stream.h).
#include "gateway/flow/carrier_names.h"
#include "gateway/flow/flow.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::flow {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

void HandOver(StateStream& state, CarrierNames& names, Carrier*& carrier) {
  const uint64_t name = state.Carry(carrier == nullptr ? 0 : names.NameOf(*carrier));
  if (!state.reading()) return;
  carrier = name == 0 || !state.ok() ? nullptr : names.Find(name);
  state.Require(name == 0 || carrier != nullptr, "a queue pair's channel is missing");
}

void RttEstimator::HandOver(StateStream& state) {
  auto& [smoothed, variation, minimum] = *this;
  state(smoothed, variation, minimum);
}

void HandOver(StateStream& state, CcConfig& config) {
  auto& [kind, window_bytes, packet_bytes, profile] = config;
  (void)profile;  // the reader's own configuration has it
  state.Enum(kind, static_cast<CcKind>(kCcKinds - 1));
  state(window_bytes, packet_bytes);
}

void HandOver(StateStream& state, CcState& cc, const CcProfile& profile) {
  const StateRecord record(state, StateKind::kCongestion);
  auto& [profile_in_use, window_limit, packet_bytes, kind, own] = cc;
  (void)own;  // handed over by its algorithm
  const bool open = state.Carry(profile_in_use != nullptr);
  state(window_limit, packet_bytes);
  state.Enum(kind, static_cast<CcKind>(kCcKinds - 1));
  // A flow that is not open has no state of an algorithm.
  if (!open) {
    profile_in_use = nullptr;
    return;
  }
  if (state.reading()) profile_in_use = &profile;
  AlgorithmOf(kind).hand_over(cc, state);
}

void Flow::HandOver(StateStream& state, const CcProfile& profile) {
  const StateRecord record(state, StateKind::kFlow);
  auto& [una, next, max, allowed, in_flight, ledger, timer_start, last_probe, timeout, max_packets,
         rtt, rewinds, probes, retries_left, retry_count, recovering, probing, cc, answered,
         answer_round_end] = *this;
  state(una, next, max, allowed, in_flight);
  // Each packet in flight has one record at most.
  state.Ring(ledger, kPsnWindow, [&](Record& sent_range) {
    auto& [first, psns, bytes, sent, again] = sent_range;
    state(first, psns, bytes, sent, again);
  });
  state(timer_start, last_probe, timeout, max_packets);
  rtt.HandOver(state);
  state(rewinds, probes, retries_left, retry_count, recovering, probing);
  flow::HandOver(state, cc, profile);
  state(answered, answer_round_end);
  state.Require(PsnDistance(next, una) >= 0 && PsnDistance(max, next) >= 0,
                "PSNs of a flow are out of order");
}

}  // namespace rocegw::flow
