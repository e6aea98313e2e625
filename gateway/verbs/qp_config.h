// SPDX-License-Identifier: Apache-2.0
// What a QP is born with: built by the session on the control thread, handed to the worker with
// LinkQp. Pointers are into the session's segments, which outlive the QP (unlink, reply, free).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/ids.h"
#include "gateway/verbs/memory_window.h"
#include "gateway/verbs/types.h"
#include "gateway/wire/gid.h"
#include "gateway/wire/prefix.h"

namespace rocegw::verbs {

// The GIDs of a device by index; empty entries are zero. Made when the device is configured,
// outlives its QPs.
struct GidTable {
  static constexpr size_t kSize = 64;
  std::array<wire::Gid, kSize> entries{};
  bool operator==(const GidTable&) const = default;
};

// Addresses that a queue pair may talk to: one of each list. Outlives queue pairs; rules that
// change are others (worker/worker_peers.cc).
struct PeerRules {
  std::vector<wire::Prefix> tenant;
  std::vector<wire::Prefix> pool;

  bool Allow(const wire::Gid& peer) const {
    return wire::Contain(tenant, peer) && wire::Contain(pool, peer);
  }
  bool operator==(const PeerRules&) const = default;
};

// Which regions a list of SGEs may name.
struct KeyScope {
  SessionId session;
  uint32_t pd = 0;  // session-scoped handle
};

// What every message looks at; in few bytes, since a worker has many queue pairs.
struct QpMessageConfig {
  Qpn qpn;
  SessionId session;
  uint32_t qp_handle = 0;          // the client's handle, for events and completions
  uint32_t pd = 0;                 // session-scoped handle; keys must belong to it
  uint32_t tenant_tag = 0;         // names its tenant on channels; both ends have the same
  uint16_t rq_payload_stride = 0;  // bytes; 0: receives are placed by memory operations
  uint8_t max_send_sge = 0;
  uint8_t max_recv_sge = 0;
  uint8_t device = 0;  // index of the daemon's port that it sends by
  QpType type = QpType::kRc;
  ServiceMode service_mode : 2 = ServiceMode::kByTarget;
  bool signal_all : 1 = false;
  bool placement : 1 = false;  // has the memory placement extensions, FLUSH and ATOMIC WRITE
  bool any_completion_order : 1 = false;  // completions need not come in the order of requests

  KeyScope send_keys() const { return {session, pd}; }
};
static_assert(sizeof(QpMessageConfig) == 28);

// What those look at that carry their payload in the rings.
struct QpPayloadConfig {
  const uint8_t* sq_payload = nullptr;  // client memory: untrusted
  uint8_t* rq_payload = nullptr;        // ours, client reads
  uint16_t sq_entries = 0;              // a power of two, at most 2^15
  uint16_t sq_payload_stride = 0;       // bytes
};

// What is asked for when it is made, or seldom.
struct QpRareConfig {
  uint64_t cookie = 0;   // the client's cookie, for async events
  uint32_t send_cq = 0;  // session-scoped handles
  uint32_t recv_cq = 0;
  uint32_t srq = 0;  // shared receive queue; 0: none, else what is said of its RQ is said of that
  uint32_t srq_pd = 0;  // keys of receives must belong to it, then
  uint32_t max_inline = 0;
  uint16_t rq_entries = 0;  // as sq_entries
  uint32_t sq_stride = 0;
  uint32_t rq_stride = 0;
  uint32_t give_up_ms = 0;  // endpoint: after that long without an answer a message has failed
  Qpn group;                // endpoint: of which it is a member; kInvalidQpn: none
  uint32_t group_key = 0;   // what messages to the group must name

  rocegw_qp_control* control = nullptr;  // client memory: untrusted
  rocegw_qp_status* status = nullptr;    // ours, client reads
  const uint8_t* sq = nullptr;           // client memory: untrusted
  const uint8_t* rq = nullptr;           // client memory: untrusted

  const PeerRules* peers = nullptr;  // nullptr: any
  const GidTable* gids = nullptr;    // of the device; UD picks sources from it
  uint32_t window_bytes = 0;         // in flight; 0: as the worker has it
  uint32_t doorbell_page = 0;        // index in the session's pages on this worker
  uint32_t doorbell_bit = 0;
  uint8_t port_mtu = 3;  // enum ibv_mtu: the device's active MTU, the limit of a datagram
};

struct QpConfig : QpMessageConfig, QpPayloadConfig, QpRareConfig {};

// A shared receive queue, on the one worker that has all its queue pairs.
struct SrqConfig {
  SessionId session;
  uint32_t srq_handle = 0;
  uint64_t cookie = 0;
  uint32_t entries = 0;                         // power of two
  uint32_t stride = 0;                          // of a slot
  uint32_t limit = 0;                           // an event says when fewer are posted; 0: none does
  const rocegw_srq_control* control = nullptr;  // client memory: untrusted
  const uint8_t* order = nullptr;               // client memory: untrusted
  const uint8_t* slots = nullptr;               // client memory: untrusted
  // Of an XRC domain: the session that workers know the domain as, and what its queue pairs are
  // told with the receives; without one, queue pairs are born with all that (QpConfig).
  SessionId domain;
  uint32_t number = 0;  // by which peers name it
  uint32_t pd = 0;
  uint32_t cq = 0;
  uint8_t max_sge = 0;
  uint16_t payload_slots = 0;
  uint16_t payload_stride = 0;
  uint8_t* payload = nullptr;  // ours, client reads
};

// Endpoints that are addressed as one.
struct GroupConfig {
  SessionId session;
  Qpn number;
  Dispatch dispatch = Dispatch::kHash;
};

// The most that a queue pair which was made ahead can become.
struct QpShape {
  uint32_t sq_entries = 0;  // power of two
  uint32_t max_sge = 0;     // of a request and of a receive
  uint32_t rd_atomic = 0;   // READs and atomics of the peer
};

// A completion queue's ring on one worker.
struct CqConfig {
  SessionId session;
  uint32_t cq_handle = 0;
  uint64_t cookie = 0;
  uint32_t entries = 0;                  // power of two
  uint32_t worker_slot = 0;              // index in rocegw_cq_control::worker
  rocegw_cqe* ring = nullptr;            // ours, client reads
  rocegw_cq_control* control = nullptr;  // client memory: untrusted
  int event_fd = -1;  // completion channel, SEQPACKET, non-blocking; -1: none. Not owned.
};

// A memory region as the data path sees it.
struct RegionConfig {
  MemoryKey key;
  SessionId session;
  uint32_t mr_handle = 0;
  uint32_t pd = 0;
  uint32_t access = 0;   // Access bits
  uint64_t iova = 0;     // first address that keys' users name
  uint64_t length = 0;   // bytes
  uint64_t address = 0;  // of that byte in the client
  // Bytes [direct_from, direct_from + direct_length) of the region lie in a mapping of ours, at
  // `direct`; the others are reached by cross-process copy.
  uint8_t* direct = nullptr;
  uint64_t direct_from = 0;
  uint64_t direct_length = 0;
  BoundWindows* windows = nullptr;  // nullptr: none may be bound to it

  bool Holds(uint64_t va, uint64_t bytes) const {
    return va >= iova && va - iova <= length && bytes <= length - (va - iova);
  }

  // Where bytes of the region lie in our mapping; nullptr when they are not all there.
  uint8_t* DirectAt(uint64_t offset, uint64_t bytes) const {
    if (offset < direct_from || offset - direct_from > direct_length ||
        bytes > direct_length - (offset - direct_from)) {
      return nullptr;
    }
    return direct + (offset - direct_from);
  }
};

}  // namespace rocegw::verbs
