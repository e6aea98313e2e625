// SPDX-License-Identifier: Apache-2.0
// Objects of one client, as the control thread keeps them. References between objects are handles
// of the same session; `users` counts objects that must be destroyed first. Memory blocks belong to
// the session's segment.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/containers/key_map.h"
#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"
#include "gateway/cm/cm_types.h"
#include "gateway/device_memory/device_buffer.h"
#include "gateway/memory/region.h"
#include "gateway/session/events/event_channel.h"
#include "gateway/session/objects/handle_table.h"
#include "gateway/session/objects/xrc_domains.h"
#include "gateway/shm/segment.h"
#include "gateway/tenant/charge.h"
#include "gateway/transport/endpoint/peer.h"
#include "gateway/verbs/completion_queue.h"
#include "gateway/verbs/memory_window.h"
#include "gateway/verbs/types.h"
#include "gateway/wire/gid.h"

namespace rocegw::session {

struct Context {
  uint32_t device = 0;
  tenant::Charge descriptors;
  std::unique_ptr<EventChannel> async_events;
};

struct Pd {
  uint32_t context = 0;
  uint32_t users = 0;  // QPs, SRQs, MRs, MWs, peers and groups of endpoints
};

struct CompletionChannel {
  uint32_t context = 0;
  tenant::Charge descriptors;
  UniqueFd ours;  // end that workers write into
  uint32_t users = 0;
};

struct Cq {
  uint32_t context = 0;
  uint32_t entries = 0;
  uint32_t channel = 0;
  uint64_t cookie = 0;
  shm::Block control;
  shm::Block rings;
  std::unique_ptr<verbs::CqModeration> moderation;  // set when the client has requested it
  struct {
    uint32_t count = 0;
    uint32_t period_us = 0;
  } moderated;         // request of the client
  uint32_t users = 0;  // QPs; a QP that uses it twice counts twice
};

// XRC domain that the session has open.
struct Xrcd {
  uint32_t context = 0;
  XrcDomain* domain = nullptr;
  uint32_t users = 0;               // SRQs and receiving QPs of the session
  bool left = false;                // is being closed
  std::unique_ptr<XrcDomain> last;  // set if no other session has the domain open
};

// Shared receive queue, on one worker together with its queue pairs.
struct Srq {
  uint32_t context = 0;
  uint32_t pd = 0;
  WorkerIndex worker = 0;
  uint64_t cookie = 0;
  uint32_t xrcd = 0;           // 0: basic shared receive queue
  uint32_t cq = 0;             // with an xrcd: completion queue of its receives
  uint32_t number = 0;         // with an xrcd: number by which peers name it
  uint32_t entries = 0;        // number of slots
  uint32_t capacity = 0;       // receives that may be posted
  uint32_t payload_slots = 0;  // number of first slots with space for a payload
  uint32_t max_sge = 0;
  uint32_t payload_stride = 0;
  shm::Block control;
  shm::Block order;
  shm::Block slots;
  shm::Block payload;
  tenant::Charge heap;  // charge of receives that the worker has taken
  uint32_t users = 0;   // QPs
};

struct Qp {
  uint32_t context = 0;
  uint32_t pd = 0;
  uint32_t send_cq = 0;
  uint32_t recv_cq = 0;
  uint32_t srq = 0;
  uint32_t group = 0;  // 0: none
  uint32_t xrcd = 0;   // XRC_RECV: its domain, which owns it; it uses nothing of the session
  verbs::QpType type = verbs::QpType::kRc;
  Qpn qpn;
  Qpn peer;  // as last set, even if the QP refused it
  WorkerIndex worker = 0;
  uint64_t cookie = 0;
  uint32_t sq_entries = 0;
  uint32_t rq_entries = 0;
  uint32_t max_send_sge = 0;
  uint32_t max_recv_sge = 0;
  uint32_t max_inline = 0;
  uint32_t sq_payload_stride = 0;
  uint32_t rq_payload_stride = 0;
  uint32_t give_up_ms = 0;
  bool suspends_on_failure = false;  // endpoint
  bool drains = false;               // endpoint: its program has moved it to DRAINING
  verbs::ServiceMode service_mode = verbs::ServiceMode::kByTarget;
  bool signal_all = false;
  bool any_completion_order = false;
  shm::Block control;
  shm::Block status;
  shm::Block sq;
  shm::Block sq_payload;
  shm::Block rq;
  shm::Block rq_payload;
  uint32_t doorbell_page = 0;
  uint32_t doorbell_bit = 0;
  tenant::Charge heap;  // charge of the worker's copies of the queues
  // Its moves to RTS are under way; the worker cannot refuse them, so programs need not wait.
  // `state` is the last one sent to the worker.
  bool setting_up = false;
  verbs::QpState state = verbs::QpState::kReset;
  // Gateway options that the program allows (ibv_set_ece).
  uint32_t ece_allowed = UINT32_MAX;
  // On a channel: the peer applies messages in the order that they ask for.
  bool any_order = false;
  const char* data_path = "";  // reason; static text, one line
  Duration set_up;             // duration of its commands so far
  bool was_set_up = false;     // has been in RTS
  std::unique_ptr<XrcTarget>
      last;  // XRC_RECV: set if no other session has it open and it is being closed
};

// Peer that endpoints name in requests.
struct EndpointPeer {
  uint32_t context = 0;
  uint32_t pd = 0;
  transport::Peer linked;  // as every worker knows the peer
  tenant::Charge heap;     // charge of the row and the workers' copies
};

// Endpoints that are addressed as one.
struct EndpointGroup {
  uint32_t context = 0;
  uint32_t pd = 0;
  Qpn number;
  WorkerIndex worker = 0;  // also of its members
  uint32_t key = 0;
  verbs::Dispatch dispatch = verbs::Dispatch::kHash;
  tenant::Charge heap;  // charge of the messages that destroyed members leave
  uint32_t users = 0;   // members
};

struct Mr {
  static constexpr uint64_t kEverything = UINT64_MAX;  // length of an implicit on-demand region
  uint32_t context = 0;
  uint32_t pd = 0;
  MemoryKey key;
  uint64_t address = 0;
  uint64_t length = 0;
  uint64_t iova = 0;
  uint32_t access = 0;
  uint64_t charged = 0;  // part of registered_bytes: bytes in a remapped region are charged there
  uint32_t region = 0;   // remapped region; 0: none
  uint32_t kept = 0;     // enum rocegw_kept: set by the library
  std::unique_ptr<verbs::BoundWindows> windows;  // nullptr: no window may be bound to it
  bool revoked = false;  // a change failed, and no worker has the region any more
};

struct Mw {
  uint32_t context = 0;
  uint32_t pd = 0;
  MemoryKey key;  // first key
  std::unique_ptr<verbs::MemoryWindow> window;
};

// Memory that client and gateway have mapped (pages that the client moved, or a dma-buf), or memory
// of a GPU.
struct RemappedRegion {
  // Bytes registered and remapped, descriptors, heap. A dma-buf has no charge for its bytes: its
  // pages are the client's, and registrations are charged for theirs.
  std::array<tenant::Charge, 4> charges;
  std::shared_ptr<memory::Region> memory;
  // Instead of `memory`: an allocation in the memory of a GPU, which the gateway does not map.
  std::shared_ptr<device_memory::DeviceBuffer> device;
  uint32_t users = 0;  // MRs
};

// Channel of connection manager events.
struct CmChannel {
  tenant::Charge descriptors;
  std::unique_ptr<EventChannel> events;
  uint32_t users = 0;  // ids
};

struct CmId {
  cm::CmHandle engine;  // its handle in the connection manager
  uint32_t channel = 0;
  Qpn qpn;  // queue pair that it connects
  uint64_t cookie = 0;
  cm::PortSpace port_space = cm::PortSpace::kTcp;
  uint32_t listener = 0;  // set for a connection request's id that the client has not used yet
  // Lists of such ids (cm_requests.h): of a listener its first one; of a request its neighbours.
  uint32_t first_request = 0;
  uint32_t next_request = 0;
  uint32_t previous_request = 0;
  bool listens = false;
  uint32_t events_moved = 0;  // reported on its earlier channels
};

struct Objects {
  // Returns the index of the device that the queue pair was created on.
  uint32_t DeviceOf(const Qp& qp) const { return contexts.Find(qp.context)->device; }
  // Returns the session id that the workers use for a queue pair of session `own`: that, or its
  // domain's.
  SessionId LinkedAs(SessionId own, const Qp& qp) const {
    return qp.xrcd == 0 ? own : xrcds.Find(qp.xrcd)->domain->id;
  }

  HandleTable<Context> contexts;
  HandleTable<Pd> pds;
  HandleTable<CompletionChannel> channels;
  HandleTable<Cq> cqs;
  HandleTable<Xrcd> xrcds;
  HandleTable<Srq> srqs;
  HandleTable<Qp> qps;
  HandleTable<Mr> mrs;
  HandleTable<Mw> mws;
  HandleTable<EndpointPeer> peers;
  HandleTable<EndpointGroup> groups;
  HandleTable<RemappedRegion> regions;
  HandleTable<CmChannel> cm_channels;
  HandleTable<CmId> cm_ids;
  uint64_t ahs = 0;  // address handles that the library may create
  // Attachments of queue pairs to multicast groups: handle, group.
  std::set<std::pair<uint32_t, wire::Gid>> multicast;
  KeyMap<uint32_t> qp_by_number;  // QPN to handle
  KeyMap<uint32_t> cm_id_by_qpn;  // QPN to handle, for ids that connect or are connected
};

}  // namespace rocegw::session
