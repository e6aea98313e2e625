// SPDX-License-Identifier: Apache-2.0
// Event queue for virtual time. Handlers enter events; the queue calls them in order of time, and
// at equal times in order of entry, so that runs repeat exactly. Events cannot be cancelled: the
// handler recognises an obsolete event by its argument.
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
  // Not 0, because in some places a zero time means "never set".
  static constexpr TimePoint kStart{1'000'000'000};

  TimePoint now() const { return now_; }
  // Enters an event. A time in the past means now.
  void At(TimePoint when, EventHandler& handler, uint64_t argument = 0);

  // Runs the next event unless it is after `end`, and sets the time to that event's. Without such
  // an event, the time does not change.
  bool RunOne(TimePoint end = kNever);
  // Runs all events up to `end` and sets the time to `end`.
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
