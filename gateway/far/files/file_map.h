// SPDX-License-Identifier: Apache-2.0
// Map of one file: which blocks of the space hold its data, and which pages of them were written.
// Pages that were not written read as zero, whatever their block held before. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "gateway/far/files/blocks.h"
#include "gateway/far/files/kept/records.h"

namespace rocegw::far {

// Stretch of a file that is contiguous in the space.
struct Run {
  static constexpr uint64_t kHole = UINT64_MAX;

  uint64_t begin = 0;   // in the file
  uint64_t length = 0;  // bytes
  uint64_t space = 0;   // offset in the space; kHole: reads as zero
};

class FileMap {
 public:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  // [begin, end) is not empty in all functions.
  // Runs that cover the range. Of unwritten pages: a hole for readers, their block for writers.
  std::vector<Run> RunsToRead(uint64_t begin, uint64_t end) const;
  std::vector<Run> RunsToWrite(uint64_t begin, uint64_t end) const;
  // Gives blocks to the range. Returns false, and changes nothing, when there are not enough.
  bool Allocate(uint64_t begin, uint64_t end, Blocks& blocks);
  // The range, extended to whole pages where an edge lies within an unwritten page: such a page is
  // written whole, with zeroes beside the data.
  Range Padded(uint64_t begin, uint64_t end) const;
  bool IsWritten(uint64_t offset) const;
  // Pages that touch the range hold data.
  void MarkWritten(uint64_t begin, uint64_t end);
  // Pages from `begin` to `end`, which are multiples of the page size, are unwritten from now on.
  // Frees blocks of the range without written pages.
  void Discard(uint64_t begin, uint64_t end, Blocks& blocks);
  // First offset at or behind `from` and below `end` that is data, or a hole; `end`: none.
  uint64_t NextData(uint64_t from, uint64_t end) const;
  uint64_t NextHole(uint64_t from, uint64_t end) const;
  uint64_t blocks() const { return entries_.size(); }

  // Has the map remember from now on which entries change.
  void Track() { tracks_ = true; }
  // Adds records of the entries that have changed since the last call, or of all.
  void Record(uint64_t number, bool everything, RecordWriter& records);
  // Takes the blocks of an empty map. Returns false when one of them is not free.
  bool Restore(const std::map<uint64_t, BlockState>& entries, Blocks& blocks);

 private:
  using Entry = BlockState;
  static_assert(Blocks::kPages == 16);

  void Changed(uint64_t index) {
    if (tracks_) changed_.insert(index);
  }

  std::map<uint64_t, Entry> entries_;  // by offset in the file / Blocks::kBytes
  bool tracks_ = false;
  std::set<uint64_t> changed_;
};

}  // namespace rocegw::far
