// SPDX-License-Identifier: Apache-2.0
// State of a worker's channels for a gateway that takes over (gateway/hand_over/state_stream.h).
#include <algorithm>
#include <set>

#include "gateway/channel/channel_set.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::channel {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limits of lists that the numbers of channels bound otherwise.
constexpr uint32_t kMostSlots = ChannelIndex::kNoSlot;
constexpr uint32_t kMostOpened = 1u << 20;
constexpr uint32_t kMostSums = 4097;  // peers, and their rest

void HandOverGid(StateStream& state, wire::Gid& gid) { state.Bytes(gid.bytes); }

}  // namespace

// Writes or reads one channel with what its constructor needs. A reader's slot is empty.
void ChannelSet::HandOverChannel(StateStream& state, uint32_t slot) {
  Channel* const old = slots_[slot].get();
  ChannelKey own_key = old == nullptr ? ChannelKey{} : old->key();
  Channel::Options made;
  if (old != nullptr) {
    made = {.number = old->number(),
            .epoch = old->epoch(),
            .first = Psn(0),
            .device = static_cast<uint8_t>(old->device()),
            .max_payload = old->max_payload(),
            .features = 0,
            .authenticated = old->authenticated()};
  }
  auto& [source, peer, peer_worker, traffic_class, path] = own_key;
  HandOverGid(state, source);
  HandOverGid(state, peer);
  peer_worker = state.Carry(peer_worker, uint32_t{UINT16_MAX});
  state(traffic_class, path);
  auto& [number, epoch, first, device, max_payload, features, authenticated] = made;
  (void)first, (void)features;  // handed over by the channel
  state(number, epoch, device, max_payload, authenticated);
  constexpr size_t kOverhead = wire::kMaxPayloadHeaderLength + wire::kIcrcLength;
  state.Require(max_payload != 0 && max_payload % Channel::kPayloadUnit == 0 &&
                    max_payload <= wire::kMaxPayload &&
                    max_payload + kOverhead <= owner_.MaxDatagram(device, peer),
                "a channel's frames do not fit its port");
  if (!state.ok()) return;
  if (state.reading())
    slots_[slot] = std::make_unique<Channel>(own_key, made, slot, shared_, state.now());
  slots_[slot]->HandOver(state);
}

// Writes or reads the free numbers and slots. Each number of the set is free or a channel's.
void ChannelSet::HandOverNumbers(StateStream& state) {
  std::set<Qpn> left;
  if (state.reading()) left.insert(numbers_.begin(), numbers_.end());
  for (const auto& channel : slots_) {
    if (state.reading() && channel != nullptr)
      state.Require(left.erase(channel->number()) != 0, "a channel has a foreign number");
  }
  const uint32_t count = state.Count(numbers_.size(), kMostSlots);
  state.Require(!state.reading() || count == left.size(), "channel numbers are missing");
  if (state.reading()) numbers_.assign(state.ok() ? count : 0, Qpn{});
  for (Qpn& number : numbers_) {
    state(number);
    if (state.reading()) state.Require(left.erase(number) != 0, "a channel number is not free");
  }
  state.Vector(free_, kMostSlots, [&](uint16_t& slot) {
    state(slot);
    state.Require(slot < slots_.size() && slots_[slot] == nullptr, "a channel's slot is not free");
  });
  const auto unused = static_cast<size_t>(std::count(slots_.begin(), slots_.end(), nullptr));
  state.Require(std::set(free_.begin(), free_.end()).size() == unused && free_.size() == unused,
                "slots of channels are impossible");
}

// Writes or reads the lists of channels that have work.
void ChannelSet::HandOverLists(StateStream& state) {
  auto& [due, waiting] = shared_.lists;
  const auto entry = [&](uint16_t& slot) {
    state(slot);
    return state.Require(slot < slots_.size() && slots_[slot] != nullptr, "channel is missing");
  };
  state.Vector(due, kMostSlots, [&](uint16_t& slot) {
    if (!entry(slot)) return;
    state.Require(!state.reading() || !slots_[slot]->in_due, "channel is due twice");
    slots_[slot]->in_due = true;
  });
  state.Vector(waiting, kMostSlots, [&](uint16_t& slot) {
    if (!entry(slot)) return;
    state.Require(!state.reading() || !slots_[slot]->in_waiting, "channel waits twice");
    slots_[slot]->in_waiting = true;
  });
  for (const auto& channel : slots_) {
    if (channel == nullptr) continue;
    state.Require(channel->state() != ChannelState::kGone || channel->in_due,
                  "channel is never released");
    state.Require(channel->wait_queue_bytes() == 0 || channel->in_waiting,
                  "wait queue is never served");
  }
}

// Writes or reads the lists that bound the channels of strangers. The reader counts them again,
// because addresses that share a limit depend on its secret.
void ChannelSet::HandOverLimits(StateStream& state) {
  state.Ring(half_open_, kMostOpened, [&](Opened& opened) {
    auto& [slot, epoch] = opened;
    state(slot, epoch);
    state.Require(slot < slots_.size(), "channel is missing");
  });
  if (state.ok() && !half_open_.empty()) {
    const auto& [slot, epoch] = half_open_.front();
    const Channel* const first = slots_[slot].get();
    state.Require(first != nullptr && first->counted && first->epoch() == epoch,
                  "oldest half-open channel is missing");
  }
  const uint32_t count = state.Count(idle_.size(), kMostSlots);
  if (state.reading()) idle_.assign(state.ok() ? count : 0, Idle{});
  std::set<uint32_t> known;
  for (Idle& idle : idle_) {
    auto& [slot, since] = idle;
    state(slot, since);
    if (!state.Require(slot < slots_.size() && slots_[slot] != nullptr, "channel is missing"))
      continue;
    state.Require(slots_[slot]->idle_of_stranger && known.insert(slot).second,
                  "channel is not a stranger's");
  }
  if (!state.reading()) return;
  for (const auto& channel : slots_) {
    if (channel == nullptr) continue;
    if (channel->counted) ++HalfOpenOf(channel->peer());
    if (channel->idle_of_stranger) ++IdleOf(channel->peer());
  }
}

// Writes or reads what is known of peers beside their channels: sums of closed channels, and the
// sequence numbers of tagged packets.
void ChannelSet::HandOverPeers(StateStream& state) {
  const uint32_t sums = state.Count(gone_.size(), kMostSums);
  auto sum = gone_.begin();
  for (uint32_t i = 0; i < sums && state.ok(); ++i) {
    wire::Gid at = state.reading() ? wire::Gid{} : sum->first;
    HandOverGid(state, at);
    PeerTraffic& traffic = gone_[at];
    auto& [peer, arrived, resent, channels, in_flight, rtts, channels_rtt] = traffic;
    (void)peer, (void)channels, (void)in_flight, (void)rtts, (void)channels_rtt;  // open channels'
    state(arrived, resent);
    if (!state.reading()) ++sum;
  }
  const uint32_t speakers = state.Count(heard_.size(), kMostHeard);
  auto one = heard_.begin();
  for (uint32_t i = 0; i < speakers && state.ok(); ++i) {
    Speaker speaker = state.reading() ? Speaker{} : one->first;
    auto& [peer, instance, worker] = speaker;
    HandOverGid(state, peer);
    state(instance, worker);
    heard_[speaker].HandOver(state);
    if (!state.reading()) ++one;
  }
}

void ChannelSet::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kChannelSet);
  auto& [options, selection, counts, random, cookies, retries, counters, owner, shared, slots,
         arrived, gone, free, by_number, by_key, by_peer, numbers, half_open, idle, half_open_of,
         idle_of, members, heard, number_count, running, reset_tokens, reset_time] = *this;
  // Links, configuration, what the control thread reports, and what follows from the channels. Who
  // has a cookie of the old set is asked again.
  (void)random, (void)cookies, (void)retries, (void)counters, (void)owner, (void)gone, (void)free,
      (void)half_open, (void)idle;
  (void)half_open_of, (void)idle_of, (void)members, (void)heard, (void)running;
  state.Require(state.Carry(options.acceptor.value) == options.acceptor.value &&
                    state.Carry(options.instance) == options.instance &&
                    state.Carry(static_cast<uint32_t>(number_count)) == number_count,
                "channels of another worker");
  state.Require(!state.reading() || (slots.empty() && numbers.size() == number_count),
                "channels are in use");
  if (state.Carry(selection.has_value())) {
    std::optional<flow::CcClass> unused;
    if (!selection) unused.emplace(flow::CcPolicy{}, flow::CcKind::kCount, state.now());
    (selection ? *selection : *unused).HandOver(state);
  }
  counts.HandOver(state);
  state(shared.sequence);
  const uint32_t places = state.Count(slots.size(), kMostSlots);
  if (state.reading() && state.ok()) slots.resize(places);
  if (state.reading() && state.ok()) arrived.resize(places);
  for (uint32_t slot = 0; slot < slots.size() && state.ok(); ++slot) {
    if (!state.Carry(slots[slot] != nullptr)) continue;
    HandOverChannel(state, slot);
    state(arrived[slot]);
  }
  HandOverNumbers(state);
  HandOverLists(state);
  HandOverLimits(state);
  HandOverPeers(state);
  state(reset_tokens, reset_time);
  state.Require(reset_tokens >= 0 && reset_tokens <= kResetBurst, "tokens are out of range");
  if (!state.reading() || !state.ok()) return;
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    const Channel* const channel = slots[slot].get();
    if (channel == nullptr) continue;
    by_number.Insert(slot, [this](uint32_t at) { return slots_[at]->number().value; });
    by_key.Insert(slot, [this](uint32_t at) { return HashOf(slots_[at]->key()); });
    const bool opened =
        channel->state() == ChannelState::kOpen || channel->state() == ChannelState::kClosing;
    if (opened || channel->peer_number() != kInvalidQpn)
      by_peer.Insert(slot, [this](uint32_t at) { return PeerHashOf(*slots_[at]); });
  }
}

void ChannelSet::ArmTimers(TimePoint now) {
  for (const auto& channel : slots_)
    if (channel != nullptr) Rearm(*channel, now);
}

}  // namespace rocegw::channel
