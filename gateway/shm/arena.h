// SPDX-License-Identifier: Apache-2.0
// Allocator bookkeeping for a set of chunks: best fit; neighbouring free blocks merge. It never
// touches the memory. Belongs to one segment, control thread. Units are bytes; sizes are rounded up
// to cache lines, so that blocks of different owners share none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace rocegw::shm {

struct ArenaBlock {
  uint32_t chunk = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

class Arena {
 public:
  // Preallocated bookkeeping for one more chunk.
  class Spare;

  // Adds a chunk, all of it free.
  void AddChunk(uint32_t chunk, uint64_t size);
  // Adds a chunk without an allocation.
  void AddChunk(uint32_t chunk, uint64_t size, Spare spare);
  // Takes the smallest free block that fits `bytes`, rounded up to cache lines. Returns nothing if
  // there is none or bytes is 0. Allocates nothing.
  std::optional<ArenaBlock> Take(uint64_t bytes);
  // Takes that block, rounded up to cache lines. Returns false without a change if part of it is
  // not free.
  [[nodiscard]] bool TakeAt(const ArenaBlock& block);
  // Frees a block. Returns false without a change if part of it is free already, which is a bug of
  // the caller.
  [[nodiscard]] bool Give(const ArenaBlock& block);

  uint64_t free_bytes() const { return free_bytes_; }
  size_t fragments() const { return by_size_.size(); }

 private:
  using Place = std::pair<uint32_t, uint64_t>;            // chunk, offset
  using Size = std::tuple<uint64_t, uint32_t, uint64_t>;  // length, chunk, offset

  void Insert(Place place, uint64_t length);
  void Erase(Place place, uint64_t length);

  std::map<Place, uint64_t> by_place_;
  std::set<Size> by_size_;
  uint64_t free_bytes_ = 0;
};

class Arena::Spare {
 public:
  Spare();

 private:
  friend class Arena;
  std::map<Place, uint64_t>::node_type place_;
  std::set<Size>::node_type size_;
};

}  // namespace rocegw::shm
