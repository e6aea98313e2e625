// SPDX-License-Identifier: Apache-2.0
// rdma_cm ids, event channels and events as programs hold them, and the search for their id when an
// event arrives. These objects are ours if a gateway is reachable (never with ROCEGW_CM=real), else
// the installed librdmacm's. An id of ours may have one of that library behind it (cm_real.h).
// Control path; any thread.
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

struct CmChannel {
  rdma_event_channel channel;  // first: programs hold it
  // Program's descriptor: an epoll descriptor over the next two and the descriptor of `real`, so
  // that a channel outlives its gateway and serves the ids of the next one.
  OwnDescriptor events;  // the daemon's records; kNoDescriptor: no gateway. Guarded by `taking`
  OwnDescriptor lost;    // the same of a lost gateway, until all ids were notified. Same lock
  OwnDescriptor waits;   // the program's descriptor
  rdma_event_channel*
      real;          // channel of the machine's own devices; nullptr: none yet. Guarded by `taking`
  uint32_t turn;     // odd: `real` is asked first
  uint32_t handle;   // guarded by `taking`
  Session* session;  // latest session that the channel served; guarded by `taking`
  uint32_t forks;    // ForkCount() of the process that created the channel
  // Held without waiting while a record is read from the socket and counted on its id. When another
  // thread has the lock, the records still in the socket are unread.
  pthread_mutex_t taking;
  uint32_t users;  // threads in rdma_get_cm_event, plus one until it is destroyed; cm_channel.cc
};

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

struct CmEvent {
  rdma_cm_event event;  // first: programs hold it
  CmId* counted_on;     // id whose counter an acknowledgement increments
  uint8_t private_data[ROCEGW_CM_PRIVATE_MAX];
};

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
bool IsOurs(const rdma_event_channel* channel);
inline CmId* FromRdma(rdma_cm_id* id) { return reinterpret_cast<CmId*>(id); }
inline CmChannel* FromRdma(rdma_event_channel* channel) {
  return reinterpret_cast<CmChannel*>(channel);
}

// Returns a session if new connection manager objects are to be ours, else nullptr. The caller gets
// a reference.
Session* AcquireForCm();

// Returns results as librdmacm does: -1 and errno, or 0.
inline int CmError(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// --- channels (cm_channel.cc): nullptr or errno value
CmChannel* MakeChannel(Session* session);
// Returns the session for the channel's new ids, and the channel's handle in it. After the end of
// its gateway the channel joins the next one, if there is one. The caller gets a reference.
int JoinGateway(CmChannel* channel, Session** session, uint32_t* handle);
// Handles the loss of the channel's gateway: its ids are notified. Requires `taking`.
void LoseGateway(CmChannel* channel);
void DestroyChannel(CmChannel* channel);
// For threads that have waited: the channel may be destroyed, so only the address is compared.
bool IsOpen(const rdma_event_channel* channel, int descriptor);
// Enters the channel, which exists until it is left; nullptr: it is not open any more.
CmChannel* EnterChannel(const rdma_event_channel* channel, int descriptor);
void LeaveChannel(CmChannel* channel);
// Makes the channel readable when that descriptor is.
void WatchToo(const CmChannel* channel, int descriptor);
void WatchNoMore(const CmChannel* channel, int descriptor);
void StopTaking(CmChannel* channel);
void ResumeTaking(CmChannel* channel);

// --- ids (cm_id.cc). Adds an id to the table that the daemon does not know yet; nullptr: out of
// memory.
CmId* MakeId(Session* session, rdma_event_channel* channel, rdma_port_space port_space);
void FreeId(CmId* id);
// Implements rdma_create_id without a channel, for queue pairs of that type (0: the port space's
// type). Takes over the caller's reference to the session. -1 and errno.
int CreateSynchronousId(Session* session, rdma_cm_id** result, void* context,
                        rdma_port_space port_space, uint32_t qp_type);
// Enters an id into the table by the daemon's handle.
void EnterId(CmId* id, uint32_t handle);
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

// --- addresses and devices (cm_address.cc). EINVAL for families other than IPv4 and IPv6, as in
// librdmacm.
int ToWire(const sockaddr* from, rocegw_sockaddr* to);
// Addresses and device of an id, from an event or a reply.
struct CmPlace {
  int32_t device;
  const rocegw_sockaddr* source;
  const rocegw_sockaddr* destination;
  const uint8_t* sgid;
  const uint8_t* dgid;
  uint32_t path_mtu;
  uint32_t traffic_class;
  uint32_t flow_label;
};
int TakePlace(CmId* id, const CmPlace& place);
int QueryPlace(CmId* id);

// --- queue pairs (cm_qp.cc): errno values. Returns true if connection requests move the queue pair
// too and some need no answer. With an older daemon every step is a request.
inline bool SavesRequests(const CmId* id) { return id->session->welcome().minor >= 7; }
inline bool TakesQpAlong(const CmId* id) {
  return SavesRequests(id) && id->id.qp_type == IBV_QPT_RC;
}
int ReadyQp(CmId* id, uint8_t responder_resources, uint8_t initiator_depth);
int BreakQp(CmId* id);
// Creates completion queues for a program that passes none; each with a channel, and the id as its
// context.
int MakeCompletionQueue(rdma_cm_id* id, uint32_t entries, ibv_comp_channel** channel, ibv_cq** cq);
// Destroys all queues of the id, unless an object still completes there.
void DestroyQueues(rdma_cm_id* id);

// --- shared receive queues (cm_srq.cc)
void DestroySrqOf(rdma_cm_id* id);

// Takes the last step of a side's connection, and moves its queue pair to `state` (RTS before it,
// or ERR).
int StepWithQp(CmId* id, CmStage right, uint32_t type, ibv_qp_state state);

// --- events (cm_event.cc). Waits for the event that completes a synchronous id's call; 0 or -1 and
// errno.
int Complete(CmId* id);

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
