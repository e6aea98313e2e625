// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/cm/cm_id.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/cm/cm_devices.h"
#include "gateway/client/cm/cm_multicast.h"
#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/object_ids.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"

namespace rocegw::client {

namespace {

constexpr uint32_t kBuckets = 1024;

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // guards the table and events_delivered
CmId* g_buckets[kBuckets];

CmId** BucketOf(uint32_t handle) { return &g_buckets[handle % kBuckets]; }

CmId* FindLocked(const Session* session, uint32_t handle) {
  CmId* id = *BucketOf(handle);
  while (id != nullptr && (id->handle != handle || id->session != session)) id = id->next;
  return id;
}

ibv_qp_type QpTypeOf(rdma_port_space port_space) {
  return port_space == RDMA_PS_UDP || port_space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

}  // namespace

Session* AcquireForCm() {
  const char* choice = getenv("ROCEGW_CM");
  if (choice != nullptr && strcmp(choice, "real") == 0) return nullptr;
  return Session::Acquire();
}

CmId* MakeId(Session* session, rdma_event_channel* channel, rdma_port_space port_space) {
  auto* id = MakeObject<CmId>();
  if (id == nullptr) return nullptr;
  id->cookie = AddObject(ObjectKind::kCmId, id);
  if (id->cookie == 0) {
    free(id);
    return nullptr;
  }
  id->mark = kCmIdMark;
  id->session = session;
  session->AddReference();
  id->id.channel = channel;
  id->id.ps = port_space;
  id->id.qp_type = QpTypeOf(port_space);
  pthread_mutex_init(&id->lock, nullptr);
  pthread_cond_init(&id->acknowledged, nullptr);
  return id;
}

void EnterId(CmId* id, uint32_t handle) {
  id->handle = handle;
  pthread_mutex_lock(&g_lock);
  CmId** bucket = BucketOf(handle);
  id->next = *bucket;
  *bucket = id;
  pthread_mutex_unlock(&g_lock);
}

void FreeId(CmId* id) {
  pthread_mutex_lock(&g_lock);
  for (CmId** link = BucketOf(id->handle); *link != nullptr; link = &(*link)->next) {
    if (*link != id) continue;
    *link = id->next;
    break;
  }
  pthread_mutex_unlock(&g_lock);
  RemoveObject(id->cookie);
  if (id->id.event != nullptr) rdma_ack_cm_event(id->id.event);
  WaitForAcknowledgements(id, EventsDelivered(id));
  if (id->synchronous != 0) DestroyChannel(FromRdma(id->id.channel));
  if (id->cm_device != nullptr) ReleaseCmDevice(id->cm_device);
  if (!id->delegated) free(id->id.route.path_rec);
  free(id->qp_init_attr);
  ForgetGroups(id);
  pthread_cond_destroy(&id->acknowledged);
  pthread_mutex_destroy(&id->lock);
  id->mark = 0;
  id->session->Release();
  free(id);
}

CmId* FindForEvent(Session* session, uint32_t handle, uint64_t cookie) {
  pthread_mutex_lock(&g_lock);
  CmId* id = FindLocked(session, handle);
  // The daemon may have given the handle of a destroyed id to a new one while an event was waiting.
  // The id of a request has no cookie at the daemon until it is accepted.
  if (id != nullptr && !id->passive && id->cookie != cookie) id = nullptr;
  if (id != nullptr) ++id->events_delivered;
  pthread_mutex_unlock(&g_lock);
  return id;
}

CmId* FindForRemoval(const rdma_event_channel* channel) {
  pthread_mutex_lock(&g_lock);
  CmId* found = nullptr;
  for (uint32_t i = 0; i < kBuckets && found == nullptr; ++i) {
    found = g_buckets[i];
    while (found != nullptr && (found->id.channel != channel || found->removal_told ||
                                found->delegated || !found->session->dead())) {
      found = found->next;
    }
  }
  if (found != nullptr) {
    found->removal_told = true;
    ++found->events_delivered;
  }
  pthread_mutex_unlock(&g_lock);
  return found;
}

void CountDelivered(CmId* id) {
  pthread_mutex_lock(&g_lock);
  ++id->events_delivered;
  pthread_mutex_unlock(&g_lock);
}

bool IsKnown(Session* session, uint32_t handle) {
  pthread_mutex_lock(&g_lock);
  const bool known = FindLocked(session, handle) != nullptr;
  pthread_mutex_unlock(&g_lock);
  return known;
}

void CountAcknowledged(CmId* id) {
  pthread_mutex_lock(&id->lock);
  ++id->events_completed;
  pthread_cond_signal(&id->acknowledged);
  pthread_mutex_unlock(&id->lock);
}

uint32_t EventsDelivered(const CmId* id) {
  pthread_mutex_lock(&g_lock);
  const uint32_t delivered = id->events_delivered;
  pthread_mutex_unlock(&g_lock);
  return delivered;
}

void WaitForAcknowledgements(CmId* id, uint32_t delivered) {
  if (id->session->inherited()) return;
  pthread_mutex_lock(&id->lock);
  while (static_cast<int32_t>(id->events_completed - delivered) < 0) {
    pthread_cond_wait(&id->acknowledged, &id->lock);
  }
  pthread_mutex_unlock(&id->lock);
}

void LockIds() { pthread_mutex_lock(&g_lock); }
void UnlockIds() { pthread_mutex_unlock(&g_lock); }
void ResetIdsLock() { pthread_mutex_init(&g_lock, nullptr); }

namespace {

// Implements rdma_create_id for queue pairs of that type; 0: the port space's type. Without a
// channel, the id gets its own. `handle`: the channel's handle in the session. Returns -1 and
// errno.
int CreateId(Session* session, rdma_event_channel* channel, uint32_t handle, rdma_cm_id** result,
             void* context, rdma_port_space port_space, uint32_t qp_type) {
  CmChannel* own = nullptr;
  if (channel == nullptr) {
    own = MakeChannel(session);
    if (own == nullptr) return -1;
    channel = &own->channel;
    handle = own->handle;
  }
  CmId* id = MakeId(session, channel, port_space);
  if (id == nullptr) {
    if (own != nullptr) DestroyChannel(own);
    return CmError(ENOMEM);
  }
  id->synchronous = own != nullptr ? 1 : 0;
  id->id.context = context;
  if (qp_type != 0) id->id.qp_type = static_cast<ibv_qp_type>(qp_type);
  rocegw_cm_create_id request = {};
  request.channel = handle;
  request.port_space = port_space;
  request.qp_type = qp_type;
  request.cookie = id->cookie;
  rocegw_object_reply reply;
  const int error = session->Call(ROCEGW_MSG_CM_CREATE_ID, &request, &reply);
  if (error != 0) {
    FreeId(id);
    return CmError(error);
  }
  EnterId(id, reply.handle);
  *result = &id->id;
  return 0;
}

// Moves the id to another channel with all unread events; *delivered is the number of read ones.
int MoveEvents(CmId* id, CmChannel* to, uint32_t* delivered) {
  constexpr uint32_t kUnreadEventsMove = 14;
  CmChannel* from = FromRdma(id->id.channel);
  rocegw_cm_migrate request = {};
  request.id = id->handle;
  request.channel = to->handle;
  const bool unread = id->session->welcome().minor >= kUnreadEventsMove;
  rocegw_object_reply reply;
  if (const int failure = ReadyToMigrate(id, to)) return failure;
  StopTaking(from);
  *delivered = EventsDelivered(id);
  // A request to the installed library has no handle at the daemon.
  int error = id->handle == 0 ? 0
                              : id->session->Call(ROCEGW_MSG_CM_MIGRATE, &request, &reply, nullptr,
                                                  unread ? from->events.number : -1);
  if (error == 0) error = MigrateReal(id, to);
  ResumeTaking(from);
  return error;
}

}  // namespace

namespace {

int CreateIdOn(CmChannel* channel, rdma_cm_id** result, void* context, rdma_port_space port_space) {
  Session* session = nullptr;
  uint32_t handle = 0;
  if (const int error = JoinGateway(channel, &session, &handle)) return CmError(error);
  const int created = CreateId(session, &channel->channel, handle, result, context, port_space, 0);
  const int saved = errno;
  session->Release();
  errno = saved;
  return created;
}

}  // namespace

int CreateSynchronousId(Session* session, rdma_cm_id** result, void* context,
                        rdma_port_space port_space, uint32_t qp_type) {
  const int created = CreateId(session, nullptr, 0, result, context, port_space, qp_type);
  const int saved = errno;
  session->Release();
  errno = saved;
  return created;
}

}  // namespace rocegw::client

using rocegw::client::AcquireForCm;
using rocegw::client::CmChannel;
using rocegw::client::CmError;
using rocegw::client::CmId;
using rocegw::client::FromRdma;
using rocegw::client::IsOurs;
using rocegw::client::Session;

ROCEGW_EXPORT int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                                 rdma_port_space port_space) {
  if (channel != nullptr && !IsOurs(channel)) {
    return ROCEGW_REAL(rdma_create_id)(channel, id, context, port_space);
  }
  if (channel != nullptr) {
    return rocegw::client::CreateIdOn(FromRdma(channel), id, context, port_space);
  }
  Session* session = AcquireForCm();
  if (session == nullptr) {
    const auto real = ROCEGW_REAL(rdma_create_id);
    return real != nullptr ? real(channel, id, context, port_space) : CmError(ENODEV);
  }
  return rocegw::client::CreateSynchronousId(session, id, context, port_space, 0);
}

ROCEGW_EXPORT int rdma_destroy_id(rdma_cm_id* rdma) {
  if (!IsOurs(rdma)) return ROCEGW_REAL(rdma_destroy_id)(rdma);
  CmId* id = FromRdma(rdma);
  if (DestroyReal(id) != 0) return -1;
  if (id->handle != 0) {
    const int error = id->session->CallDestroy(ROCEGW_MSG_CM_DESTROY_ID, id->handle);
    if (error != 0) return CmError(error);
  }
  FreeId(id);
  return 0;
}

ROCEGW_EXPORT int rdma_migrate_id(rdma_cm_id* rdma, rdma_event_channel* channel) {
  if (!IsOurs(rdma)) return ROCEGW_REAL(rdma_migrate_id)(rdma, channel);
  CmId* id = FromRdma(rdma);
  CmChannel* own = nullptr;
  if (channel == nullptr) {
    own = rocegw::client::MakeChannel(id->session);
    if (own == nullptr) return -1;
    channel = &own->channel;
  } else if (!IsOurs(channel) || FromRdma(channel)->session != id->session) {
    return CmError(EINVAL);
  }
  uint32_t delivered = 0;
  const int error = rocegw::client::MoveEvents(id, FromRdma(channel), &delivered);
  if (error != 0) {
    if (own != nullptr) DestroyChannel(own);
    return CmError(error);
  }
  if (id->synchronous != 0) {
    if (rdma->event != nullptr) {
      rdma_ack_cm_event(rdma->event);
      rdma->event = nullptr;
    }
    DestroyChannel(FromRdma(rdma->channel));
  }
  // Other threads may be in calls of the id, so an unchanged value is not written.
  const int synchronous = own != nullptr ? 1 : 0;
  if (id->synchronous != synchronous) id->synchronous = synchronous;
  rdma->channel = channel;
  // Events read from the old channel belong to its users; when they are acknowledged, all later
  // ones are on the new channel.
  WaitForAcknowledgements(id, delivered);
  return 0;
}
