// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/timer_wheel.h"

#include <algorithm>

namespace rocegw {

TimerWheel::TimerWheel(TimePoint start, Duration slot) : start_(start), slot_(slot) {}

void TimerWheel::Arm(SlotHandle handle, TimePoint deadline) {
  if (deadline == kNever) return;
  const uint64_t tick = deadline <= start_ ? current_tick_ : std::max(TickOf(deadline) + 1, current_tick_);
  slots_[tick % kSlots].push_back({handle, deadline});
  ++size_;
}

void TimerWheel::Advance(TimePoint now, std::vector<SlotHandle>& due) {
  if (now < start_) return;
  const uint64_t target = TickOf(now);
  if (size_ == 0) {
    current_tick_ = std::max(current_tick_, target);
    return;
  }
  const uint64_t rounds = target >= current_tick_ ? std::min<uint64_t>(target - current_tick_ + 1, kSlots) : 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    auto& entries = slots_[(current_tick_ + i) % kSlots];
    for (size_t k = 0; k < entries.size();) {
      if (entries[k].deadline <= now) {
        due.push_back(entries[k].handle);
        entries[k] = entries.back();
        entries.pop_back();
        --size_;
      } else {
        ++k;
      }
    }
  }
  current_tick_ = std::max(current_tick_, target);
}

TimePoint TimerWheel::NextDeadline() const {
  if (size_ == 0) return kNever;
  TimePoint best = kNever;
  for (uint64_t i = 0; i < kSlots; ++i) {
    for (const Entry& e : slots_[(current_tick_ + i) % kSlots]) best = Earlier(best, e.deadline);
    // Later slots hold later deadlines, except those that wait for another round of the wheel.
    if (best != kNever && best.ns <= start_.ns + static_cast<int64_t>(current_tick_ + i + 1) * slot_.ns) break;
  }
  return best;
}

}  // namespace rocegw
