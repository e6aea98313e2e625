// SPDX-License-Identifier: Apache-2.0
#include "gateway/verbs/mr_table.h"

#include <utility>

namespace rocegw::verbs {

const RegionConfig* MrTable::Lookup(MemoryKey key) const {
  if (slots_.empty() || key.value == 0) return nullptr;
  const size_t mask = slots_.size() - 1;
  for (size_t i = key.value & mask;; i = (i + 1) & mask) {
    if (slots_[i].key == key) return &slots_[i];
    if (slots_[i].key.value == 0) return nullptr;
  }
}

void MrTable::Rehash(size_t capacity) {
  std::vector<RegionConfig> old = std::exchange(slots_, std::vector<RegionConfig>(capacity));
  const size_t mask = capacity - 1;
  for (RegionConfig& region : old) {
    if (region.key.value == 0) continue;
    size_t i = region.key.value & mask;
    while (slots_[i].key.value != 0) i = (i + 1) & mask;
    slots_[i] = region;
  }
}

bool MrTable::Link(const RegionConfig& region) {
  if (region.key.value == 0 || Lookup(region.key) != nullptr) return false;
  if ((size_ + 1) * 2 > slots_.size()) Rehash(slots_.empty() ? 16 : slots_.size() * 2);
  const size_t mask = slots_.size() - 1;
  size_t i = region.key.value & mask;
  while (slots_[i].key.value != 0) i = (i + 1) & mask;
  slots_[i] = region;
  ++size_;
  return true;
}

bool MrTable::Unlink(MemoryKey key) {
  const RegionConfig* found = Lookup(key);
  if (found == nullptr) return false;
  const size_t mask = slots_.size() - 1;
  size_t hole = static_cast<size_t>(found - slots_.data());
  // Close the gap, so that probing never needs tombstones.
  for (size_t i = (hole + 1) & mask; slots_[i].key.value != 0; i = (i + 1) & mask) {
    const size_t home = slots_[i].key.value & mask;
    const bool movable = hole <= i ? (home <= hole || home > i) : (home <= hole && home > i);
    if (movable) {
      slots_[hole] = slots_[i];
      hole = i;
    }
  }
  slots_[hole] = RegionConfig{};
  --size_;
  return true;
}

const RegionConfig* MrTable::Find(MemoryKey key, SessionId session, uint32_t pd, uint32_t access,
                                  uint64_t va, uint64_t length) const {
  const RegionConfig* region = Lookup(key);
  if (region == nullptr || region->session != session || region->pd != pd) return nullptr;
  if ((region->access & access) != access) return nullptr;
  if (va < region->iova) return nullptr;
  const uint64_t offset = va - region->iova;
  if (offset > region->length || length > region->length - offset) return nullptr;
  return region;
}

}  // namespace rocegw::verbs
