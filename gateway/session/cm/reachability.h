// SPDX-License-Identifier: Apache-2.0
// Waits of connection manager ids for the next hop of their destination, as in rdma_resolve_addr(3)
// on Linux. An id has at most one wait, so the limit of ids bounds the waits. Owner: the connection
// manager's binding, control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/cm/cm_types.h"
#include "gateway/loop/control_loop.h"
#include "gateway/port/kernel/neighbour_waits.h"

namespace rocegw::session {

class Reachability {
 public:
  using Then = std::function<void(bool reachable)>;

  explicit Reachability(ControlLoop& loop);
  Reachability(const Reachability&) = delete;
  Reachability& operator=(const Reachability&) = delete;

  // Returns true if the destination answered a moment ago. Else calls `then` once, later, unless
  // the wait is cancelled; replaces an earlier wait of the id. Returns true also if the system has
  // no thread for it: sending will then show the error.
  bool Check(SessionId owner, cm::CmHandle id, const port::NeighbourWaits::Wait& wait, Then then);
  void Cancel(SessionId owner, cm::CmHandle id);
  void Cancel(SessionId owner);
  // Ends all waits without a call of their `then`.
  void CancelAll();
  // Discards cached results after routes or addresses changed.
  void Forget() { known_.clear(); }

 private:
  struct Key {
    SessionId owner;
    cm::CmHandle id;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Waiting {
    uint64_t number;
    wire::Gid source;
    wire::Gid destination;
    Then then;
  };
  struct Known {
    wire::Gid source;
    wire::Gid destination;
    TimePoint until;
  };

  void OnReport(uint64_t number, bool reachable);
  void Drop(std::map<Key, Waiting>::iterator at);

  ControlLoop& loop_;
  std::map<Key, Waiting> waiting_;
  std::map<uint64_t, Key> by_number_;
  std::vector<Known> known_;
  uint64_t next_number_ = 1;
  // A report that arrives after this object is destroyed finds the pointer expired.
  const std::shared_ptr<Reachability*> self_;
  // Last member: its thread ends before the other members are destroyed.
  port::NeighbourWaits waits_;
};

}  // namespace rocegw::session
