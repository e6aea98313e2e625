// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/timing/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace rocegw {

TimerWheel::TimerWheel(TimePoint start, Duration slot) : start_(start), slot_(slot) {}

uint64_t TimerWheel::TickAfter(TimePoint deadline) const {
  if (deadline <= start_) return 0;
  // Unsigned, because the distance from a negative start to a far deadline may exceed int64_t.
  const uint64_t distance = static_cast<uint64_t>(deadline.ns) - static_cast<uint64_t>(start_.ns);
  const auto width = static_cast<uint64_t>(slot_.ns);
  return distance / width + (distance % width != 0 ? 1 : 0);
}

TimePoint TimerWheel::TimeOf(uint64_t tick) const {
  const auto width = static_cast<uint64_t>(slot_.ns);
  const auto most = static_cast<uint64_t>(kNever.ns - 1) - static_cast<uint64_t>(start_.ns);
  const uint64_t distance = tick > most / width ? most : tick * width;
  return TimePoint{static_cast<int64_t>(static_cast<uint64_t>(start_.ns) + distance)};
}

void TimerWheel::Insert(WorkerObject owner, uint64_t tick) {
  const size_t slot = tick % kSlots;
  slots_[slot].push_back(owner);
  occupied_[slot / 64] |= uint64_t{1} << (slot % 64);
  occupied_words_ |= uint64_t{1} << (slot / 64);
}

void TimerWheel::Arm(WorkerObject owner, TimePoint deadline) {
  if (deadline == kNever) return;
  const uint64_t tick = std::max(TickAfter(deadline), current_tick_);
  ++size_;
  if (tick - current_tick_ < kSlots) {
    Insert(owner, tick);
  } else {
    far_.push_back({owner, tick});
    far_earliest_ = std::min(far_earliest_, tick);
  }
}

void TimerWheel::Drain(size_t slot, std::vector<WorkerObject>& due) {
  std::vector<WorkerObject>& owners = slots_[slot];
  due.insert(due.end(), owners.begin(), owners.end());
  size_ -= owners.size();
  owners.clear();
  occupied_[slot / 64] &= ~(uint64_t{1} << (slot % 64));
  if (occupied_[slot / 64] == 0) occupied_words_ &= ~(uint64_t{1} << (slot / 64));
}

size_t TimerWheel::FirstOccupied() const {
  const size_t start = current_tick_ % kSlots;
  const size_t current = start / 64;
  const uint64_t later = occupied_[current] >> (start % 64);
  if (later != 0) return static_cast<size_t>(std::countr_zero(later));
  // The current word comes last: only slots before `start` are left in it.
  const uint64_t words = std::rotr(occupied_words_, static_cast<int>(current + 1));
  if (words == 0) return kSlots;
  const size_t word = (current + 1 + static_cast<size_t>(std::countr_zero(words))) % kWords;
  const size_t slot = word * 64 + static_cast<size_t>(std::countr_zero(occupied_[word]));
  return (slot + kSlots - start) % kSlots;
}

void TimerWheel::BringNear(std::vector<WorkerObject>& due) {
  far_earliest_ = UINT64_MAX;
  for (size_t i = 0; i < far_.size();) {
    const FarEntry entry = far_[i];
    if (entry.tick >= current_tick_ && entry.tick - current_tick_ >= kSlots) {
      far_earliest_ = std::min(far_earliest_, entry.tick);
      ++i;
      continue;
    }
    if (entry.tick <= current_tick_) {
      due.push_back(entry.owner);
      --size_;
    } else {
      Insert(entry.owner, entry.tick);
    }
    far_[i] = far_.back();
    far_.pop_back();
  }
}

void TimerWheel::Advance(TimePoint now, std::vector<WorkerObject>& due) {
  if (now < start_) return;
  const uint64_t target = (static_cast<uint64_t>(now.ns) - static_cast<uint64_t>(start_.ns)) /
                          static_cast<uint64_t>(slot_.ns);
  if (target < current_tick_) return;
  const uint64_t ahead = target - current_tick_;
  for (size_t first = FirstOccupied(); first < kSlots && first <= ahead; first = FirstOccupied()) {
    Drain((current_tick_ + first) % kSlots, due);
  }
  current_tick_ = target;
  // Half a turn early, so that far entries are scanned at most twice per turn.
  if (far_earliest_ < target + kSlots / 2) BringNear(due);
}

TimePoint TimerWheel::NextDeadline() const {
  if (size_ == 0) return kNever;
  const size_t first = FirstOccupied();
  uint64_t tick = far_earliest_;
  if (first < kSlots) tick = std::min(tick, current_tick_ + first);
  return TimeOf(tick);
}

}  // namespace rocegw
