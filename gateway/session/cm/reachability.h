// SPDX-License-Identifier: Apache-2.0
// Ids of the connection manager that wait until the next hop of their destination answers, as
// rdma_resolve_addr(3) does on Linux. An id has at most one wait, so that the ids of a pool bound
// what its programs make the gateway keep. Owner: the connection manager's binding, control thread.
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
#include "gateway/port/kernel/neighbour_waits.h"
#include "gateway/session/control_loop.h"

namespace rocegw::session {

class Reachability {
 public:
  using Then = std::function<void(bool reachable)>;

  explicit Reachability(ControlLoop& loop);
  Reachability(const Reachability&) = delete;
  Reachability& operator=(const Reachability&) = delete;

  // True when the destination answered a moment ago. Else calls `then` once, later, unless the wait
  // is cancelled; a wait that the id has already is cancelled. True, too, when the system has no
  // thread for it: sending shows then what is wrong.
  bool Check(SessionId owner, cm::CmHandle id, const port::NeighbourWaits::Wait& wait, Then then);
  void Cancel(SessionId owner, cm::CmHandle id);
  void Cancel(SessionId owner);
  // Routes or addresses changed: nothing is known any more.
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
  // Reports that arrive when this object is gone find the pointer expired.
  const std::shared_ptr<Reachability*> self_;
  // The last one: its thread ends before anything else does.
  port::NeighbourWaits waits_;
};

}  // namespace rocegw::session
