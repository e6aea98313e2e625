// SPDX-License-Identifier: Apache-2.0
// Pages of a window onto remote memory: which are resident, which are dirty, what is read next and
// what is evicted. Eviction is by use: a page that arrived long ago becomes inactive, which means
// that it is kept outside the window for a while. When a thread touches it, the page is active
// again, as if it had just arrived; the pages that were inactive for longest are evicted. Not
// thread-safe.
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
    kInactiveClean,  // kept outside the window
    kInactiveDirty,
    kEvicting,  // taken out of the window, and being written back
    kLost,
    kHere,  // not of the window any more: memory of this host
  };

  // `stored`: the donors have the content of all pages. Otherwise absent pages are zero until they
  // were written back.
  explicit ResidentPages(uint64_t pages, bool stored = true)
      : states_(pages, State::kAbsent),
        stored_(pages, stored),
        arrived_(pages, 0),
        places_(pages, 0) {}

  State state(uint64_t page) const { return states_[page]; }
  uint64_t count() const { return states_.size(); }
  // Whether the donors have the content of an absent page, which is zero otherwise.
  bool stored(uint64_t page) const { return stored_[page]; }
  bool IsResident(uint64_t page) const {
    return states_[page] == State::kClean || states_[page] == State::kDirty;
  }
  bool IsInactive(uint64_t page) const {
    return states_[page] == State::kInactiveClean || states_[page] == State::kInactiveDirty;
  }
  bool IsDirty(uint64_t page) const {
    return states_[page] == State::kDirty || states_[page] == State::kInactiveDirty;
  }
  // Whether the page will change its state without anybody asking for it.
  bool IsMoving(uint64_t page) const {
    return states_[page] == State::kReading || states_[page] == State::kEvicting;
  }
  // Resident and inactive pages, and pages that are being read or evicted.
  uint64_t used() const { return used_; }

  // A thread waits for the absent page. Returns how many pages to read from there on, all of them
  // absent and stored, or all not: one, or more and more while faults are sequential. The pages are
  // being read from then on.
  uint64_t Fetch(uint64_t page);
  void Arrived(uint64_t page, bool dirty);
  void Lost(uint64_t page);
  // A read did not start: the page is absent again.
  void Abandoned(uint64_t page);

  // Takes up to `most` resident pages, those that arrived or were used again first, in ascending
  // order. The caller makes each inactive, evicts or keeps it, unless it was discarded meanwhile. A
  // dirty page that is evicted was written back.
  std::vector<uint64_t> TakeVictims(size_t most);
  // The resident page is kept at a place outside the window, which the caller numbers.
  void Deactivated(uint64_t page, uint32_t place);
  uint32_t place(uint64_t page) const { return places_[page]; }
  uint64_t inactive() const { return inactive_; }
  // The inactive page is resident again, and was just used.
  void Reactivated(uint64_t page, bool dirty);
  // Takes up to `most` inactive pages, those that are inactive for longest, in ascending order. The
  // caller evicts each.
  std::vector<uint64_t> TakeInactive(size_t most);
  void Evicting(uint64_t page);
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

  void Dirtied(uint64_t page) {
    states_[page] = IsInactive(page) ? State::kInactiveDirty : State::kDirty;
  }
  // The page is being written back as it is now.
  void Cleaned(uint64_t page) {
    states_[page] = IsInactive(page) ? State::kInactiveClean : State::kClean;
    stored_[page] = true;
  }
  // Up to `most` dirty pages at or behind `from`, inactive ones too, in ascending order.
  std::vector<uint64_t> NextDirty(uint64_t from, size_t most) const;

 private:
  struct Arrival {
    uint64_t page;
    uint32_t number;  // valid if it is the page's last one
  };
  using Arrivals = std::deque<Arrival>;

  void Queue(uint64_t page) { arrivals_.push_back({page, ++arrived_[page]}); }
  // Takes the first `most` pages of the list that `is_wanted` and have not arrived again since.
  template <typename Wanted>
  std::vector<uint64_t> TakeFirst(Arrivals& from, size_t most, const Wanted& is_wanted) const;

  std::vector<State> states_;
  std::vector<bool> stored_;
  std::vector<uint32_t> arrived_;  // by page: number of its last arrival
  std::vector<uint32_t> places_;   // by page; valid of inactive ones
  Arrivals arrivals_;              // the first that arrived in front; with those of discarded pages
  Arrivals inactive_since_;
  uint64_t inactive_ = 0;
  uint64_t used_ = 0;
  uint64_t expected_ = 0;  // page behind the last read: a fault there is sequential
  uint64_t read_ahead_ = 1;
};

}  // namespace rocegw::far
