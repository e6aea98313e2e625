// SPDX-License-Identifier: Apache-2.0
// Attaches that wait for a verdict, as a bounded list by time: who is held, until when, and who has
// asked to be told. Bookkeeping only: no socket is read, and time is an argument. Owner: the attach
// gate, control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/session/attach/client_lane.h"
#include "gateway/session/attach/peer.h"
#include "gateway/session/state/state_rows.h"

namespace rocegw::session {

struct HeldAttach {
  std::string pool;
  uint64_t pool_id = 0;
  std::string path;  // of the attach socket; empty: none
  ClientFd socket;
  Peer peer;
  // It has greeted: whoever only looks whether somebody listens does not.
  bool greeted = false;
};

class HeldAttaches {
 public:
  static constexpr size_t kMost = 256;
  static constexpr size_t kMostOfPool = 64;
  static constexpr size_t kMostWaiters = 16;
  using Told = std::function<void(std::vector<HeldRow>)>;

  // first_id: above those of a former daemon, so that nobody takes a new one for an old one.
  HeldAttaches(uint64_t first_id, Duration within) : next_id_(first_id), within_(within) {}

  // Takes it and yields its id; 0, and it is left: too many are held already, of the pool or at
  // all. Whoever waits is told when it has greeted.
  uint64_t Add(HeldAttach& attach, TimePoint now);
  // It has greeted now. Yields its new id: ids are in the order in which others are told.
  uint64_t Greeted(uint64_t id);
  // It is held no more; nothing when it was not.
  std::optional<HeldAttach> Take(uint64_t id);
  // Those whose time is over.
  std::vector<HeldAttach> TakeExpired(TimePoint now);
  const HeldAttach* Find(uint64_t id) const;

  // Tells at once when one with an id above `after` is held, else when there is one, at the latest
  // at `until`. Of too many who wait the first is told that there is nothing.
  void Tell(uint64_t after, TimePoint until, Told told, TimePoint now);
  // Whoever has waited long enough is told that there is nothing.
  void TellExpired(TimePoint now);
  // The same for all, now and from now on.
  void StopTelling();

  // When TakeExpired or TellExpired may have something to do; kNever: not by itself.
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
