// SPDX-License-Identifier: Apache-2.0
// Exact deadlines of the connection manager's objects, in order. An object keeps its own deadline
// beside itself and has at most one entry here; moving or clearing it takes the entry along, so
// nothing stale is left behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "gateway/base/time.h"

namespace rocegw::cm {

struct DeadlineKey {
  enum class Kind : uint8_t { kConnection, kId };
  Kind kind = Kind::kConnection;
  uint64_t value = 0;
  bool operator<(const DeadlineKey& other) const {
    return kind != other.kind ? kind < other.kind : value < other.value;
  }
};

class DeadlineSet {
 public:
  // `held` is the object's own copy; kNever: none.
  void Move(DeadlineKey key, TimePoint& held, TimePoint next) {
    if (held != kNever) entries_.erase({held, key});
    held = next;
    if (held != kNever) entries_.insert({held, key});
  }
  TimePoint Earliest() const { return entries_.empty() ? kNever : entries_.begin()->first; }
  // The key of the earliest entry; there must be one.
  DeadlineKey Front() const { return entries_.begin()->second; }
  size_t size() const { return entries_.size(); }

 private:
  std::set<std::pair<TimePoint, DeadlineKey>> entries_;
};

}  // namespace rocegw::cm
