// SPDX-License-Identifier: Apache-2.0
// Set of peers that is filled and emptied often: emptying takes no time, and a search takes none
// that depends on the number of peers. Handles of peers come from programs, so the hash is keyed
// with the address of the object, which programs do not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "gateway/base/mix.h"

namespace rocegw::transport {

class PeerMarks {
 public:
  // Returns the most bytes for so many peers, a power of two.
  static constexpr uint64_t HeapBytes(uint32_t peers) {
    return uint64_t{peers} * 2 * sizeof(Slot) + kFewest * sizeof(Slot);
  }

  PeerMarks() = default;
  // The address keys the hash.
  PeerMarks(const PeerMarks&) = delete;
  PeerMarks& operator=(const PeerMarks&) = delete;

  void Clear() {
    count_ = 0;
    if (++round_ != 0) return;
    slots_.assign(slots_.size(), {});
    round_ = 1;
  }
  bool Contains(uint32_t peer) const {
    if (count_ == 0) return false;
    return peer == latest_ || slots_[Find(peer)].round == round_;
  }
  void Add(uint32_t peer) {
    if (Contains(peer)) {
      latest_ = peer;
      return;
    }
    if ((count_ + 1) * 2 > slots_.size()) Grow();
    slots_[Find(peer)] = {peer, round_};
    ++count_;
    latest_ = peer;
  }

 private:
  static constexpr size_t kFewest = 16;
  struct Slot {
    uint32_t peer = 0;
    uint32_t round = 0;  // the slot is used if it is the current round
  };

  // Returns the peer's slot, or the free one where it belongs.
  size_t Find(uint32_t peer) const {
    const size_t mask = slots_.size() - 1;
    size_t at = Mix(peer ^ std::hash<const void*>()(this)) & mask;
    while (slots_[at].round == round_ && slots_[at].peer != peer) at = (at + 1) & mask;
    return at;
  }
  void Grow() {
    std::vector<Slot> old(slots_.empty() ? kFewest : slots_.size() * 2);
    std::swap(old, slots_);
    for (const Slot& slot : old)
      if (slot.round == round_) slots_[Find(slot.peer)] = slot;
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t count_ = 0;
  uint32_t round_ = 1;
  uint32_t latest_ = 0;  // valid if count_ != 0
};

}  // namespace rocegw::transport
