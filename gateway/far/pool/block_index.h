// SPDX-License-Identifier: Apache-2.0
// Index of a block pool: which block holds the value of a key, and which value is evicted next. A
// block that is being read or written is never given to another value. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rocegw::far {

class BlockIndex {
 public:
  explicit BlockIndex(uint32_t blocks);

  // Takes a block for a new value: a free one, or that of the value that was not used for longest.
  // nullopt: all blocks are being read or written. The caller publishes or discards the block.
  std::optional<uint32_t> Take();
  // The value of the key is in the block from now on; an older value of the key is forgotten.
  void Publish(std::string key, uint32_t block, uint64_t bytes);
  // The block has no value: its write failed.
  void Discard(uint32_t block);

  struct Found {
    uint32_t block = 0;
    uint64_t bytes = 0;
  };
  // Finds the value, counts it as used, and holds its block until Release. nullopt: not there, or
  // larger than `most_bytes`; then *bytes is its size, otherwise 0.
  std::optional<Found> Hold(std::string_view key, uint64_t most_bytes, uint64_t* bytes);
  void Release(uint32_t block);

  bool Has(std::string_view key) const { return values_.find(std::string(key)) != values_.end(); }
  // Forgets the value. Returns whether it was there.
  bool Remove(std::string_view key);
  // Forgets the value of the block, whose data is lost. Returns whether the block had one.
  bool Lose(uint32_t block);

  uint64_t values() const { return values_.size(); }
  uint64_t evictions() const { return evictions_; }

 private:
  struct Value {
    uint32_t block = 0;
    uint64_t bytes = 0;
    std::list<uint32_t>::iterator use;  // in uses_
  };
  struct Block {
    uint32_t holds = 0;
    const std::string* key = nullptr;  // its value's key; nullptr: no value
  };
  using Values = std::unordered_map<std::string, Value>;

  void Forget(Values::iterator value);

  std::vector<Block> blocks_;
  std::deque<uint32_t> free_;
  std::list<uint32_t> uses_;  // blocks with a value, the longest unused first
  Values values_;
  uint64_t evictions_ = 0;
};

}  // namespace rocegw::far
