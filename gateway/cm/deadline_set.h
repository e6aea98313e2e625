// SPDX-License-Identifier: Apache-2.0
// Ordered set of exact deadlines of the connection manager's objects. An object stores its own
// deadline and has at most one entry here. Moving or clearing the deadline moves or removes the
// entry, so no stale entry remains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "gateway/base/containers/kept_nodes.h"
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
  // Sets the deadline. `held` is the object's copy; kNever: none.
  void Move(DeadlineKey key, TimePoint& held, TimePoint next) {
    if (held == next) return;
    if (held == kNever) {
      kept_.Insert(entries_, {next, key});
    } else if (next == kNever) {
      kept_.Erase(entries_, entries_.find({held, key}));
    } else {
      auto node = entries_.extract({held, key});
      node.value().first = next;
      entries_.insert(std::move(node));
    }
    held = next;
  }
  TimePoint Earliest() const { return entries_.empty() ? kNever : entries_.begin()->first; }
  // Returns the key of the earliest entry. Must not be called when empty.
  DeadlineKey Front() const { return entries_.begin()->second; }
  size_t size() const { return entries_.size(); }

  // See kept_nodes.h.
  void Keep(size_t wanted) { kept_.SetWanted(wanted); }
  bool Refill(size_t most) { return kept_.Refill(entries_, most); }

 private:
  using Entries = std::set<std::pair<TimePoint, DeadlineKey>>;

  Entries entries_;
  KeptNodes<Entries> kept_;
};

}  // namespace rocegw::cm
