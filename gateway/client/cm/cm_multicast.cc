// SPDX-License-Identifier: Apache-2.0
// Multicast of rdma_cm: the daemon answers a join with an event that contains the group's address;
// when the event is read, the id's queue pair is attached, as in librdmacm.
#include "gateway/client/cm/cm_multicast.h"

#include <netinet/in.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"
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

int Join(rdma_cm_id* rdma, const sockaddr* address, bool receives, void* context) {
  CmId* id = FromRdma(rdma);
  auto* join = static_cast<CmJoin*>(calloc(1, sizeof(CmJoin)));
  if (join == nullptr) return CmError(ENOMEM);
  join->length = LengthOf(address);
  join->context = context;
  join->receives = receives;
  rocegw_cm_join request = {};
  int error = join->length == 0 ? EINVAL : ToWire(address, &request.group);
  if (error != 0) {
    free(join);
    return CmError(error);
  }
  memcpy(&join->address, address, join->length);
  Enter(id, join);
  request.join = join->number;
  error = OfAnyDaemon(CmCall(id, ROCEGW_MSG_CM_JOIN, &request));
  if (error == 0) return Complete(id);
  free(Take(id, [&](const CmJoin& other) { return &other == join; }));
  return CmError(error);
}

// Detaches the queue pair; the join stays.
void Detach(CmId* id, CmJoin* join) {
  if (join->attached && id->id.qp != nullptr) DetachMulticast(id->id.qp, join->group);
  join->attached = false;
}

}  // namespace

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

using rocegw::client::CmError;
using rocegw::client::CmJoin;
using rocegw::client::FinishReal;
using rocegw::client::FromRdma;
using rocegw::client::RealOf;

ROCEGW_EXPORT int rdma_join_multicast(rdma_cm_id* id, sockaddr* address, void* context) {
  if (rdma_cm_id* real = RealOf(id)) {
    return FinishReal(id, ROCEGW_REAL(rdma_join_multicast)(real, address, context));
  }
  return rocegw::client::Join(id, address, true, context);
}

ROCEGW_EXPORT int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attr,
                                         void* context) {
  if (rdma_cm_id* real = RealOf(id)) {
    return FinishReal(id, ROCEGW_REAL(rdma_join_multicast_ex)(real, attr, context));
  }
  constexpr uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if ((attr->comp_mask & kNeeded) != kNeeded) return CmError(EINVAL);
  if ((attr->comp_mask & ~kNeeded) != 0) return CmError(ENOTSUP);
  if (attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) return CmError(EINVAL);
  const bool receives = attr->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER;
  return rocegw::client::Join(id, attr->addr, receives, context);
}

ROCEGW_EXPORT int rdma_leave_multicast(rdma_cm_id* rdma, sockaddr* address) {
  if (rdma_cm_id* real = RealOf(rdma)) return ROCEGW_REAL(rdma_leave_multicast)(real, address);
  const socklen_t length = rocegw::client::LengthOf(address);
  if (length == 0) return CmError(EINVAL);
  CmJoin* join = rocegw::client::Take(FromRdma(rdma), [&](const CmJoin& other) {
    return other.length == length && memcmp(&other.address, address, length) == 0;
  });
  if (join == nullptr) return CmError(EADDRNOTAVAIL);
  rocegw::client::Detach(FromRdma(rdma), join);
  free(join);
  return 0;
}
