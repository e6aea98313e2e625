// SPDX-License-Identifier: Apache-2.0
// Waits for the next hops of destinations: a wait ends when the kernel can send to the next hop, or
// with its time. Linux' rdma_resolve_addr(3) waits for the same. Routes and neighbours are the
// kernel's; it is asked, and made to ask the link, on a thread of this object, since rtnetlink may
// block. Without CAP_NET_ADMIN an empty datagram to the next hop (UDP 4791, hop limit 1) makes the
// kernel ask the link. The table of neighbours is watched only while a wait is under way.
//
// A wait ends at once, as reachable, where neighbours do not exist: own addresses, groups, links
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
    wire::Gid source;  // an address of this host
    wire::Gid destination;
    uint32_t interface_index = 0;  // of the source; needed for link-local destinations
    Duration timeout{};
  };
  // Called on the thread of this object, once for each wait that was not cancelled. May come
  // shortly after Cancel.
  using Report = std::function<void(uint64_t number, bool reachable)>;

  // The thread starts with the first wait, in the network namespace of the thread that calls Start.
  explicit NeighbourWaits(Report report) : report_(std::move(report)) {}
  // No report comes after this.
  ~NeighbourWaits();
  NeighbourWaits(const NeighbourWaits&) = delete;
  NeighbourWaits& operator=(const NeighbourWaits&) = delete;

  // Any thread. number: the caller's name for the wait. False when the system has no thread.
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

  std::mutex mutex_;                 // guards the three below
  std::map<uint64_t, Asked> asked_;  // by number
  std::vector<uint64_t> cancelled_;
  bool stopping_ = false;

  // The thread's.
  std::optional<KernelTables> tables_;
  std::optional<NetlinkSocket> monitor_;
  std::map<uint64_t, Pending> pending_;  // by number; the sets below find these
  std::set<std::pair<NextHop, uint64_t>> by_hop_;
  std::set<std::pair<TimePoint, uint64_t>> by_deadline_;
};

}  // namespace rocegw::port
