// SPDX-License-Identifier: Apache-2.0
// rdma_cm ids as programs hold them: their state, and the table that finds the id of an event. Ids
// are ours if a gateway is reachable (never with ROCEGW_CM=real), else the installed librdmacm's.
// An id of ours may have one of that library behind it (cm_real.h). Control path; any thread.
#pragma once

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

struct CmDevice;
struct CmJoin;

// Known state of a connection. A step that is valid only in the current state needs no answer from
// the daemon; all others are asked and get their errno.
enum class CmStage : uint8_t {
  kNew,
  kAddressKnown,
  kRouteKnown,
  kRequested,  // created for a connection request
  kAnswered,   // the peer has accepted and waits for the answer
  kConnected,
  kBetween,  // in progress, ended, or another kind of id
  kAsked,    // no state of an id: a step with it always asks
};

struct CmOption {
  int name;  // RDMA_OPTION_ID_TOS and so on
  size_t length;
  uint8_t value[sizeof(int)];
};
constexpr uint32_t kMaxCmOptions = 4;

struct CmId {
  rdma_cm_id id;  // first: programs hold it
  // librdmacm's rsockets cast an id to the library's private structure, which begins with these
  // seven members in every release. With the same layout they work on our functions.
  void* device;
  void* connect_data;
  size_t connect_length;
  uint32_t events_completed;
  uint32_t connect_error;
  int synchronous;  // has its own channel; calls wait for their events
  // Members of this library only.
  uint64_t mark;  // kCmIdMark
  Session* session;
  CmDevice* cm_device;  // nullptr: not bound to a device
  uint32_t handle;
  uint64_t cookie;
  uint32_t events_delivered;  // guarded by the table's lock
  pthread_mutex_t lock;       // guards events_completed and joins
  pthread_cond_t acknowledged;
  CmStage stage;                // accessed by StageOf and SetStage
  bool passive;                 // created for a connection request
  bool holds_port;              // the program chose its port, or it listens
  bool removal_told;            // guarded by the table's lock
  uint8_t responder_resources;  // passive: values of the request
  uint8_t initiator_depth;
  ibv_qp_init_attr* qp_init_attr;  // from rdma_create_ep, for the ids that rdma_get_request creates
  ibv_ece local_ece;
  ibv_ece remote_ece;
  rdma_cm_id* real;  // id of the installed library behind this one; cm_real.h
  bool delegated;    // calls go to `real`; otherwise it only listens beside ours
  uint32_t option_count;
  CmOption options[kMaxCmOptions];  // for a later id of the installed library
  CmJoin* joins;                    // multicast groups; guarded by `lock`
  uint32_t last_join;
  CmId* next;  // in its hash bucket
};
static_assert(offsetof(CmId, device) == sizeof(rdma_cm_id));
static_assert(offsetof(CmId, synchronous) == sizeof(rdma_cm_id) + 3 * sizeof(void*) + 8);

// Atomic: one thread may take events while another handles theirs.
inline CmStage StageOf(const CmId* id) {
  CmStage stage;
  __atomic_load(&id->stage, &stage, __ATOMIC_ACQUIRE);
  return stage;
}
inline void SetStage(CmId* id, CmStage stage) {
  __atomic_store(&id->stage, &stage, __ATOMIC_RELEASE);
}

constexpr uint64_t kCmIdMark = 0x64695f6d63776772;

inline bool IsOurs(const rdma_cm_id* id) {
  return reinterpret_cast<const CmId*>(id)->mark == kCmIdMark;
}
inline CmId* FromRdma(rdma_cm_id* id) { return reinterpret_cast<CmId*>(id); }

// Returns a session if new connection manager objects are to be ours, else nullptr. The caller gets
// a reference.
Session* AcquireForCm();

// Returns results as librdmacm does: -1 and errno, or 0.
inline int CmError(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// Makes an id that the daemon does not know yet; nullptr: out of memory. FreeId (cm_lifetime.h)
// frees it.
CmId* MakeId(Session* session, rdma_event_channel* channel, rdma_port_space port_space);
// Enters an id into the table by the daemon's handle.
void EnterId(CmId* id, uint32_t handle);
// Removes an id from the table; an id that was not entered is ignored.
void RemoveId(CmId* id);
// Returns the id of an event and counts the event as delivered to it; nullptr: destroyed.
CmId* FindForEvent(Session* session, uint32_t handle, uint64_t cookie);
// Returns an id of the channel that must still be told of its gateway's loss, and counts that event
// as delivered; nullptr: none.
CmId* FindForRemoval(const rdma_event_channel* channel);
void CountDelivered(CmId* id);
// Returns true if an id of the session has this handle.
bool IsKnown(Session* session, uint32_t handle);
void CountAcknowledged(CmId* id);
uint32_t EventsDelivered(const CmId* id);
// Waits until the program has acknowledged so many of the id's delivered events.
void WaitForAcknowledgements(CmId* id, uint32_t delivered);
void LockIds();
void UnlockIds();
void ResetIdsLock();

// Returns true if some requests need no answer. With an older daemon every step is a request.
inline bool SavesRequests(const CmId* id) { return id->session->welcome().minor >= 7; }

template <typename Request>
int CmCall(CmId* id, uint32_t type, Request* request) {
  request->id = id->handle;
  rocegw_object_reply reply;
  return id->session->Call(type, request, &reply);
}

// Takes a step of a connection. If the id is in stage `right`, a failure is reported as an event.
template <typename Request>
int CmStep(CmId* id, CmStage right, uint32_t type, Request* request) {
  constexpr uint32_t kFailuresAreEvents = 9;
  const bool tell = StageOf(id) == right && id->session->welcome().minor >= kFailuresAreEvents;
  if (!tell) return CmCall(id, type, request);
  SetStage(id, CmStage::kBetween);
  request->id = id->handle;
  return id->session->Tell(type, request);
}

}  // namespace rocegw::client
