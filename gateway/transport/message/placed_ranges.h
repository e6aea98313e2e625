// SPDX-License-Identifier: Apache-2.0
// Bytes that WRITEs have placed ahead of older messages, and the newest WRITE that placed each.
// Late frames of an older WRITE must not overwrite them. Ranges of the client's address space,
// disjoint, by address. The number of ranges and the ranges that one frame may touch are bounded: a
// peer that scatters small frames costs its receiver neither memory nor time beyond that. Belongs
// to its responder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace rocegw::transport {

// Address or offset range [begin, end).
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool empty() const { return begin >= end; }
};

class PlacedRanges {
 public:
  // Limit of ranges: each message that a peer may have ahead can have one, and some can have holes.
  static constexpr size_t kMost = 8192 + 1024;
  // Limit of ranges that one frame overlaps: a frame of this many bytes may overlap as many as
  // there are words in it, as small WRITEs to one block leave them.
  static constexpr size_t MostOverlapped(uint64_t bytes) { return 64 + bytes / 8; }

  // Bytes of heap of a range, with what a tree and the allocator add.
  static constexpr size_t kHeapOfRange = 24 + 48;

  // Sets `pieces` to the parts of `range` that no message after `message` has placed, in order.
  // With `record`, notes that the message places them. Returns false, and notes nothing, if that
  // exceeds a limit.
  bool Place(uint64_t message, ByteRange range, bool record, std::vector<ByteRange>& pieces);
  // Returns true if a message after `message` has placed a byte of `range`.
  bool PlacedAfter(uint64_t message, ByteRange range) const;
  // Forgets what the message has placed in `range`. In rare cases a part stays, which does no harm.
  void Forget(uint64_t message, ByteRange range);
  // Forgets what all messages before `message` have placed.
  void ForgetBefore(uint64_t message) {
    std::erase_if(ranges_, [&](const auto& one) { return one.second.message < message; });
  }
  void clear() { ranges_.clear(); }

  bool empty() const { return ranges_.empty(); }
  size_t size() const { return ranges_.size(); }
  // Calls `visit` with each message and a range that it has placed.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [begin, placed] : ranges_) visit(placed.message, ByteRange{begin, placed.end});
  }

 private:
  struct Placed {
    uint64_t end = 0;
    uint64_t message = 0;
  };
  using Ranges = std::map<uint64_t, Placed>;  // by begin

  // Returns the first range that ends behind `address`.
  Ranges::const_iterator FirstBehind(uint64_t address) const;
  void Add(uint64_t message, ByteRange range);

  static_assert(sizeof(std::pair<const uint64_t, Placed>) == 24);

  Ranges ranges_;
};

}  // namespace rocegw::transport
