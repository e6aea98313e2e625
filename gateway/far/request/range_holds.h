// SPDX-License-Identifier: Apache-2.0
// Byte ranges that a write or a copy to a new replica has in flight. Two of them never overlap:
// replicas would otherwise execute overlapping writes in different orders and end up different. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace rocegw::far {

class RangeHolds {
 public:
  // Whether [begin, end) overlaps no held range.
  bool IsFree(uint64_t begin, uint64_t end) const;
  // Holds [begin, end) unless it overlaps a held range.
  bool Hold(uint64_t begin, uint64_t end);
  // Releases the range that was held with this begin.
  void Release(uint64_t begin) { ends_.erase(begin); }
  size_t count() const { return ends_.size(); }

 private:
  std::map<uint64_t, uint64_t> ends_;  // begin to end
};

}  // namespace rocegw::far
