// SPDX-License-Identifier: Apache-2.0
// Bounded list of attaches that wait for a verdict, their deadlines, and the calls that wait for
// the list to change. Tenants share the list fairly, in each tenant its pools, and in each pool its
// users: beyond the bound, an attach of the greediest makes room. Bookkeeping only: reads no
// socket, and time is an argument. Owner: the attach gate, control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/session/attach/peer.h"
#include "gateway/session/attach/program_connection.h"
#include "gateway/session/state/state_rows.h"
#include "gateway/tenant/slot_share.h"

namespace rocegw::session {

struct HeldAttach {
  std::string pool;
  uint64_t pool_id = 0;
  std::string path;  // attach socket; empty: none
  ProgramConnection socket;
  Peer peer;
  tenant::SlotLimits limits;  // from the agent's verdict
  // The client has sent its greeting. A client that only tests the socket sends none.
  bool greeted = false;
};

class HeldAttaches {
 public:
  static constexpr size_t kMost = 256;
  static constexpr size_t kMostWaiters = 16;
  using Told = std::function<void(std::vector<HeldRow>)>;

  // `first_id`: no id of an earlier daemon, so that ids are not confused.
  HeldAttaches(uint64_t first_id, Duration within) : next_id_(first_id), within_(within) {}

  // Adds an attach and returns its id. Waiting calls are notified when the attach has greeted.
  uint64_t Add(HeldAttach attach, TimePoint now);
  // Returns the attach that makes room, of the user with the most attaches in the pool with the
  // most, in the tenant with the most: one that has not greeted, else the oldest. 0: the list is
  // within its bound.
  uint64_t Excess() const;
  // Marks an attach as greeted and returns its new id: ids are in the order of greeting.
  uint64_t Greeted(uint64_t id);
  // Removes an attach; returns nothing if it is not in the list.
  std::optional<HeldAttach> Take(uint64_t id);
  // Removes and returns the attaches whose deadline has passed.
  std::vector<HeldAttach> TakeExpired(TimePoint now);
  const HeldAttach* Find(uint64_t id) const;

  // Calls `told` at once if an attach has an id above `after`, else when there is one, at the
  // latest at `until`. An id that was not given yet counts as 0. If too many calls wait, the oldest
  // gets an empty result.
  void Tell(uint64_t after, TimePoint until, Told told, TimePoint now);
  // Ends waiting calls whose time is over with an empty result.
  void TellExpired(TimePoint now);
  // Does the same for all calls, now and from now on.
  void StopTelling();

  // Returns when TakeExpired or TellExpired has work next; kNever: not without a change.
  TimePoint deadline() const;
  size_t size() const { return held_.size(); }

 private:
  struct Entry {
    HeldAttach attach;
    TimePoint until;
  };
  struct Waiter {
    uint64_t after;
    TimePoint until;
    Told told;
  };

  std::vector<HeldRow> Rows() const;
  void TellWaiters();

  uint64_t next_id_;
  const Duration within_;
  std::map<uint64_t, Entry> held_;  // by id
  std::vector<Waiter> waiters_;
  bool stopped_ = false;
};

}  // namespace rocegw::session
