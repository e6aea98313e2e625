// SPDX-License-Identifier: Apache-2.0
// Waits for the next hops of destinations. A wait ends when the kernel can send to the next hop, or
// at its timeout; Linux' rdma_resolve_addr(3) waits for the same. Routes and neighbours are the
// kernel's. A thread of this object queries them and makes the kernel resolve the hop, since
// rtnetlink may block. Without CAP_NET_ADMIN an empty datagram to the next hop (UDP 4791, hop limit
// 1) makes the kernel resolve it. The neighbour table is watched only during a wait.
//
// A wait ends at once, as reachable, where no neighbours exist: own addresses, groups, links
// without link-layer addresses, and destinations without a route (sending to these fails by
// itself).
#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"
#include "gateway/port/kernel/kernel_tables.h"

namespace rocegw::port {

class NeighbourWaits {
 public:
  struct Wait {
    wire::Gid source;  // address of this host
    wire::Gid destination;
    uint32_t interface_index = 0;  // interface of the source; needed for link-local destinations
    Duration timeout{};
  };
  // Called on the thread of this object, once for each wait that was not cancelled. A call shortly
  // after Cancel is possible.
  using Report = std::function<void(uint64_t number, bool reachable)>;

  // The thread starts with the first wait, in the network namespace of the caller of Start.
  explicit NeighbourWaits(Report report) : report_(std::move(report)) {}
  // No report follows.
  ~NeighbourWaits();
  NeighbourWaits(const NeighbourWaits&) = delete;
  NeighbourWaits& operator=(const NeighbourWaits&) = delete;

  // Starts a wait; any thread. `number`: the caller's name for it. Returns false if the system has
  // no thread left.
  bool Start(uint64_t number, const Wait& wait);
  void Cancel(uint64_t number);

 private:
  struct Pending {
    NextHop hop;
    TimePoint deadline;
  };
  struct Asked {
    Wait wait;
    TimePoint deadline;
  };

  void Loop();
  void Wake();
  bool TakeRequests();
  void Begin(uint64_t number, const Asked& asked);
  void Provoke(const NextHop& hop, const wire::Gid& source);
  void OnNeighbours();
  void OnTime(TimePoint now);
  void End(uint64_t number, bool reachable);
  bool Remove(uint64_t number);
  int MillisecondsToWait(TimePoint now) const;

  const Report report_;
  UniqueFd wake_;
  pthread_t thread_{};
  bool started_ = false;

  std::mutex mutex_;                 // guards the next three fields
  std::map<uint64_t, Asked> asked_;  // by number
  std::vector<uint64_t> cancelled_;
  bool stopping_ = false;

  // Fields of the thread.
  std::optional<KernelTables> tables_;
  std::optional<NetlinkSocket> monitor_;
  std::map<uint64_t, Pending> pending_;  // by number; the sets below refer to it
  std::set<std::pair<NextHop, uint64_t>> by_hop_;
  std::set<std::pair<TimePoint, uint64_t>> by_deadline_;
};

}  // namespace rocegw::port
