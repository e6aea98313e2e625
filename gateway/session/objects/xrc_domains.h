// SPDX-License-Identifier: Apache-2.0
// XRC domains of a gateway. Sessions of one pool share a domain if they show the same file: its
// inode is the key, and the domain keeps the file open so that no other file gets the number
// meanwhile. Workers see a domain as a session of its own that owns the receiving queue pairs: a
// queue pair lives while any session has it open, not only its creator. Shared receive queues of
// the domain belong to their creators. Control thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/ids.h"
#include "gateway/base/status.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/session/attach/client_call_queue.h"
#include "gateway/tenant/charge.h"
#include "gateway/tenant/registry.h"

namespace rocegw::session {

// Session that has a queue pair open, with its own handle.
struct XrcOpener {
  SessionId session;
  uint32_t handle = 0;
  uint64_t cookie = 0;
};

// Receiving queue pair: it has no queues, and so no memory of a client. `status` has no reader.
struct XrcTarget {
  rocegw_qp_control control{};
  rocegw_qp_status status{};
  std::vector<XrcOpener> openers;
  bool linked = false;  // was sent to its worker
};

struct XrcDomain {
  SessionId id;  // id that the workers use
  tenant::Pool* pool = nullptr;
  std::shared_ptr<tenant::SlotShare> slot;  // slot of the session that made it; nullptr: none
  uint32_t device = 0;
  WorkerIndex worker = 0;  // worker of all its objects
  uint32_t openers = 0;
  // With O_PATH; invalid: private to one session. Closing it may end the file system.
  ClientFd file;
  tenant::Charge descriptor;  // charge of the file
  std::pair<uint64_t, uint64_t> inode;
  rocegw_worker_line line{};                                         // not mapped by any client
  std::unordered_map<uint32_t, std::unique_ptr<XrcTarget>> targets;  // by QPN
  bool linked = false;                                               // was sent to its worker
};

class XrcDomains {
 public:
  struct Wanted {
    tenant::Pool* pool = nullptr;
    uint32_t device = 0;
    ClientFd file;                        // invalid: a new one
    std::pair<uint64_t, uint64_t> inode;  // device and number of the file
    uint32_t flags = 0;                   // enum rocegw_xrcd_flags
  };
  // Adds an opener. EAGAIN, EINVAL: forbidden by the flags.
  // `made`: the domain is new, and its worker does not know it yet.
  struct Opened {
    XrcDomain* domain = nullptr;
    bool made = false;
  };
  StatusOr<Opened> Open(Wanted wanted, WorkerIndex worker);
  // Adds an opener of a domain that the gateway before this one had; makes the domain for the first
  // one. Returns nullptr if the domain of this id is not the same one.
  XrcDomain* Adopt(std::unique_ptr<XrcDomain> same);
  // Removes an opener. After the last one, returns the domain, which cannot be found any more; the
  // caller keeps it until the worker has unlinked it. Else nullptr.
  std::unique_ptr<XrcDomain> Close(XrcDomain& domain);

  // Returns nullptr for an unknown id.
  XrcDomain* Find(SessionId id) const;
  // Returns a queue pair of that domain; nullptr: none.
  XrcTarget* FindTarget(SessionId id, Qpn qpn) const;
  static bool IsDomain(SessionId id) { return (id.value & kDomain) != 0; }

  // Returns a number for a shared receive queue, by which peers name it: 24 bits, unique. 0: none
  // left.
  uint32_t TakeNumber();
  void GiveNumber(uint32_t number) { numbers_.erase(number); }
  // Takes the number of a queue that the gateway before this one had. Returns false if it is none,
  // or taken.
  bool AdoptNumber(uint32_t number) {
    return number != 0 && number <= kHighestNumber && numbers_.insert(number).second;
  }
  // Hands over which ids and numbers are next (hand_over/numbers_state.cc).
  void HandOver(hand_over::StateStream& state);

 private:
  // Bit that distinguishes domains from clients' sessions.
  static constexpr uint32_t kDomain = 1u << 31;
  static constexpr uint32_t kMostNumbers = 1u << 20;
  static constexpr uint32_t kHighestNumber = 0xFFFFFF;

  // Key of a named domain: pool, device, file.
  using FileKey = std::tuple<const tenant::Pool*, uint32_t, std::pair<uint64_t, uint64_t>>;
  static FileKey KeyOf(const XrcDomain& domain) {
    return {domain.pool, domain.device, domain.inode};
  }

  std::unordered_map<uint32_t, std::unique_ptr<XrcDomain>> domains_;  // by id
  std::map<FileKey, XrcDomain*> by_file_;                             // named domains
  std::unordered_set<uint32_t> numbers_;
  uint32_t next_id_ = 1;
  uint32_t next_number_ = 1;
};

}  // namespace rocegw::session
