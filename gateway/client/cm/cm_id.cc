// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/cm/cm_id.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/device/object_ids.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/environment.h"

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
  const char* choice = Setting("ROCEGW_CM");
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

void RemoveId(CmId* id) {
  pthread_mutex_lock(&g_lock);
  for (CmId** link = BucketOf(id->handle); *link != nullptr; link = &(*link)->next) {
    if (*link != id) continue;
    *link = id->next;
    break;
  }
  pthread_mutex_unlock(&g_lock);
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

}  // namespace rocegw::client
