// SPDX-License-Identifier: Apache-2.0
// Blocks of the session's space that files are made of, and which of them are free. A block that is
// freed while transfers still hold it becomes free when the last of them ends: a late transfer
// never meets another file's data. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rocegw::far {

class Blocks {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr uint64_t kBytes = 64 << 10;
  static constexpr uint32_t kPages = kBytes / kPageBytes;

  explicit Blocks(uint32_t count) : free_(count, true), holds_(count, 0), free_count_(count) {}

  // Takes a free block: `wanted`, so that adjacent blocks of a file are adjacent in the space, or
  // else the next free one behind it. nullopt: no block is free.
  std::optional<uint32_t> Take(uint32_t wanted);
  // Takes this block. Returns false when the block is not free, or there is none of that number.
  bool TakeExactly(uint32_t block);
  void Free(uint32_t block);

  // From now on a freed block becomes free only with the second of these calls: a journal names it
  // until then. FreedRecorded: blocks that were freed before are named by no later record.
  // FreedCommitted: the records before the last FreedRecorded are committed.
  void KeepFreed() { keep_freed_ = true; }
  void FreedRecorded();
  void FreedCommitted();
  bool has_kept() const { return !kept_.empty() || !recorded_.empty(); }

  // A transfer uses the block until it releases the hold.
  void Hold(uint32_t block) { holds_[block] += kOneHold; }
  void Release(uint32_t block);

  uint32_t count() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t free_count() const { return free_count_; }

 private:
  static constexpr uint32_t kFreedWhileHeld = 1;
  static constexpr uint32_t kOneHold = 2;

  std::vector<bool> free_;
  std::vector<uint32_t> holds_;  // number of holds, and whether the block was freed meanwhile
  uint32_t free_count_;
  bool keep_freed_ = false;
  std::vector<uint32_t> kept_;      // freed since the last FreedRecorded
  std::vector<uint32_t> recorded_;  // and before
};

}  // namespace rocegw::far
