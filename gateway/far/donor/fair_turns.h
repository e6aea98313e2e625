// SPDX-License-Identifier: Apache-2.0
// Order in which a donor's thread works for its sessions: each gets the same time while it has
// something to be done, so that a session with many or costly messages makes the others wait for
// one of them at most. Fair queueing by start times; pure. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace rocegw::far {

class FairTurns {
 public:
  // The session has something to be done.
  void Add(uint64_t session) {
    if (waiting_.contains(session)) return;
    // A session that did nothing for a while has no claim on the time that it left to others.
    const auto known = spent_.find(session);
    const uint64_t start = std::max(now_, known == spent_.end() ? 0 : known->second);
    waiting_[session] = start;
    order_.emplace(start, session);
  }
  // Takes the session whose turn it is out of those that wait; nullopt: none waits.
  std::optional<uint64_t> Take() {
    if (order_.empty()) return std::nullopt;
    const auto [start, session] = *order_.begin();
    order_.erase(order_.begin());
    waiting_.erase(session);
    now_ = start;
    return session;
  }
  // The work for the session that was taken last took so long.
  void Worked(uint64_t session, uint64_t nanoseconds) {
    spent_[session] = now_ + std::max<uint64_t>(nanoseconds, 1);
  }
  void Remove(uint64_t session) {
    const auto waits = waiting_.find(session);
    if (waits != waiting_.end()) {
      order_.erase({waits->second, session});
      waiting_.erase(waits);
    }
    spent_.erase(session);
  }
  bool empty() const { return order_.empty(); }

 private:
  uint64_t now_ = 0;                               // virtual time: start of the latest turn
  std::map<uint64_t, uint64_t> waiting_;           // start of its next turn, by session
  std::map<uint64_t, uint64_t> spent_;             // end of its last turn, by session
  std::set<std::pair<uint64_t, uint64_t>> order_;  // start, session
};

}  // namespace rocegw::far
