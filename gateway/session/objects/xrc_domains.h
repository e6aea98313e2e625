// SPDX-License-Identifier: Apache-2.0
// XRC domains of a gateway. A domain is shared by the sessions of one pool that show the same file:
// its inode is the key, and the domain keeps it open so that nobody else's file gets that number
// meanwhile. Workers know a domain as a session of its own, to which its receiving queue pairs
// belong: they live on as long as anybody has them open, whoever has made them. Shared receive
// queues of the domain belong to their makers. Control thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/ids.h"
#include "gateway/base/status.h"
#include "gateway/session/attach/client_lane.h"
#include "gateway/tenant/registry.h"

namespace rocegw::session {

// A queue pair as one of the sessions that have it open knows it.
struct XrcOpener {
  SessionId session;
  uint32_t handle = 0;
  uint64_t cookie = 0;
};

// A receiving queue pair: it has no queues, and so no client's memory.
struct XrcTarget {
  rocegw_qp_control control{};
  rocegw_qp_status status{};
  std::vector<XrcOpener> openers;
};

struct XrcDomain {
  SessionId id;  // as workers know it
  tenant::Pool* pool = nullptr;
  uint32_t device = 0;
  WorkerIndex worker = 0;  // of everything in it
  uint32_t openers = 0;
  ClientFd file;  // invalid: it is one session's own
  std::pair<uint64_t, uint64_t> inode;
  rocegw_worker_line line{};                                         // no client looks at it
  std::unordered_map<uint32_t, std::unique_ptr<XrcTarget>> targets;  // by QPN
};

class XrcDomains {
 public:
  struct Wanted {
    tenant::Pool* pool = nullptr;
    uint32_t device = 0;
    ClientFd file;       // invalid: a new one
    uint32_t flags = 0;  // enum rocegw_xrcd_flags
  };
  // One more opener. EBADF: what the file is cannot be found out; EAGAIN, EINVAL: as the flags say.
  // `made`: it is new, on that worker, which does not know it yet.
  struct Opened {
    XrcDomain* domain = nullptr;
    bool made = false;
  };
  StatusOr<Opened> Open(Wanted wanted, WorkerIndex worker);
  // One opener less. The last one gets the domain, which nobody finds any more, and keeps it until
  // the worker has forgotten it; else nullptr.
  std::unique_ptr<XrcDomain> Close(XrcDomain& domain);

  // nullptr: no domain is known as that.
  XrcDomain* Find(SessionId id) const;
  // A queue pair of that domain; nullptr: there is none.
  XrcTarget* FindTarget(SessionId id, Qpn qpn) const;
  static bool IsDomain(SessionId id) { return (id.value & kDomain) != 0; }

  // Of shared receive queues, by which peers name them: 24 bits, no two at a time. 0: none is left.
  uint32_t TakeNumber();
  void GiveNumber(uint32_t number) { numbers_.erase(number); }

 private:
  // No client's session is called so.
  static constexpr uint32_t kDomain = 1u << 31;
  static constexpr uint32_t kMostNumbers = 1u << 20;

  std::unordered_map<uint32_t, std::unique_ptr<XrcDomain>> domains_;  // by id
  std::unordered_set<uint32_t> numbers_;
  uint32_t next_id_ = 1;
  uint32_t next_number_ = 1;
};

}  // namespace rocegw::session
