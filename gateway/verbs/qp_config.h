// SPDX-License-Identifier: Apache-2.0
// Configurations of queue pairs and other objects, fixed at creation. The session makes them on the
// control thread and sends them to the worker (LinkQp). Pointers refer to the session's segment,
// which outlives the object: it is unlinked, the worker replies, then memory is freed.
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

// GIDs of a device by index; unused entries are zero. Made when the device is configured; outlives
// the device's queue pairs. The size covers each index that an address vector can hold.
struct GidTable {
  static constexpr size_t kSize = 256;
  std::array<wire::Gid, kSize> entries{};
  bool operator==(const GidTable&) const = default;
};

// Addresses that a queue pair may talk to: they must match both lists. Outlives queue pairs.
// Changed rules are a new object (worker/control/queue_pair_control.h).
struct PeerRules {
  std::vector<wire::Prefix> tenant;
  std::vector<wire::Prefix> pool;

  bool Allow(const wire::Gid& peer) const {
    return wire::Contain(tenant, peer) && wire::Contain(pool, peer);
  }
  bool operator==(const PeerRules&) const = default;
};

// Session and protection domain whose regions a list of SGEs may use.
struct KeyScope {
  SessionId session;
  uint32_t pd = 0;  // session-scoped handle
};

// Fields that every message uses. Kept small, because a worker has many queue pairs.
struct QpMessageConfig {
  Qpn qpn;
  SessionId session;
  uint32_t qp_handle = 0;          // the client's handle, for events and completions
  uint32_t pd = 0;                 // session-scoped handle; keys must belong to it
  uint32_t tenant_tag = 0;         // tag of its tenant on channels; the same at both ends
  uint16_t rq_payload_stride = 0;  // bytes; 0: receives are placed by memory operations
  uint8_t max_send_sge = 0;
  uint8_t max_recv_sge = 0;
  uint8_t device = 0;  // index of the daemon's port that it sends by
  QpType type = QpType::kRc;
  ServiceMode service_mode : 2 = ServiceMode::kByTarget;
  bool signal_all : 1 = false;
  bool placement : 1 = false;  // has the memory placement extensions, FLUSH and ATOMIC WRITE
  bool any_completion_order : 1 = false;  // completions need not be in the order of requests

  KeyScope send_keys() const { return {session, pd}; }
};
static_assert(sizeof(QpMessageConfig) == 28);

// Fields for payload that travels in the rings.
struct QpPayloadConfig {
  const uint8_t* sq_payload = nullptr;  // client memory: untrusted
  uint8_t* rq_payload = nullptr;        // the gateway's memory, which the client reads
  uint16_t sq_entries = 0;              // a power of two, at most 2^15
  uint16_t sq_payload_stride = 0;       // bytes
};

// Fields used at creation or rarely.
struct QpRareConfig {
  uint64_t cookie = 0;   // the client's cookie, for async events
  uint32_t send_cq = 0;  // session-scoped handles
  uint32_t recv_cq = 0;
  uint32_t srq = 0;     // shared receive queue; 0: none, else the rq_ fields describe it
  uint32_t srq_pd = 0;  // protection domain of receives from it
  uint32_t max_inline = 0;
  uint16_t rq_entries = 0;  // a power of two, at most 2^15
  uint32_t sq_stride = 0;
  uint32_t rq_stride = 0;
  uint32_t give_up_ms = 0;  // endpoint: a message without an answer fails after this time
  // Endpoint: a request that fails suspends the endpoint (transport::EndpointState::kException).
  bool suspends_on_failure = false;
  Qpn group;               // endpoint: its group; kInvalidQpn: none
  uint32_t group_key = 0;  // key that messages to the group must carry

  rocegw_qp_control* control = nullptr;  // client memory: untrusted
  rocegw_qp_status* status = nullptr;    // the gateway's memory, which the client reads
  const uint8_t* sq = nullptr;           // client memory: untrusted
  const uint8_t* rq = nullptr;           // client memory: untrusted

  const PeerRules* peers = nullptr;  // nullptr: any address
  const GidTable* gids = nullptr;    // the device's; UD requests select a source from it
  uint32_t window_bytes = 0;         // limit of bytes in flight; 0: the worker's default
  uint32_t doorbell_page = 0;        // index of the page among the session's pages on this worker
  uint32_t doorbell_bit = 0;
  uint8_t port_mtu = 3;  // enum ibv_mtu: the device's active MTU, the limit of a datagram
};

struct QpConfig : QpMessageConfig, QpPayloadConfig, QpRareConfig {};

// Shared receive queue, on the one worker that has all its queue pairs.
struct SrqConfig {
  SessionId session;
  uint32_t srq_handle = 0;
  uint64_t cookie = 0;
  uint32_t entries = 0;  // power of two
  uint32_t stride = 0;   // bytes of a slot
  uint32_t limit = 0;    // an event is raised when fewer are posted; 0: never
  const rocegw_srq_control* control = nullptr;  // client memory: untrusted
  const uint8_t* order = nullptr;               // client memory: untrusted
  const uint8_t* slots = nullptr;               // client memory: untrusted
  // XRC only: the domain, which workers identify by a session id, and the fields that other queue
  // pairs get from their QpConfig.
  SessionId domain;
  uint32_t number = 0;  // number by which peers name the queue
  uint32_t pd = 0;
  uint32_t cq = 0;
  uint8_t max_sge = 0;
  uint16_t payload_slots = 0;
  uint16_t payload_stride = 0;
  uint8_t* payload = nullptr;  // the gateway's memory, which the client reads
};

// Group of endpoints with one address.
struct GroupConfig {
  SessionId session;
  Qpn number;
  Dispatch dispatch = Dispatch::kHash;
};

// Largest configuration that a queue pair of the reserve can adopt.
struct QpShape {
  uint32_t sq_entries = 0;  // power of two
  uint32_t max_sge = 0;     // SGEs of a request or a receive
  uint32_t rd_atomic = 0;   // READs and atomics of the peer
};

// Ring of a completion queue on one worker.
struct CqConfig {
  rocegw_cq_control* control = nullptr;  // client memory: untrusted
  SessionId session;
  uint32_t cq_handle = 0;
  uint64_t cookie = 0;
  uint32_t entries = 0;        // power of two
  uint32_t worker_slot = 0;    // index in rocegw_cq_control::worker
  rocegw_cqe* ring = nullptr;  // the gateway's memory, which the client reads
  int event_fd = -1;           // completion channel, SEQPACKET, non-blocking; -1: none. Not owned.
};

// Memory region as the data path knows it.
struct RegionConfig {
  MemoryKey key;
  SessionId session;
  uint32_t mr_handle = 0;
  uint32_t pd = 0;
  uint32_t access = 0;   // Access bits
  uint64_t iova = 0;     // first address in the address space that users of the key name
  uint64_t length = 0;   // bytes
  uint64_t address = 0;  // address of that byte in the client
  // Bytes [direct_from, direct_from + direct_length) of the region are mapped by the gateway, at
  // `direct`. The others are reached by cross-process copy.
  uint8_t* direct = nullptr;
  uint64_t direct_from = 0;
  uint64_t direct_length = 0;
  BoundWindows* windows = nullptr;  // nullptr: no window may be bound

  bool Holds(uint64_t va, uint64_t bytes) const {
    return va >= iova && va - iova <= length && bytes <= length - (va - iova);
  }

  // Returns the address of the bytes in the gateway's mapping; nullptr if they are not all mapped.
  uint8_t* DirectAt(uint64_t offset, uint64_t bytes) const {
    if (offset < direct_from || offset - direct_from > direct_length ||
        bytes > direct_length - (offset - direct_from)) {
      return nullptr;
    }
    return direct + (offset - direct_from);
  }
};

}  // namespace rocegw::verbs
