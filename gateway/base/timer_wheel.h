// SPDX-License-Identifier: Apache-2.0
// Hashed timer wheel of one worker: coarse deadlines for many objects, O(1) to arm. Entries name a slot handle, not a
// pointer, so an object may die with its timer pending. Arming is lazy: an owner that moves its deadline later leaves its
// entry where it is and re-arms when it fires early. Not thread safe: belongs to one worker.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"

namespace rocegw {

class TimerWheel {
 public:
  // Deadlines are rounded up to the slot; the wheel spans slot_count slots and longer ones stay for further rounds.
  explicit TimerWheel(TimePoint start, Duration slot = Microseconds(64));

  void Arm(SlotHandle handle, TimePoint deadline);

  // Appends the handles whose deadline has passed to `due`. The caller decides whether they are still wanted.
  void Advance(TimePoint now, std::vector<SlotHandle>& due);

  // The earliest time at which Advance may yield something; kNever when empty. Rounded to the slot, never late by more.
  TimePoint NextDeadline() const;

  size_t size() const { return size_; }

 private:
  struct Entry {
    SlotHandle handle;
    TimePoint deadline;
  };
  static constexpr size_t kSlots = 4096;

  uint64_t TickOf(TimePoint t) const { return static_cast<uint64_t>((t.ns - start_.ns) / slot_.ns); }

  TimePoint start_;
  Duration slot_;
  uint64_t current_tick_ = 0;  // every slot before it has been visited
  size_t size_ = 0;
  std::array<std::vector<Entry>, kSlots> slots_;
};

}  // namespace rocegw
