// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/window/range_map.h"

#include <algorithm>
#include <iterator>

namespace rocegw::far {

std::optional<uint64_t> RangeMap::Allocate(uint64_t bytes) {
  for (const auto& [begin, entry] : ranges_) {
    if (entry.use != Use::kFree || entry.end - begin < bytes) continue;
    const uint64_t offset = begin;
    Set(offset, offset + bytes, Use::kGiven);
    return offset;
  }
  return std::nullopt;
}

void RangeMap::Set(uint64_t begin, uint64_t end, Use use) {
  SplitAt(begin);
  SplitAt(end);
  const auto first = ranges_.find(begin);
  auto behind = std::next(first);
  while (behind != ranges_.end() && behind->first < end) behind = ranges_.erase(behind);
  first->second = {end, use};
  JoinAt(end);
  JoinAt(begin);
}

std::vector<RangeMap::Range> RangeMap::Get(uint64_t begin, uint64_t end) const {
  std::vector<Range> found;
  auto range = std::prev(ranges_.upper_bound(begin));
  for (; range != ranges_.end() && range->first < end; ++range) {
    found.push_back(
        {std::max(begin, range->first), std::min(end, range->second.end), range->second.use});
  }
  return found;
}

uint64_t RangeMap::Bytes(Use use) const {
  uint64_t bytes = 0;
  for (const auto& [begin, entry] : ranges_) bytes += entry.use == use ? entry.end - begin : 0;
  return bytes;
}

// Makes a range begin at the offset, unless it is the end of all.
void RangeMap::SplitAt(uint64_t offset) {
  const auto range = std::prev(ranges_.upper_bound(offset));
  if (range->first == offset || offset >= range->second.end) return;
  ranges_[offset] = range->second;
  range->second.end = offset;
}

// Joins the range that begins there with the one before it, when their uses are the same.
void RangeMap::JoinAt(uint64_t offset) {
  const auto range = ranges_.find(offset);
  if (range == ranges_.end() || range == ranges_.begin()) return;
  const auto before = std::prev(range);
  if (before->second.use != range->second.use) return;
  before->second.end = range->second.end;
  ranges_.erase(range);
}

}  // namespace rocegw::far
