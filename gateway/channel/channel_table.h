// SPDX-License-Identifier: Apache-2.0
// Channels of a worker by slot, and the ways to find one: by its number here, by what it connects,
// and by the peer's number. Free channel numbers. Belongs to its ChannelSet.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "gateway/channel/channel.h"
#include "gateway/channel/channel_index.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::channel {

class ChannelTable {
 public:
  static constexpr uint32_t kMostSlots = ChannelIndex::kNoSlot;
  using Slots = std::vector<std::unique_ptr<Channel>>;

  // `numbers`: free channel numbers, which bound the channels. Secrets: of the hashes. Call once,
  // before the first channel.
  void Use(const std::vector<Qpn>& numbers, uint64_t key_secret, uint64_t peer_secret);

  // Slots; nullptr: free.
  const Slots& slots() const { return slots_; }
  size_t size() const { return slots_.size(); }
  Channel* At(uint32_t slot) const { return slot < slots_.size() ? slots_[slot].get() : nullptr; }
  // Returns the number of all channel numbers, and of the free ones.
  size_t number_count() const { return number_count_; }
  size_t free_count() const { return numbers_.size(); }

  // Returns the number and the slot that the next channel gets. There must be a free number.
  Qpn NextNumber() const { return numbers_.front(); }
  uint32_t NextSlot() const {
    return free_.empty() ? static_cast<uint32_t>(slots_.size()) : free_.back();
  }
  // Adds the channel, which must have that number and slot.
  Channel& Add(std::unique_ptr<Channel> channel);
  // Makes a channel known by its peer's number, which it has now.
  void AddPeer(const Channel& channel);
  // Destroys a channel. Its number is used again after all others.
  void Remove(uint32_t slot);

  // Returns the channel with that number; nullptr: there is none.
  Channel* ByNumber(Qpn number) const;
  // Returns a channel for which `good` holds, preferably not a half-open one; no closed one.
  template <typename Good>
  Channel* ByKey(const ChannelKey& key, Good good) const {
    Channel* settled = nullptr;
    Channel* half_open = nullptr;
    by_key_.Find(HashOf(key), [&](uint32_t at) {
      Channel& channel = *slots_[at];
      if (channel.key() != key || channel.state() == ChannelState::kGone || !good(channel))
        return false;
      (channel.half_open() ? half_open : settled) = &channel;
      return settled != nullptr;
    });
    return settled != nullptr ? settled : half_open;
  }
  template <typename Good>
  Channel* ByPeer(const wire::Gid& peer, Qpn number, Good good) const {
    const int64_t slot = by_peer_.Find(HashOf(peer, number), [&](uint32_t at) {
      const Channel& channel = *slots_[at];
      return channel.peer() == peer && channel.peer_number() == number &&
             channel.state() != ChannelState::kGone && good(channel);
    });
    return slot < 0 ? nullptr : slots_[static_cast<size_t>(slot)].get();
  }
  // Returns a hash of a peer's address and number that no peer can compute.
  uint32_t HashOf(const wire::Gid& peer, Qpn number) const {
    return by_peer_.Hash({}, peer, number.value);
  }
  // Returns the bytes of the tables, without the channels.
  size_t bytes() const;

  // hand_over/channel_table_state.cc, in this order:
  // Makes a reader's table, which must have no channel, as large as the writer's.
  void HandOverSize(hand_over::StateStream& state);
  // Puts a channel that was read into its slot.
  void Restore(std::unique_ptr<Channel> channel) { slots_[channel->slot()] = std::move(channel); }
  // Writes or reads what is free. Each number is free or a channel's.
  void HandOverFree(hand_over::StateStream& state);
  // Makes the channels that were read known by number, key and peer.
  void Reindex();

 private:
  uint32_t HashOf(const ChannelKey& key) const {
    return by_key_.Hash(
        key.source, key.peer,
        uint64_t{key.peer_worker} << 16 | uint64_t{key.traffic_class} << 8 | key.path);
  }
  void AddIndexes(uint32_t slot);

  Slots slots_;
  std::vector<uint16_t> free_;
  std::deque<Qpn> numbers_;  // free numbers, longest unused first
  size_t number_count_ = 0;
  ChannelIndex by_number_{0};
  ChannelIndex by_key_{0};
  ChannelIndex by_peer_{0};  // channels whose peer number is known
};

}  // namespace rocegw::channel
