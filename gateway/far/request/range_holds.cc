// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/request/range_holds.h"

#include <iterator>

namespace rocegw::far {

bool RangeHolds::IsFree(uint64_t begin, uint64_t end) const {
  const auto next = ends_.lower_bound(begin);
  if (next != ends_.end() && next->first < end) return false;
  return next == ends_.begin() || std::prev(next)->second <= begin;
}

bool RangeHolds::Hold(uint64_t begin, uint64_t end) {
  if (!IsFree(begin, end)) return false;
  ends_.emplace(begin, end);
  return true;
}

}  // namespace rocegw::far
