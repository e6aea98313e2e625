// SPDX-License-Identifier: Apache-2.0
// Hash table from addresses and numbers that peers choose to channel slots. The hash is keyed with
// a secret, so a peer cannot compute collisions. An entry has two bytes; the caller computes the
// hash of a slot, because channels hold their own keys. Open addressing with linear probing, at
// most half full, no tombstones. Belongs to its ChannelSet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gateway/base/mix.h"
#include "gateway/wire/gid.h"

namespace rocegw::channel {

class ChannelIndex {
 public:
  // No slot has this number.
  static constexpr uint32_t kNoSlot = 0xFFFF;

  explicit ChannelIndex(uint64_t secret) : secret_(secret) {}

  uint32_t Hash(const wire::Gid& source, const wire::Gid& peer, uint64_t rest) const {
    uint64_t h = secret_;
    h = Mix(peer.MixInto(source.MixInto(h)) ^ rest);
    return static_cast<uint32_t>(h ^ h >> 32);
  }

  // Inserts a slot. Here and below, `hash_of(slot)` returns the hash of each slot in the table.
  template <typename F>
  void Insert(uint32_t slot, F hash_of) {
    if ((size_ + 1) * 2 > slots_.size()) {
      std::vector<uint16_t> old =
          std::exchange(slots_, std::vector<uint16_t>(slots_.empty() ? 16 : slots_.size() * 2,
                                                      static_cast<uint16_t>(kNoSlot)));
      for (const uint16_t at : old)
        if (at != kNoSlot) Place(at, hash_of(at));
    }
    Place(static_cast<uint16_t>(slot), hash_of(slot));
    ++size_;
  }
  // Removes a slot; does nothing if it is absent.
  template <typename F>
  void Erase(uint32_t slot, F hash_of) {
    if (slots_.empty()) return;
    size_t hole = Home(hash_of(slot));
    while (slots_[hole] != slot) {
      if (slots_[hole] == kNoSlot) return;
      hole = Next(hole);
    }
    // Moves later entries of the probe run up to where their home slot allows, so that the run has
    // no gap.
    for (size_t i = Next(hole); slots_[i] != kNoSlot; i = Next(i)) {
      const size_t home = Home(hash_of(slots_[i]));
      const bool stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
      if (stays) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = static_cast<uint16_t>(kNoSlot);
    --size_;
  }
  // Returns the first slot of the probe run for which matches(slot) holds; -1: none.
  template <typename F>
  int64_t Find(uint32_t hash, F matches) const {
    if (slots_.empty()) return -1;
    for (size_t i = Home(hash); slots_[i] != kNoSlot; i = Next(i))
      if (matches(slots_[i])) return slots_[i];
    return -1;
  }
  // Bytes of memory.
  size_t bytes() const { return slots_.capacity() * sizeof(uint16_t); }

 private:
  size_t Home(uint32_t hash) const { return hash & (slots_.size() - 1); }
  size_t Next(size_t i) const { return (i + 1) & (slots_.size() - 1); }
  void Place(uint16_t slot, uint32_t hash) {
    size_t i = Home(hash);
    while (slots_[i] != kNoSlot) i = Next(i);
    slots_[i] = slot;
  }

  uint64_t secret_;
  std::vector<uint16_t> slots_;
  size_t size_ = 0;
};

}  // namespace rocegw::channel
