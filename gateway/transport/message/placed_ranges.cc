// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message/placed_ranges.h"

#include <algorithm>
#include <iterator>

namespace rocegw::transport {

PlacedRanges::Ranges::const_iterator PlacedRanges::FirstBehind(uint64_t address) const {
  auto at = ranges_.upper_bound(address);
  if (at != ranges_.begin() && std::prev(at)->second.end > address) --at;
  return at;
}

bool PlacedRanges::PlacedAfter(uint64_t message, ByteRange range) const {
  for (auto at = FirstBehind(range.begin); at != ranges_.end() && at->first < range.end; ++at)
    if (at->second.message > message) return true;
  return false;
}

bool PlacedRanges::Place(uint64_t message, ByteRange range, bool record,
                         std::vector<ByteRange>& pieces) {
  pieces.clear();
  const auto first = FirstBehind(range.begin);
  auto last = first;
  size_t overlapped = 0;
  for (; last != ranges_.end() && last->first < range.end; ++last) {
    if (++overlapped > MostOverlapped(range.end - range.begin)) return false;
  }
  // With a record: pieces before, between and behind newer ranges, and both ends of an older one.
  // Without: an older range falls into two.
  const size_t more = record ? overlapped + 2 : std::min<size_t>(overlapped, 1);
  if (ranges_.size() + more > kMost) return false;
  uint64_t from = range.begin;
  for (auto at = first; at != last;) {
    const uint64_t begin = at->first;
    const Placed placed = at->second;
    if (placed.message > message) {
      if (begin > from) pieces.push_back({from, begin});
      from = placed.end;
      ++at;
      continue;
    }
    at = ranges_.erase(at);
    if (begin < range.begin) ranges_.emplace_hint(at, begin, Placed{range.begin, placed.message});
    if (placed.end > range.end)
      ranges_.emplace_hint(at, range.end, Placed{placed.end, placed.message});
  }
  if (from < range.end) pieces.push_back({from, range.end});
  if (!record) return true;
  for (const ByteRange& piece : pieces) Add(message, piece);
  return true;
}

// Adds a range that no other overlaps. Ranges of one message that meet become one.
void PlacedRanges::Add(uint64_t message, ByteRange range) {
  auto next = ranges_.lower_bound(range.begin);
  auto own = ranges_.end();
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->second.end == range.begin && before->second.message == message) own = before;
  }
  if (own == ranges_.end()) own = ranges_.emplace_hint(next, range.begin, Placed{0, message});
  own->second.end = range.end;
  if (next == ranges_.end() || next->first != range.end || next->second.message != message) return;
  own->second.end = next->second.end;
  ranges_.erase(next);
}

void PlacedRanges::Forget(uint64_t message, ByteRange range) {
  constexpr int kMostSteps = 64;
  auto at = ranges_.lower_bound(range.begin);
  for (int step = 0; step < kMostSteps && at != ranges_.end() && at->first < range.end; ++step)
    at = at->second.message == message ? ranges_.erase(at) : std::next(at);
}

}  // namespace rocegw::transport
