// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/blocks.h"

namespace rocegw::far {

std::optional<uint32_t> Blocks::Take(uint32_t wanted) {
  if (free_count_ == 0) return std::nullopt;
  uint32_t block = wanted < count() ? wanted : 0;
  while (!free_[block]) block = block + 1 < count() ? block + 1 : 0;
  free_[block] = false;
  free_count_--;
  return block;
}

bool Blocks::TakeExactly(uint32_t block) {
  if (block >= count() || !free_[block]) return false;
  free_[block] = false;
  free_count_--;
  return true;
}

void Blocks::Free(uint32_t block) {
  if (holds_[block] >= kOneHold) {
    holds_[block] |= kFreedWhileHeld;
    return;
  }
  if (keep_freed_) {
    kept_.push_back(block);
    return;
  }
  free_[block] = true;
  free_count_++;
}

void Blocks::FreedRecorded() {
  recorded_.insert(recorded_.end(), kept_.begin(), kept_.end());
  kept_.clear();
}

void Blocks::FreedCommitted() {
  for (const uint32_t block : recorded_) free_[block] = true;
  free_count_ += static_cast<uint32_t>(recorded_.size());
  recorded_.clear();
}

void Blocks::Release(uint32_t block) {
  holds_[block] -= kOneHold;
  if (holds_[block] != kFreedWhileHeld) return;
  holds_[block] = 0;
  Free(block);
}

}  // namespace rocegw::far
