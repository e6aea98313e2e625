// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/queues/multicast.h"

#include <cerrno>
#include <cstring>

#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"

namespace rocegw::client {

namespace {

int CallMulticast(uint32_t type, ibv_qp* qp, const ibv_gid& group) {
  if (qp->qp_type != IBV_QPT_UD) return EINVAL;
  rocegw_multicast request = {};
  request.qp = qp->handle;
  memcpy(request.group, group.raw, sizeof(request.group));
  rocegw_object_reply reply;
  return OfAnyDaemon(SessionOf(qp->context)->Call(type, &request, &reply));
}

}  // namespace

int AttachMulticast(ibv_qp* qp, const ibv_gid& group) {
  return CallMulticast(ROCEGW_MSG_ATTACH_MULTICAST, qp, group);
}

int DetachMulticast(ibv_qp* qp, const ibv_gid& group) {
  return CallMulticast(ROCEGW_MSG_DETACH_MULTICAST, qp, group);
}

}  // namespace rocegw::client

using rocegw::client::IsOurs;

// The LID matters for InfiniBand only.
ROCEGW_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) {
  if (!IsOurs(qp->context)) return ROCEGW_REAL(ibv_attach_mcast)(qp, gid, lid);
  return rocegw::client::WithErrno(rocegw::client::AttachMulticast(qp, *gid));
}

ROCEGW_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) {
  if (!IsOurs(qp->context)) return ROCEGW_REAL(ibv_detach_mcast)(qp, gid, lid);
  return rocegw::client::WithErrno(rocegw::client::DetachMulticast(qp, *gid));
}
