// SPDX-License-Identifier: Apache-2.0
// Virtual time. Whoever wants to act at a time enters an event; the queue calls in the order of
// times, and of equal times in the order of entering, so that a run is repeated exactly. Nothing is
// taken out again: who no longer wants an event recognises that by its argument when it comes.
//
// A 4-ary heap of 32-byte entries. Owned by one Network; one thread. Times are nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/base/time.h"

namespace rocegw::sim {

class EventHandler {
 public:
  virtual void OnEvent(uint64_t argument) = 0;

 protected:
  ~EventHandler() = default;
};

class EventQueue {
 public:
  // Not 0: zero times mean "never set" in places.
  static constexpr TimePoint kStart{1'000'000'000};

  TimePoint now() const { return now_; }
  // A time that has passed is now.
  void At(TimePoint when, EventHandler& handler, uint64_t argument = 0);

  // The next event, if there is one and it is not after `end`. Time stands at the event then; it
  // does not move when there is none.
  bool RunOne(TimePoint end = kNever);
  // Everything up to `end`, where time stands then.
  void RunUntil(TimePoint end);

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  uint64_t fired() const { return fired_; }

 private:
  struct Entry {
    int64_t when;
    uint64_t order;
    EventHandler* handler;
    uint64_t argument;
  };
  static bool Before(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when < b.when : a.order < b.order;
  }
  void Pop();

  TimePoint now_ = kStart;
  uint64_t next_order_ = 0;
  uint64_t fired_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace rocegw::sim
