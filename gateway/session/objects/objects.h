// SPDX-License-Identifier: Apache-2.0
// What one client owns, as the control thread keeps it. References between objects are handles of
// the same session; `users` counts those that must go first. Memory blocks belong to the session's
// segment.
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
#include "gateway/memory/region.h"
#include "gateway/session/events/event_channel.h"
#include "gateway/session/objects/handle_table.h"
#include "gateway/session/objects/xrc_domains.h"
#include "gateway/shm/segment.h"
#include "gateway/tenant/charge.h"
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
  UniqueFd ours;  // workers write into it
  uint32_t users = 0;
};

struct Cq {
  uint32_t context = 0;
  uint32_t entries = 0;
  uint32_t channel = 0;
  uint64_t cookie = 0;
  shm::Block control;
  shm::Block rings;
  std::unique_ptr<verbs::CqModeration> moderation;  // once the client has asked for it
  uint32_t users = 0;                               // QPs, a QP that uses it twice counts twice
};

// An XRC domain that the session has open.
struct Xrcd {
  uint32_t context = 0;
  XrcDomain* domain = nullptr;
  uint32_t users = 0;               // SRQs and receiving QPs of the session
  bool left = false;                // it is about to go
  std::unique_ptr<XrcDomain> last;  // and nobody else has it
};

// With all its queue pairs on one worker.
struct Srq {
  uint32_t context = 0;
  uint32_t pd = 0;
  WorkerIndex worker = 0;
  uint64_t cookie = 0;
  uint32_t xrcd = 0;           // 0: it is a basic one
  uint32_t cq = 0;             // with an xrcd: of its receives
  uint32_t number = 0;         // same: by which peers name it
  uint32_t entries = 0;        // slots
  uint32_t capacity = 0;       // receives that may be posted
  uint32_t payload_slots = 0;  // the first so many slots have room for a payload
  uint32_t max_sge = 0;
  uint32_t payload_stride = 0;
  shm::Block control;
  shm::Block order;
  shm::Block slots;
  shm::Block payload;
  tenant::Charge heap;  // of receives that the worker has taken
  uint32_t users = 0;   // QPs
};

struct Qp {
  uint32_t context = 0;
  uint32_t pd = 0;
  uint32_t send_cq = 0;
  uint32_t recv_cq = 0;
  uint32_t srq = 0;
  uint32_t group = 0;  // 0: none
  uint32_t xrcd = 0;   // XRC_RECV: its domain, to which it belongs; it has nothing of the session's
  verbs::QpType type = verbs::QpType::kRc;
  Qpn qpn;
  Qpn peer;  // as last set, whether or not the QP took it
  WorkerIndex worker = 0;
  uint64_t cookie = 0;
  uint32_t sq_entries = 0;
  uint32_t rq_entries = 0;
  uint32_t max_send_sge = 0;
  uint32_t max_recv_sge = 0;
  uint32_t max_inline = 0;
  shm::Block control;
  shm::Block status;
  shm::Block sq;
  shm::Block sq_payload;
  shm::Block rq;
  shm::Block rq_payload;
  uint32_t doorbell_page = 0;
  uint32_t doorbell_bit = 0;
  tenant::Charge heap;  // of the worker's copies of the queues
  // It is on its way to RTS: nothing that the worker could refuse, so programs need not wait for
  // it. `state` is as told to the worker last.
  bool setting_up = false;
  verbs::QpState state = verbs::QpState::kReset;
  // Options of gateway to gateway that the program allows (ibv_set_ece).
  uint32_t ece_allowed = UINT32_MAX;
  // On a channel: the other end lets messages take effect as they ask for.
  bool any_order = false;
  const char* data_path = "";       // why; static text, one line
  Duration set_up;                  // what its commands took until now
  bool was_set_up = false;          // it has been in RTS
  std::unique_ptr<XrcTarget> last;  // XRC_RECV: nobody else has it, and it is about to go
};

// Whom endpoints name.
struct EndpointPeer {
  uint32_t context = 0;
  uint32_t pd = 0;
};

// Endpoints that are addressed as one.
struct EndpointGroup {
  uint32_t context = 0;
  uint32_t pd = 0;
  Qpn number;
  WorkerIndex worker = 0;  // its members', too
  uint32_t key = 0;
  uint32_t users = 0;  // members
};

struct Mr {
  static constexpr uint64_t kEverything = UINT64_MAX;  // length of an implicit on-demand region
  uint32_t context = 0;
  uint32_t pd = 0;
  MemoryKey key;
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t access = 0;
  uint64_t charged = 0;  // of registered_bytes: what lies in a region is counted there
  uint32_t region = 0;   // remapped; 0: none
  uint32_t kept = 0;     // enum rocegw_kept: what the library says about it
  std::unique_ptr<verbs::BoundWindows> windows;  // nullptr: none may be bound to it
};

struct Mw {
  uint32_t context = 0;
  uint32_t pd = 0;
  MemoryKey key;  // the first
  std::unique_ptr<verbs::MemoryWindow> window;
};

struct RemappedRegion {
  std::array<tenant::Charge, 4> charges;  // bytes registered and remapped, descriptors, heap
  std::shared_ptr<memory::Region> memory;
  uint32_t users = 0;  // MRs
};

// Channel of connection manager events.
struct CmChannel {
  tenant::Charge descriptors;
  std::unique_ptr<EventChannel> events;
  uint32_t users = 0;  // ids
};

struct CmId {
  cm::CmHandle engine;  // its name in the connection manager
  uint32_t channel = 0;
  Qpn qpn;  // that it connects
  uint64_t cookie = 0;
  cm::PortSpace port_space = cm::PortSpace::kTcp;
  uint32_t listener = 0;  // of an id that came with a request and was not named by the client yet
  bool listens = false;
  uint32_t events_moved = 0;  // reported on channels that it was on before
};

struct Objects {
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
  uint64_t ahs = 0;  // address handles that the library may make
  // Attachments of queue pairs to multicast groups: handle, group.
  std::set<std::pair<uint32_t, wire::Gid>> multicast;
  KeyMap<uint32_t> qp_by_number;  // QPN to handle
  KeyMap<uint32_t> cm_id_by_qpn;  // QPN to handle, of ids that connect or are connected
};

}  // namespace rocegw::session
