// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/cm/cm_multicast.h"

#include <netinet/in.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/cm/cm_id.h"
#include "gateway/client/cm/cm_place.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/queues/multicast.h"

namespace rocegw::client {

struct CmJoin {
  CmJoin* next;
  uint32_t number;
  sockaddr_storage address;
  socklen_t length;
  void* context;
  bool receives;
  bool attached;
  ibv_gid group;
};

namespace {

socklen_t LengthOf(const sockaddr* address) {
  if (address == nullptr) return 0;
  if (address->sa_family == AF_INET) return sizeof(sockaddr_in);
  return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

void Enter(CmId* id, CmJoin* join) {
  pthread_mutex_lock(&id->lock);
  join->number = ++id->last_join;
  join->next = id->joins;
  id->joins = join;
  pthread_mutex_unlock(&id->lock);
}

// Removes and returns the first join that fits; nullptr: none.
template <typename Fits>
CmJoin* Take(CmId* id, Fits fits) {
  pthread_mutex_lock(&id->lock);
  CmJoin** link = &id->joins;
  while (*link != nullptr && !fits(**link)) link = &(*link)->next;
  CmJoin* found = *link;
  if (found != nullptr) *link = found->next;
  pthread_mutex_unlock(&id->lock);
  return found;
}

// Detaches the queue pair; the join stays.
void Detach(CmId* id, CmJoin* join) {
  if (join->attached && id->id.qp != nullptr) DetachMulticast(id->id.qp, join->group);
  join->attached = false;
}

}  // namespace

int BeginJoin(CmId* id, const sockaddr* address, bool receives, void* context) {
  auto* join = static_cast<CmJoin*>(calloc(1, sizeof(CmJoin)));
  if (join == nullptr) return ENOMEM;
  join->length = LengthOf(address);
  join->context = context;
  join->receives = receives;
  rocegw_cm_join request = {};
  int error = join->length == 0 ? EINVAL : ToWire(address, &request.group);
  if (error != 0) {
    free(join);
    return error;
  }
  memcpy(&join->address, address, join->length);
  Enter(id, join);
  request.join = join->number;
  error = OfAnyDaemon(CmCall(id, ROCEGW_MSG_CM_JOIN, &request));
  if (error != 0) free(Take(id, [&](const CmJoin& other) { return &other == join; }));
  return error;
}

int LeaveGroup(CmId* id, const sockaddr* address) {
  const socklen_t length = LengthOf(address);
  if (length == 0) return EINVAL;
  CmJoin* join = Take(id, [&](const CmJoin& other) {
    return other.length == length && memcmp(&other.address, address, length) == 0;
  });
  if (join == nullptr) return EADDRNOTAVAIL;
  Detach(id, join);
  free(join);
  return 0;
}

bool FinishJoin(CmId* id, uint32_t number, rdma_cm_event* event) {
  pthread_mutex_lock(&id->lock);
  CmJoin* join = id->joins;
  while (join != nullptr && join->number != number) join = join->next;
  if (join != nullptr) {
    rdma_ud_param& param = event->param.ud;
    param.private_data = join->context;
    param.private_data_len = 0;
    join->group = param.ah_attr.grh.dgid;
    if (join->receives && id->id.qp != nullptr && event->status == 0) {
      event->status = AttachMulticast(id->id.qp, join->group);
      join->attached = event->status == 0;
      if (event->status != 0) event->event = RDMA_CM_EVENT_MULTICAST_ERROR;
    }
  }
  pthread_mutex_unlock(&id->lock);
  return join != nullptr;
}

void DetachGroups(CmId* id) {
  pthread_mutex_lock(&id->lock);
  for (CmJoin* join = id->joins; join != nullptr; join = join->next) Detach(id, join);
  pthread_mutex_unlock(&id->lock);
}

void ForgetGroups(CmId* id) {
  while (CmJoin* join = Take(id, [](const CmJoin&) { return true; })) free(join);
}

}  // namespace rocegw::client
