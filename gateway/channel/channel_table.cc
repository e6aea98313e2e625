// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/channel_table.h"

#include <algorithm>
#include <utility>

namespace rocegw::channel {

void ChannelTable::Use(const std::vector<Qpn>& numbers, uint64_t key_secret, uint64_t peer_secret) {
  by_key_ = ChannelIndex(key_secret);
  by_peer_ = ChannelIndex(peer_secret);
  const size_t most = std::min<size_t>(numbers.size(), ChannelIndex::kNoSlot);
  numbers_.assign(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(most));
  number_count_ = numbers_.size();
}

void ChannelTable::AddIndexes(uint32_t slot) {
  by_key_.Insert(slot, [this](uint32_t at) { return HashOf(slots_[at]->key()); });
  by_number_.Insert(slot, [this](uint32_t at) { return slots_[at]->number().value; });
}

Channel& ChannelTable::Add(std::unique_ptr<Channel> channel) {
  const uint32_t slot = NextSlot();
  numbers_.pop_front();
  free_.empty() ? void(slots_.emplace_back()) : free_.pop_back();
  slots_[slot] = std::move(channel);
  AddIndexes(slot);
  return *slots_[slot];
}

void ChannelTable::AddPeer(const Channel& channel) {
  by_peer_.Insert(channel.slot(), [this](uint32_t at) {
    return HashOf(slots_[at]->peer(), slots_[at]->peer_number());
  });
}

void ChannelTable::Remove(uint32_t slot) {
  by_number_.Erase(slot, [this](uint32_t at) { return slots_[at]->number().value; });
  by_key_.Erase(slot, [this](uint32_t at) { return HashOf(slots_[at]->key()); });
  by_peer_.Erase(
      slot, [this](uint32_t at) { return HashOf(slots_[at]->peer(), slots_[at]->peer_number()); });
  numbers_.push_back(slots_[slot]->number());
  slots_[slot].reset();
  free_.push_back(static_cast<uint16_t>(slot));
}

Channel* ChannelTable::ByNumber(Qpn number) const {
  const int64_t slot =
      by_number_.Find(number.value, [&](uint32_t at) { return slots_[at]->number() == number; });
  return slot < 0 ? nullptr : slots_[static_cast<size_t>(slot)].get();
}

size_t ChannelTable::bytes() const {
  return slots_.capacity() * sizeof(slots_[0]) + free_.capacity() * sizeof(uint16_t) +
         by_number_.bytes() + by_key_.bytes() + by_peer_.bytes();
}

}  // namespace rocegw::channel
