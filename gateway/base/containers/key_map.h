// SPDX-License-Identifier: Apache-2.0
// Hash map from a random or counted number to a value: open addressing, linear probing, no
// tombstones. Keys are their own hash, so keys must not be chosen by untrusted parties. 0 is not a
// valid key. Pointers to values are valid until the next Insert or Erase. Not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rocegw {

template <typename V, typename Key = uint32_t>
class KeyMap {
 public:
  V* Find(Key key) { return const_cast<V*>(static_cast<const KeyMap*>(this)->Find(key)); }
  const V* Find(Key key) const {
    if (slots_.empty() || key == 0) return nullptr;
    for (size_t i = Home(key);; i = Next(i)) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == 0) return nullptr;
    }
  }

  // Prefetches the slot where a search for the key begins.
  void Prefetch(Key key) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[Home(key)]);
  }

  // Returns false if the key is 0 or exists.
  bool Insert(Key key, V value) {
    if (key == 0 || Find(key) != nullptr) return false;
    if ((size_ + 1) * 2 > slots_.size()) Rehash(slots_.empty() ? 16 : slots_.size() * 2);
    Place(key, std::move(value));
    ++size_;
    return true;
  }

  bool Erase(Key key) {
    if (slots_.empty() || key == 0) return false;
    size_t hole = Home(key);
    while (slots_[hole].key != key) {
      if (slots_[hole].key == 0) return false;
      hole = Next(hole);
    }
    // Moves later entries of the run up where their home slot allows, so that probing never meets a
    // gap.
    for (size_t i = Next(hole); slots_[i].key != 0; i = Next(i)) {
      const size_t home = Home(slots_[i].key);
      const bool stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
      if (stays) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    slots_[hole] = Slot();
    --size_;
    return true;
  }

  size_t size() const { return size_; }
  // Makes sure that `count` entries fit without another allocation.
  void Reserve(size_t count) {
    if (count * 2 > slots_.size()) Rehash(std::bit_ceil(count * 2));
  }

 private:
  struct Slot {
    Key key = 0;
    V value{};
  };
  size_t Home(Key key) const { return key & (slots_.size() - 1); }
  size_t Next(size_t i) const { return (i + 1) & (slots_.size() - 1); }
  void Place(Key key, V value) {
    size_t i = Home(key);
    while (slots_[i].key != 0) i = Next(i);
    slots_[i].key = key;
    slots_[i].value = std::move(value);
  }
  void Rehash(size_t capacity) {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(capacity));
    for (Slot& slot : old) {
      if (slot.key != 0) Place(slot.key, std::move(slot.value));
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace rocegw
