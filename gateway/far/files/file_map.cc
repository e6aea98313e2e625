// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/file_map.h"

#include <algorithm>

namespace rocegw::far {
namespace {

// Adds a stretch, to the last run where it continues that.
void Append(std::vector<Run>& runs, const Run& next) {
  if (!runs.empty()) {
    Run& last = runs.back();
    const bool both_holes = last.space == Run::kHole && next.space == Run::kHole;
    const bool neighbours = last.space != Run::kHole && last.space + last.length == next.space;
    if (both_holes || neighbours) {
      last.length += next.length;
      return;
    }
  }
  runs.push_back(next);
}

uint16_t Bit(uint64_t offset) {
  return static_cast<uint16_t>(1u << (offset % Blocks::kBytes / Blocks::kPageBytes));
}

}  // namespace

std::vector<Run> FileMap::RunsToRead(uint64_t begin, uint64_t end) const {
  std::vector<Run> runs;
  for (uint64_t at = begin; at < end;) {
    const uint64_t behind_block = std::min(end, (at / Blocks::kBytes + 1) * Blocks::kBytes);
    const auto found = entries_.find(at / Blocks::kBytes);
    if (found == entries_.end()) {
      Append(runs, {at, behind_block - at, Run::kHole});
      at = behind_block;
    }
    while (at < behind_block) {
      const Entry& entry = found->second;
      const uint64_t behind =
          std::min(behind_block, (at / Blocks::kPageBytes + 1) * Blocks::kPageBytes);
      const bool written = (entry.written & Bit(at)) != 0;
      Append(runs, {at, behind - at,
                    written ? entry.block * Blocks::kBytes + at % Blocks::kBytes : Run::kHole});
      at = behind;
    }
  }
  return runs;
}

std::vector<Run> FileMap::RunsToWrite(uint64_t begin, uint64_t end) const {
  std::vector<Run> runs;
  for (uint64_t at = begin; at < end;) {
    const uint64_t behind = std::min(end, (at / Blocks::kBytes + 1) * Blocks::kBytes);
    const Entry& entry = entries_.at(at / Blocks::kBytes);
    Append(runs, {at, behind - at, entry.block * Blocks::kBytes + at % Blocks::kBytes});
    at = behind;
  }
  return runs;
}

bool FileMap::Allocate(uint64_t begin, uint64_t end, Blocks& blocks) {
  const uint64_t first = begin / Blocks::kBytes;
  const uint64_t last = (end - 1) / Blocks::kBytes;
  uint64_t missing = last - first + 1;
  for (auto each = entries_.lower_bound(first); each != entries_.end() && each->first <= last;
       ++each) {
    missing--;
  }
  if (missing > blocks.free_count()) return false;
  for (uint64_t number = first; number <= last && missing != 0; number++) {
    const auto behind = entries_.lower_bound(number);
    if (behind != entries_.end() && behind->first == number) continue;
    uint32_t wanted = 0;
    if (behind != entries_.begin()) wanted = std::prev(behind)->second.block + 1;
    entries_.emplace_hint(behind, number, Entry{*blocks.Take(wanted), 0});
    Changed(number);
    missing--;
  }
  return true;
}

FileMap::Range FileMap::Padded(uint64_t begin, uint64_t end) const {
  Range range{begin, end};
  if (begin % Blocks::kPageBytes != 0 && !IsWritten(begin))
    range.begin = begin / Blocks::kPageBytes * Blocks::kPageBytes;
  if (end % Blocks::kPageBytes != 0 && !IsWritten(end - 1))
    range.end = (end / Blocks::kPageBytes + 1) * Blocks::kPageBytes;
  return range;
}

bool FileMap::IsWritten(uint64_t offset) const {
  const auto found = entries_.find(offset / Blocks::kBytes);
  return found != entries_.end() && (found->second.written & Bit(offset)) != 0;
}

void FileMap::MarkWritten(uint64_t begin, uint64_t end) {
  for (uint64_t at = begin; at < end; at = (at / Blocks::kPageBytes + 1) * Blocks::kPageBytes) {
    uint16_t& written = entries_.at(at / Blocks::kBytes).written;
    if ((written & Bit(at)) == 0) Changed(at / Blocks::kBytes);
    written |= Bit(at);
  }
}

void FileMap::Discard(uint64_t begin, uint64_t end, Blocks& blocks) {
  auto each = entries_.lower_bound(begin / Blocks::kBytes);
  while (each != entries_.end() && each->first * Blocks::kBytes < end) {
    const uint64_t start = each->first * Blocks::kBytes;
    Changed(each->first);
    const uint64_t from = std::max(begin, start);
    const uint64_t to = std::min(end, start + Blocks::kBytes);
    for (uint64_t at = from; at < to; at += Blocks::kPageBytes) {
      each->second.written &= static_cast<uint16_t>(~Bit(at));
    }
    if (from < to && each->second.written == 0) {
      blocks.Free(each->second.block);
      each = entries_.erase(each);
    } else {
      ++each;
    }
  }
}

void FileMap::Record(uint64_t number, bool everything, RecordWriter& records) {
  if (everything) {
    for (const auto& [index, entry] : entries_) records.Block(number, index, &entry);
  } else {
    for (const uint64_t index : changed_) {
      const auto found = entries_.find(index);
      records.Block(number, index, found != entries_.end() ? &found->second : nullptr);
    }
  }
  changed_.clear();
}

bool FileMap::Restore(const std::map<uint64_t, BlockState>& entries, Blocks& blocks) {
  for (const auto& [index, entry] : entries) {
    if (!blocks.TakeExactly(entry.block)) return false;
    entries_[index] = entry;
  }
  return true;
}

uint64_t FileMap::NextData(uint64_t from, uint64_t end) const {
  for (auto each = entries_.lower_bound(from / Blocks::kBytes); each != entries_.end(); ++each) {
    const uint64_t start = each->first * Blocks::kBytes;
    for (uint64_t at = std::max(from, start); at < start + Blocks::kBytes;
         at = (at / Blocks::kPageBytes + 1) * Blocks::kPageBytes) {
      if (at >= end) return end;
      if ((each->second.written & Bit(at)) != 0) return at;
    }
  }
  return end;
}

uint64_t FileMap::NextHole(uint64_t from, uint64_t end) const {
  uint64_t at = from;
  while (at < end && IsWritten(at)) at = (at / Blocks::kPageBytes + 1) * Blocks::kPageBytes;
  return std::min(at, end);
}

}  // namespace rocegw::far
