// SPDX-License-Identifier: Apache-2.0
// Pages of a window onto remote memory: which are resident, which are dirty, what is read next and
// what is evicted. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace rocegw::far {

class ResidentPages {
 public:
  static constexpr uint64_t kMostReadAhead = 64;  // pages of one read

  enum class State : uint8_t { kAbsent, kReading, kClean, kDirty, kLost };

  explicit ResidentPages(uint64_t pages) : states_(pages, State::kAbsent) {}

  State state(uint64_t page) const { return states_[page]; }
  uint64_t count() const { return states_.size(); }
  // Resident pages and pages that are being read.
  uint64_t used() const { return used_; }

  // A thread waits for the absent page. Returns how many pages to read from there on, all of them
  // absent: one, or more and more while faults are sequential. The pages are being read from then
  // on.
  uint64_t Fetch(uint64_t page);
  void Arrived(uint64_t page, bool dirty);
  void Lost(uint64_t page);
  // A read did not start: the page is absent again.
  void Abandoned(uint64_t page);

  // Takes up to `most` resident pages to evict, those that arrived first, in ascending order. The
  // caller evicts or keeps each.
  std::vector<uint64_t> TakeVictims(size_t most);
  void Evicted(uint64_t page);
  void Kept(uint64_t page) { arrivals_.push_back(page); }

  void Dirtied(uint64_t page) { states_[page] = State::kDirty; }
  void Cleaned(uint64_t page) { states_[page] = State::kClean; }
  // Up to `most` dirty pages at or behind `from`, in ascending order.
  std::vector<uint64_t> NextDirty(uint64_t from, size_t most) const;

 private:
  std::vector<State> states_;
  std::deque<uint64_t> arrivals_;  // resident pages, the first that arrived in front
  uint64_t used_ = 0;
  uint64_t expected_ = 0;  // page behind the last read: a fault there is sequential
  uint64_t read_ahead_ = 1;
};

}  // namespace rocegw::far
