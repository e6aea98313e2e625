// SPDX-License-Identifier: Apache-2.0
// Merge queue of one direction (RDMAbox IV-A): parts of requests wait here until they are sent, and
// adjacent ones leave as one RDMA operation. Nothing is delayed for the sake of merging: only parts
// that are in the queue at the same time are merged. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "gateway/far/request/part.h"
#include "gateway/far/request/range_holds.h"

namespace rocegw::far {

struct MergeLimits {
  bool merge = true;               // false: each part is an operation of its own
  uint64_t slab_bytes = 64 << 20;  // an operation stays within one slab
  uint64_t most_bytes = 1 << 20;   // largest operation
  uint32_t most_segments = 16;     // scatter/gather elements of one operation
  uint32_t look_ahead = 64;        // parts that are compared with the first one
};

// Parts that are adjacent in the session's space, in ascending order: one RDMA operation.
struct Plan {
  std::vector<Part> parts;

  uint64_t offset() const { return parts.front().offset; }
  uint64_t end() const { return parts.back().end(); }
  uint64_t length() const { return end() - offset(); }
  uint64_t staged_bytes() const;
  // Scatter/gather elements: staged neighbours lie in one stretch of the staging buffer.
  uint32_t segments() const;
};

class MergeQueue {
 public:
  explicit MergeQueue(MergeLimits limits) : limits_(limits) {}

  void Push(const Part& part) { parts_.push_back(part); }
  // Takes the first part and those that can be merged with it. With `holds` (writes), the plan's
  // range is held; nullopt when the first part overlaps a held range, or the queue is empty.
  std::optional<Plan> Take(RangeHolds* holds);
  // Returns the parts of a plan that could not be sent to the front of the queue. The caller
  // releases the plan's hold.
  void PutBack(const Plan& plan);

  // Stages all parts: registrations of their buffers are of no use any more.
  void StageAll();

  // The part that the next plan begins with; the queue is not empty.
  const Part& front() const { return parts_.front(); }
  bool empty() const { return parts_.empty(); }
  size_t size() const { return parts_.size(); }

 private:
  bool Extend(Plan& plan, const Part& part) const;

  const MergeLimits limits_;
  std::deque<Part> parts_;
};

}  // namespace rocegw::far
