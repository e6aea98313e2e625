// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/request/arena.h"

#include <iterator>

namespace rocegw::far {

Arena::Arena(uint64_t bytes) : free_bytes_(bytes / kUnit * kUnit) {
  if (free_bytes_ != 0) free_.emplace(0, free_bytes_);
}

std::optional<uint64_t> Arena::Allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > free_bytes_) return std::nullopt;
  const uint64_t wanted = (bytes + kUnit - 1) / kUnit * kUnit;
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < wanted) continue;
    const auto [offset, size] = *range;
    free_.erase(range);
    if (size > wanted) free_.emplace(offset + wanted, size - wanted);
    allocated_.emplace(offset, wanted);
    free_bytes_ -= wanted;
    return offset;
  }
  return std::nullopt;
}

bool Arena::Free(uint64_t offset) {
  const auto block = allocated_.find(offset);
  if (block == allocated_.end()) return false;
  uint64_t bytes = block->second;
  allocated_.erase(block);
  free_bytes_ += bytes;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return true;
    }
  }
  free_.emplace(offset, bytes);
  return true;
}

}  // namespace rocegw::far
