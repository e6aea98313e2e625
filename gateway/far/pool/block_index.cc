// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/pool/block_index.h"

#include <utility>

namespace rocegw::far {

BlockIndex::BlockIndex(uint32_t blocks) : blocks_(blocks) {
  for (uint32_t block = 0; block < blocks; block++) free_.push_back(block);
}

std::optional<uint32_t> BlockIndex::Take() {
  if (free_.empty()) {
    // Blocks in transfer are few: the caller bounds their number.
    for (const uint32_t block : uses_) {
      if (blocks_[block].holds != 0) continue;
      Forget(values_.find(*blocks_[block].key));
      evictions_++;
      break;
    }
  }
  if (free_.empty()) return std::nullopt;
  const uint32_t block = free_.front();
  free_.pop_front();
  return block;
}

void BlockIndex::Publish(std::string key, uint32_t block, uint64_t bytes) {
  if (const auto old = values_.find(key); old != values_.end()) Forget(old);
  const auto value = values_.emplace(std::move(key), Value{block, bytes, {}}).first;
  value->second.use = uses_.insert(uses_.end(), block);
  blocks_[block].key = &value->first;
}

void BlockIndex::Discard(uint32_t block) { free_.push_back(block); }

std::optional<BlockIndex::Found> BlockIndex::Hold(std::string_view key, uint64_t most_bytes,
                                                  uint64_t* bytes) {
  const auto found = values_.find(std::string(key));
  *bytes = found != values_.end() ? found->second.bytes : 0;
  if (found == values_.end() || found->second.bytes > most_bytes) return std::nullopt;
  const Value& value = found->second;
  uses_.splice(uses_.end(), uses_, value.use);
  blocks_[value.block].holds++;
  return Found{value.block, value.bytes};
}

void BlockIndex::Release(uint32_t block) {
  blocks_[block].holds--;
  if (blocks_[block].holds == 0 && blocks_[block].key == nullptr) free_.push_back(block);
}

bool BlockIndex::Remove(std::string_view key) {
  const auto found = values_.find(std::string(key));
  if (found == values_.end()) return false;
  Forget(found);
  return true;
}

bool BlockIndex::Lose(uint32_t block) {
  if (blocks_[block].key == nullptr) return false;
  Forget(values_.find(*blocks_[block].key));
  return true;
}

// The block is free when the last hold of it ends.
void BlockIndex::Forget(Values::iterator value) {
  const uint32_t block = value->second.block;
  uses_.erase(value->second.use);
  blocks_[block].key = nullptr;
  values_.erase(value);
  if (blocks_[block].holds == 0) free_.push_back(block);
}

}  // namespace rocegw::far
