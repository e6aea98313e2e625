// SPDX-License-Identifier: Apache-2.0
// rdma_cm ids, event channels and events as programs hold them, and how they are found again when
// an event arrives. What programs hold is ours whenever a gateway is reachable (ROCEGW_CM=real:
// never), else the installed librdmacm's; behind an id of ours may be one of that library's
// (cm_real.h). Control path; any thread.
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
  // The program's descriptor is an epoll one, over the next two and the descriptor of `real`. Thus
  // a channel outlives its gateway and serves the ids of the next one.
  OwnDescriptor events;  // the daemon's records; kNoDescriptor: no gateway. Under `taking`
  OwnDescriptor lost;    // the same of a gateway that is gone, until all ids were told. Same lock
  OwnDescriptor waits;   // the program's descriptor
  rdma_event_channel* real;  // of the machine's own devices; nullptr: none yet. Under `taking`
  uint32_t turn;             // odd: the real part's
  uint32_t handle;           // under `taking`
  Session* session;          // the newest that the channel served; under `taking`
  uint32_t forks;            // ForkCount() of the process that made the channel
  // Held while a record is taken out of the socket, with no wait, and counted on its id: what is
  // still in there when somebody else holds it, nobody has.
  pthread_mutex_t taking;
  uint32_t users;  // threads in rdma_get_cm_event, and one until it is destroyed; cm_channel.cc
};

// Where a connection stands as far as this side knows. A step that can only be right where it is
// asked for wants no answer; all others are asked, and get their errno.
enum class CmStage : uint8_t {
  kNew,
  kAddressKnown,
  kRouteKnown,
  kRequested,  // came with a connection request
  kAnswered,   // the peer has accepted, and waits for a word
  kConnected,
  kBetween,  // under way, over, or another kind of id
  kAsked,    // nowhere: a step that is right there always asks
};

struct CmOption {
  int name;  // RDMA_OPTION_ID_TOS ..
  size_t length;
  uint8_t value[sizeof(int)];
};
constexpr uint32_t kMaxCmOptions = 4;

struct CmId {
  rdma_cm_id id;  // first: programs hold it
  // librdmacm's rsockets cast an id to the library's private structure, which has begun with these
  // seven members in every release: with ours laid out alike they run on our functions.
  void* device;
  void* connect_data;
  size_t connect_length;
  uint32_t events_completed;
  uint32_t connect_error;
  int synchronous;  // has a channel of its own, calls wait for their events
  // From here on ours alone.
  uint64_t mark;  // kCmIdMark
  Session* session;
  CmDevice* cm_device;  // nullptr: bound to none
  uint32_t handle;
  uint64_t cookie;
  uint32_t events_delivered;  // under the table's lock
  pthread_mutex_t lock;       // events_completed, joins
  pthread_cond_t acknowledged;
  CmStage stage;                // by StageOf and SetStage
  bool passive;                 // came with a connection request
  bool removal_told;            // under the table's lock
  uint8_t responder_resources;  // passive: what the request offers
  uint8_t initiator_depth;
  ibv_qp_init_attr* qp_init_attr;  // of rdma_create_ep, for the ids that rdma_get_request makes
  ibv_ece local_ece;
  ibv_ece remote_ece;
  rdma_cm_id* real;  // of the installed library, behind this one; cm_real.h
  bool delegated;    // calls go there; else it only listens beside ours
  uint32_t option_count;
  CmOption options[kMaxCmOptions];  // for an id of the installed library to come
  CmJoin* joins;                    // multicast groups; under `lock`
  uint32_t last_join;
  CmId* next;  // in its bucket of the table
};
static_assert(offsetof(CmId, device) == sizeof(rdma_cm_id));
static_assert(offsetof(CmId, synchronous) == sizeof(rdma_cm_id) + 3 * sizeof(void*) + 8);

struct CmEvent {
  rdma_cm_event event;  // first: programs hold it
  CmId* counted_on;     // whose count an acknowledgement raises
  uint8_t private_data[ROCEGW_CM_PRIVATE_MAX];
};

// One thread may take events while another goes on with what they brought.
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

// A session when new connection manager objects are to be ours, else nullptr. The caller gets a
// reference.
Session* AcquireForCm();

// Results as librdmacm has them: -1 and errno, or 0.
inline int CmError(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// --- channels (cm_channel.cc): nullptr or errno value
CmChannel* MakeChannel(Session* session);
// The session that new ids of the channel are made with, and the channel's handle there. After the
// end of its gateway the channel joins the next one, if there is one. The caller gets a reference.
int JoinGateway(CmChannel* channel, Session** session, uint32_t* handle);
// The channel's gateway is gone: its ids are told. Under `taking`.
void LoseGateway(CmChannel* channel);
void DestroyChannel(CmChannel* channel);
// For those who have waited, and what they waited for may be gone: the address is only compared.
bool IsOpen(const rdma_event_channel* channel, int descriptor);
// The same, with the channel there until it is left; nullptr: it is not open any more.
CmChannel* EnterChannel(const rdma_event_channel* channel, int descriptor);
void LeaveChannel(CmChannel* channel);
// That descriptor makes the channel readable.
void WatchToo(const CmChannel* channel, int descriptor);
void WatchNoMore(const CmChannel* channel, int descriptor);
void StopTaking(CmChannel* channel);
void ResumeTaking(CmChannel* channel);

// --- ids (cm_id.cc)
// In the table, but unknown to the daemon yet; nullptr: out of memory.
CmId* MakeId(Session* session, rdma_event_channel* channel, rdma_port_space port_space);
void FreeId(CmId* id);
// As rdma_create_id without a channel, for queue pairs of that type (0: as the port space has it).
// Takes over the caller's reference to the session. -1 and errno.
int CreateSynchronousId(Session* session, rdma_cm_id** result, void* context,
                        rdma_port_space port_space, uint32_t qp_type);
// Makes an id findable by the daemon's handle.
void EnterId(CmId* id, uint32_t handle);
// The id of an event, with the event counted as delivered to it; nullptr: gone.
CmId* FindForEvent(Session* session, uint32_t handle, uint64_t cookie);
// An id of the channel whose gateway is gone and that has not been told so, with that event counted
// as delivered to it; nullptr: there is none.
CmId* FindForRemoval(const rdma_event_channel* channel);
void CountDelivered(CmId* id);
// True when some id of the session has this handle.
bool IsKnown(Session* session, uint32_t handle);
void CountAcknowledged(CmId* id);
uint32_t EventsDelivered(const CmId* id);
// Until the program has acknowledged so many of those that were delivered for the id.
void WaitForAcknowledgements(CmId* id, uint32_t delivered);
void LockIds();
void UnlockIds();
void ResetIdsLock();

// --- addresses and devices (cm_address.cc)
// EINVAL for anything but IPv4 and IPv6, as librdmacm has it.
int ToWire(const sockaddr* from, rocegw_sockaddr* to);
// What an event or a reply says about where an id is and leads to.
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

// --- queue pairs (cm_qp.cc): errno values
// Whether requests about a connection take its queue pair along, and some want no answer. With an
// older daemon every step is a request of its own.
inline bool SavesRequests(const CmId* id) { return id->session->welcome().minor >= 7; }
inline bool TakesQpAlong(const CmId* id) {
  return SavesRequests(id) && id->id.qp_type == IBV_QPT_RC;
}
int ReadyQp(CmId* id, uint8_t responder_resources, uint8_t initiator_depth);
int BreakQp(CmId* id);
// Completion queues for a program that brings none; each with a channel, and the id as its context.
int MakeCompletionQueue(rdma_cm_id* id, uint32_t entries, ibv_comp_channel** channel, ibv_cq** cq);
// All that the id has, unless something of it still completes there.
void DestroyQueues(rdma_cm_id* id);

// --- shared receive queues (cm_srq.cc)
void DestroySrqOf(rdma_cm_id* id);

// What ends a side's part of a connection, with its queue pair brought to `state` (RTS before it,
// or ERR).
int StepWithQp(CmId* id, CmStage right, uint32_t type, ibv_qp_state state);

// --- events (cm_event.cc)
// Waits for the event that ends what a synchronous id has begun; 0 or -1 and errno.
int Complete(CmId* id);

template <typename Request>
int CmCall(CmId* id, uint32_t type, Request* request) {
  request->id = id->handle;
  rocegw_object_reply reply;
  return id->session->Call(type, request, &reply);
}

// A step of a connection that is asked for at `right`: fails as an event there, if at all.
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
