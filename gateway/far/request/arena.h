// SPDX-License-Identifier: Apache-2.0
// Allocator of blocks inside one registered buffer, by offset: first fit among free ranges, which
// are joined when blocks are freed. Serves the staging buffer and the callers' memory pool. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

namespace rocegw::far {

class Arena {
 public:
  static constexpr uint64_t kUnit = 4096;  // blocks begin at and occupy multiples of this

  explicit Arena(uint64_t bytes);

  // Returns the block's offset; nullopt when no free range is large enough. `bytes` is not 0.
  std::optional<uint64_t> Allocate(uint64_t bytes);
  // Returns false when no block begins at this offset.
  bool Free(uint64_t offset);

  uint64_t free_bytes() const { return free_bytes_; }

 private:
  std::map<uint64_t, uint64_t> free_;                 // offset to bytes
  std::unordered_map<uint64_t, uint64_t> allocated_;  // offset to bytes
  uint64_t free_bytes_;
};

}  // namespace rocegw::far
