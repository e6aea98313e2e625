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

  enum class State : uint8_t {
    kAbsent,
    kReading,
    kClean,
    kDirty,
    kEvicting,  // taken out of the window, and being written back
    kLost,
    kHere,  // not of the window any more: memory of this host
  };

  // `stored`: the donors have the content of all pages. Otherwise absent pages are zero until they
  // were written back.
  explicit ResidentPages(uint64_t pages, bool stored = true)
      : states_(pages, State::kAbsent), stored_(pages, stored), arrived_(pages, 0) {}

  State state(uint64_t page) const { return states_[page]; }
  uint64_t count() const { return states_.size(); }
  // Whether the donors have the content of an absent page, which is zero otherwise.
  bool stored(uint64_t page) const { return stored_[page]; }
  bool IsResident(uint64_t page) const {
    return states_[page] == State::kClean || states_[page] == State::kDirty;
  }
  // Whether the page will change its state without anybody asking for it.
  bool IsMoving(uint64_t page) const {
    return states_[page] == State::kReading || states_[page] == State::kEvicting;
  }
  // Resident pages, and pages that are being read or evicted.
  uint64_t used() const { return used_; }

  // A thread waits for the absent page. Returns how many pages to read from there on, all of them
  // absent and stored, or all not: one, or more and more while faults are sequential. The pages are
  // being read from then on.
  uint64_t Fetch(uint64_t page);
  void Arrived(uint64_t page, bool dirty);
  void Lost(uint64_t page);
  // A read did not start: the page is absent again.
  void Abandoned(uint64_t page);

  // Takes up to `most` resident pages to evict, those that arrived first, in ascending order. The
  // caller evicts or keeps each, unless it was discarded meanwhile. A dirty page that is evicted
  // was written back.
  std::vector<uint64_t> TakeVictims(size_t most);
  void Evicting(uint64_t page) { states_[page] = State::kEvicting; }
  void Evicted(uint64_t page);
  void Kept(uint64_t page) { Queue(page); }
  // The page could not be written back, and is in the window again.
  void Returned(uint64_t page) {
    states_[page] = State::kDirty;
    Queue(page);
  }
  // The page, which is not moving, is absent and zero from now on. Pages that have left the window
  // are not concerned.
  void Discarded(uint64_t page);

  // Pages that leave the window. Returns how many pages are read first, at most `most` before
  // `end`: adjacent ones that are absent and stored. They are being read from then on. 0: the page
  // may leave.
  uint64_t FetchStored(uint64_t page, uint64_t end, uint64_t most);
  // The page, which is not being evicted, has left the window: it is not read, and not evicted.
  void Left(uint64_t page);
  // The page is in the window again, absent and zero. Pages that did not leave stay as they are.
  void Rejoined(uint64_t page);

  void Dirtied(uint64_t page) { states_[page] = State::kDirty; }
  // The page was written back.
  void Cleaned(uint64_t page) {
    states_[page] = State::kClean;
    stored_[page] = true;
  }
  // Up to `most` dirty pages at or behind `from`, in ascending order.
  std::vector<uint64_t> NextDirty(uint64_t from, size_t most) const;

 private:
  struct Arrival {
    uint64_t page;
    uint32_t number;  // valid if it is the page's last one
  };
  void Queue(uint64_t page) { arrivals_.push_back({page, ++arrived_[page]}); }

  std::vector<State> states_;
  std::vector<bool> stored_;
  std::vector<uint32_t> arrived_;  // by page: number of its last arrival
  std::deque<Arrival> arrivals_;   // the first that arrived in front; with those of discarded pages
  uint64_t used_ = 0;
  uint64_t expected_ = 0;  // page behind the last read: a fault there is sequential
  uint64_t read_ahead_ = 1;
};

}  // namespace rocegw::far
