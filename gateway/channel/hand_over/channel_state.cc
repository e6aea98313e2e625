// SPDX-License-Identifier: Apache-2.0
// State of a channel for a gateway that takes over (gateway/hand_over/state_stream.h).
#include <algorithm>

#include "gateway/channel/acceptor/replay_window.h"
#include "gateway/channel/channel.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::channel {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limits of lists that the numbers of queue pairs and tenants bound otherwise.
constexpr uint32_t kMostTenants = 1u << 16;
constexpr uint32_t kMostWaiting = 1u << 20;
constexpr uint8_t kEveryDueBit = 31;

}  // namespace

void ReplayWindow::HandOver(StateStream& state) {
  auto& [highest, taken] = *this;
  state(highest, taken);
}

void WaitQueue::HandOver(StateStream& state) {
  auto& [crowd] = *this;
  const bool waits = state.Carry(crowd != nullptr);
  if (!waits) return;
  if (crowd == nullptr) crowd = std::make_unique<Crowd>();
  auto& [tenants, time, turn] = *crowd;
  state.Vector(tenants, kMostTenants, [&](Tenant& tenant) {
    auto& [tag, served, waiting] = tenant;
    state(tag, served);
    state.Ring(waiting, kMostWaiting, [&](WorkerObject& one) { flow::HandOver(state, one); });
  });
  state(time);
  // Taken modulo the number of tenants before each use.
  turn = state.Carry(static_cast<uint32_t>(turn), kMostTenants);
  // A wait queue without members has no crowd.
  if (!state.Require(size() != 0, "wait queue is empty")) crowd.reset();
}

void AwakeChannel::HandOver(StateStream& state, flow::LedgerPool& pool,
                            const flow::CcProfile& profile) {
  auto& [owes, probes, answers, few, meter, window, timer, flow, waiting, next_handshake,
         unused_since, resend, probe, first_psn] = *this;
  (void)few;    // the reader's pools owe no time
  (void)timer;  // the reader's timer wheel is empty
  owes = state.Carry(owes, kEveryDueBit);
  state(probes, answers);
  meter.HandOver(state);
  window.HandOver(state, pool);
  flow.HandOver(state, pool, profile);
  waiting.HandOver(state);
  state(next_handshake, unused_since, resend, probe, first_psn);
  state.Require(resend >= kFirstOpenResend && resend <= kLastOpenResend,
                "time of the handshake is out of range");
}

// Returns true if the flows are in the state that the channel's state allows.
bool Channel::IsPossible() const {
  switch (state_) {
    case ChannelState::kOpening:
      return !rests();
    case ChannelState::kOpen:
      return rests() || out().started();
    case ChannelState::kClosing:
      return !rests() && out().started();
    case ChannelState::kGone:
      return true;
  }
  return false;
}

void Channel::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kChannel);
  auto& [shared, block, peer_address, own_number, traffic_class, to_number, port_device, uses,
         counts, strangers, replacing, place, source_index, own_epoch, to_epoch, udp_port, units,
         seals, phase, tells, is_confirmed, asks, has_tags, lists_due, lists_waiting,
         own_epoch_high, to_epoch_high, to_instance, opens_at, path_index, option_bits,
         worker_of_peer, path_changes, reason, packed] = *this;
  // The set made the channel from its key and options, counts it, and lists it.
  (void)shared, (void)peer_address, (void)own_number, (void)port_device, (void)place;
  (void)source_index, (void)own_epoch, (void)units, (void)seals, (void)has_tags;
  (void)own_epoch_high;
  (void)path_index, (void)worker_of_peer, (void)lists_due, (void)lists_waiting;
  (void)uses;  // counted by the users
  traffic_class = state.Carry<uint32_t>(traffic_class, 0xFF) & 0xFF;
  to_number = state.Carry<uint32_t>(to_number, kQpnMask) & kQpnMask;
  counts = state.Carry<bool>(counts);
  strangers = state.Carry<bool>(strangers);
  replacing = state.Carry<bool>(replacing);
  state(to_epoch, udp_port);
  auto phase_now = phase;
  state.Enum(phase_now, ChannelState::kGone);
  phase = phase_now;
  tells = state.Carry<bool>(tells);
  is_confirmed = state.Carry<bool>(is_confirmed);
  asks = state.Carry<bool>(asks);
  state(to_epoch_high, to_instance);
  opens_at = state.Carry<uint32_t>(opens_at, kQpnMask) & kQpnMask;
  state(option_bits, path_changes);
  state.Enum(reason, static_cast<wire::ChannelReason>(
                         static_cast<uint8_t>(wire::ChannelReason::kCount) - 1));
  auto& [out_at_rest, in_at_rest] = packed;
  out_at_rest.HandOver(state);
  in_at_rest.HandOver(state);
  // A new channel is awake.
  if (!state.Carry(block != nullptr)) {
    if (state.reading()) shared.awake.GiveBack(block);
    block = nullptr;
  } else {
    const flow::CcProfile* const profile = shared.cc.profile;
    block->HandOver(state, shared.ledgers,
                    profile == nullptr ? flow::CcProfile::Preset() : *profile);
  }
  state.Require(IsPossible(), "channel is impossible");
}

}  // namespace rocegw::channel
