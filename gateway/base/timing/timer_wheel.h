// SPDX-License-Identifier: Apache-2.0
// Hashed timer wheel of one worker: coarse deadlines for many objects, O(1) to arm. Entries name
// their owner by a slot, not a pointer, so an object may be destroyed while its timer is pending.
// Arming is lazy: an owner that moves its deadline later leaves its entry and re-arms when it fires
// early. Not thread-safe: belongs to one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"

namespace rocegw {

class TimerWheel {
 public:
  // Deadlines are rounded up to a multiple of `slot` after `start`. The wheel spans 4096 slots;
  // entries beyond wait in a list and enter the wheel when they are close enough.
  explicit TimerWheel(TimePoint start, Duration slot = Microseconds(64));

  // Arms a timer. A deadline in the past is due at the next Advance; kNever is ignored.
  void Arm(WorkerObject owner, TimePoint deadline);

  // Appends the owners whose (rounded) deadline has passed to `due`, in no particular order. The
  // caller checks whether they still matter. A `now` before that of an earlier call yields nothing
  // new.
  void Advance(TimePoint now, std::vector<WorkerObject>& due);

  // Returns the earliest time at which Advance may yield something; kNever when empty. Advance at
  // that time makes progress, so a worker that sleeps until then does not spin.
  TimePoint NextDeadline() const;

  size_t size() const { return size_; }

 private:
  struct FarEntry {
    WorkerObject owner;
    uint64_t tick;
  };
  static constexpr size_t kSlots = 4096;
  static constexpr size_t kWords = kSlots / 64;
  static_assert(kWords == 64, "occupied_words_ has one bit for each word");

  uint64_t TickAfter(TimePoint deadline) const;
  TimePoint TimeOf(uint64_t tick) const;
  void Insert(WorkerObject owner, uint64_t tick);
  void Drain(size_t slot, std::vector<WorkerObject>& due);
  void BringNear(std::vector<WorkerObject>& due);
  // Returns the ticks from current_tick_ to the first occupied slot; kSlots if all are empty.
  size_t FirstOccupied() const;

  TimePoint start_;
  Duration slot_;
  // All slots before it are drained; the wheel holds [current_tick_, current_tick_ + kSlots).
  uint64_t current_tick_ = 0;
  size_t size_ = 0;
  uint64_t occupied_words_ = 0;  // bit for each word of occupied_ that is not zero
  std::array<uint64_t, kWords> occupied_{};
  std::array<std::vector<WorkerObject>, kSlots> slots_;
  std::vector<FarEntry> far_;
  uint64_t far_earliest_ = UINT64_MAX;
};

}  // namespace rocegw
