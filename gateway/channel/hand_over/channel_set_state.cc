// SPDX-License-Identifier: Apache-2.0
// State of a worker's channels for a gateway that takes over (gateway/hand_over/state_stream.h).
#include "gateway/channel/channel_set.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::channel {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

void HandOverGid(StateStream& state, wire::Gid& gid) { state.Bytes(gid.bytes); }

}  // namespace

// Writes or reads one channel with what its constructor needs. A reader's slot is empty.
void ChannelSet::HandOverChannel(StateStream& state, uint16_t version, uint32_t slot) {
  Channel* const old = table_.At(slot);
  ChannelKey own_key = old == nullptr ? ChannelKey{} : old->key();
  Channel::Options made;
  if (old != nullptr) {
    made = {.number = old->number(),
            .epoch = old->epoch(),
            .first = Psn(0),
            .device = static_cast<uint8_t>(old->device()),
            .max_payload = old->max_payload(),
            .features = 0,
            .authenticated = old->authenticated(),
            .sealed = old->sealed()};
    if (old->sealed()) made.seal = shared_.protections.At(slot)->offer();
  }
  auto& [source, peer, peer_worker, traffic_class, path] = own_key;
  HandOverGid(state, source);
  HandOverGid(state, peer);
  peer_worker = state.Carry(peer_worker, uint32_t{UINT16_MAX});
  state(traffic_class, path);
  auto& [number, epoch, first, device, max_payload, features, authenticated, sealed, seal] = made;
  (void)first, (void)features;  // handed over by the channel
  state(number, epoch, device, max_payload, authenticated);
  if (version >= 2) {
    state(sealed);
    if (sealed) {
      state.Bytes(seal.salt);
      state(seal.encrypts);
    }
  }
  state.Require(version >= 2 || !sealed, "a sealed channel, which an older gateway does not know");
  const size_t overhead =
      wire::kMaxPayloadHeaderLength + wire::kIcrcLength + (sealed ? wire::kSealLength : 0);
  state.Require(max_payload != 0 && max_payload % Channel::kPayloadUnit == 0 &&
                    max_payload <= wire::kMaxPayload &&
                    max_payload + overhead <= owner_.MaxDatagram(device, peer),
                "a channel's frames do not fit its port");
  if (!state.ok()) return;
  if (state.reading())
    table_.Restore(std::make_unique<Channel>(own_key, made, slot, shared_, state.now()));
  if (sealed) shared_.protections.At(slot)->HandOver(state);
  table_.At(slot)->HandOver(state);
}

// Writes or reads the lists of channels that have work.
void ChannelSet::HandOverLists(StateStream& state) {
  auto& [due, waiting] = shared_.lists;
  const auto entry = [&](uint16_t& slot) {
    state(slot);
    return state.Require(table_.At(slot) != nullptr, "channel is missing");
  };
  state.Vector(due, ChannelTable::kMostSlots, [&](uint16_t& slot) {
    if (!entry(slot)) return;
    state.Require(!state.reading() || !table_.At(slot)->in_due, "channel is due twice");
    table_.At(slot)->in_due = true;
  });
  state.Vector(waiting, ChannelTable::kMostSlots, [&](uint16_t& slot) {
    if (!entry(slot)) return;
    state.Require(!state.reading() || !table_.At(slot)->in_waiting, "channel waits twice");
    table_.At(slot)->in_waiting = true;
  });
  for (const auto& channel : table_.slots()) {
    if (channel == nullptr) continue;
    state.Require(channel->state() != ChannelState::kGone || channel->in_due,
                  "channel is never released");
    state.Require(channel->wait_queue_bytes() == 0 || channel->in_waiting,
                  "wait queue is never served");
  }
}

// The windows are in the order of their last use.
void PeerSequences::HandOver(StateStream& state) {
  auto& [channels, windows, by_speaker, uses] = *this;
  (void)channels, (void)by_speaker, (void)uses;  // follow from the windows
  const uint32_t count = state.Count(windows.size(), kMost);
  auto one = windows.begin();
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    Speaker speaker = state.reading() ? Speaker{} : one->speaker;
    auto& [peer, instance, worker] = speaker;
    HandOverGid(state, peer);
    state(instance, worker);
    ReplayWindow* const window = state.reading() ? Use(speaker) : &one->numbers;
    if (!state.Require(window != nullptr, "more senders than an address has")) return;
    window->HandOver(state);
    if (!state.reading()) ++one;
  }
}

// The holder of an old cookie is asked again.
void ControlAnswers::HandOver(StateStream& state) {
  auto& [counters, shared, acceptor, rate, cookies, retries, of_members, tokens, time] = *this;
  (void)counters, (void)shared, (void)acceptor, (void)rate, (void)cookies, (void)retries;
  (void)of_members;
  state(tokens, time);
  state.Require(tokens >= 0 && tokens <= kBurst, "tokens are out of range");
}

void ChannelSet::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kChannelSet);
  auto& [options, selection, counts, losses_before, random, counters, owner, shared, table, limits,
         answers, sequences, traffic, running] = *this;
  (void)random, (void)owner, (void)running;  // links, and what follows
  state.Require(
      state.Carry(options.acceptor.value) == options.acceptor.value &&
          state.Carry(options.instance) == options.instance &&
          state.Carry(static_cast<uint32_t>(table.number_count())) == table.number_count(),
      "channels of another worker");
  if (state.Carry(selection.has_value())) {
    std::optional<flow::CcClass> unused;
    if (!selection) unused.emplace(flow::CcPolicy{}, flow::CcKind::kCount, state.now());
    (selection ? *selection : *unused).HandOver(state);
  }
  // An older gateway wrote what it had seen at its last look, and does not hand its counter over.
  const uint64_t resent = counters.channel_resent_packets.Read();
  if (!state.reading()) counts.losses = losses_before + resent;
  counts.HandOver(state);
  if (state.reading()) losses_before = counts.losses - resent;
  state(shared.sequence);
  table.HandOverSize(state);
  for (uint32_t slot = 0; slot < table.size() && state.ok(); ++slot) {
    if (!state.Carry(table.At(slot) != nullptr)) continue;
    HandOverChannel(state, record.version(), slot);
    traffic.HandOver(state, slot);
  }
  table.HandOverFree(state);
  HandOverLists(state);
  limits.HandOver(state);
  traffic.HandOverClosed(state);
  sequences.HandOver(state);
  answers.HandOver(state);
  if (state.reading() && state.ok()) table.Reindex();
}

void ChannelSet::ArmTimers(TimePoint now) {
  for (const auto& channel : table_.slots())
    if (channel != nullptr) Rearm(*channel, now);
}

}  // namespace rocegw::channel
