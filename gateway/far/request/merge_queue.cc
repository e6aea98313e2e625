// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/request/merge_queue.h"

#include <algorithm>

namespace rocegw::far {
namespace {

bool Overlap(const Part& a, const Part& b) { return a.offset < b.end() && b.offset < a.end(); }

}  // namespace

uint64_t Plan::staged_bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.staged ? part.length : 0;
  return bytes;
}

uint32_t Plan::segments() const {
  uint32_t count = 0;
  bool staged_before = false;
  for (const Part& part : parts) {
    if (!part.staged || !staged_before) count++;
    staged_before = part.staged;
  }
  return count;
}

bool MergeQueue::Extend(Plan& plan, const Part& part) const {
  const bool behind = part.offset == plan.end();
  if (!behind && part.end() != plan.offset()) return false;
  if (part.offset / limits_.slab_bytes != plan.offset() / limits_.slab_bytes) return false;
  if (plan.length() + part.length > limits_.most_bytes) return false;
  const Part& neighbour = behind ? plan.parts.back() : plan.parts.front();
  if (plan.segments() + (part.staged && neighbour.staged ? 0 : 1) > limits_.most_segments) {
    return false;
  }
  plan.parts.insert(behind ? plan.parts.end() : plan.parts.begin(), part);
  return true;
}

std::optional<Plan> MergeQueue::Take(RangeHolds* holds) {
  if (parts_.empty()) return std::nullopt;
  const Part& first = parts_.front();
  if (holds != nullptr && !holds->IsFree(first.offset, first.end())) return std::nullopt;
  Plan plan;
  plan.parts.push_back(first);
  parts_.pop_front();
  size_t at = 0;
  for (uint32_t looked = 0; limits_.merge && looked < limits_.look_ahead && at < parts_.size();
       looked++) {
    const Part& part = parts_[at];
    if (part.offset != plan.end() && part.end() != plan.offset()) {
      at++;
      continue;
    }
    // A write must not overtake an earlier write of the same bytes, held or still in the queue.
    const bool in_order =
        holds == nullptr ||
        (holds->IsFree(part.offset, part.end()) &&
         std::none_of(parts_.begin(), parts_.begin() + static_cast<ptrdiff_t>(at),
                      [&part](const Part& earlier) { return Overlap(earlier, part); }));
    if (in_order && Extend(plan, part)) {
      parts_.erase(parts_.begin() + static_cast<ptrdiff_t>(at));
      at = 0;  // a part that was passed over may be adjacent now
    } else {
      at++;
    }
  }
  if (holds != nullptr) holds->Hold(plan.offset(), plan.end());
  return plan;
}

void MergeQueue::PutBack(const Plan& plan) {
  parts_.insert(parts_.begin(), plan.parts.begin(), plan.parts.end());
}

void MergeQueue::StageAll() {
  for (Part& part : parts_) part.staged = true;
}

}  // namespace rocegw::far
