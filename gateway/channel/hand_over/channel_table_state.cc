// SPDX-License-Identifier: Apache-2.0
// Free numbers and slots of a worker's channels for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#include <algorithm>
#include <set>

#include "gateway/channel/channel_table.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::channel {

using hand_over::StateStream;

void ChannelTable::HandOverSize(StateStream& state) {
  auto& [slots, free, numbers, number_count, by_number, by_key, by_peer] = *this;
  (void)free, (void)by_number, (void)by_key, (void)by_peer;  // handed over by HandOverFree, or made
  state.Require(!state.reading() || (slots.empty() && numbers.size() == number_count),
                "channels are in use");
  const uint32_t count = state.Count(slots.size(), kMostSlots);
  if (state.reading() && state.ok()) slots.resize(count);
}

void ChannelTable::HandOverFree(StateStream& state) {
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

void ChannelTable::Reindex() {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const Channel* const channel = slots_[slot].get();
    if (channel == nullptr) continue;
    AddIndexes(slot);
    const bool opened =
        channel->state() == ChannelState::kOpen || channel->state() == ChannelState::kClosing;
    if (opened || channel->peer_number() != kInvalidQpn) AddPeer(*channel);
  }
}

}  // namespace rocegw::channel
