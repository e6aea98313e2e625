// SPDX-License-Identifier: Apache-2.0
// Calls that join and leave multicast groups.
#include <cerrno>

#include "gateway/client/cm/cm_event.h"
#include "gateway/client/cm/cm_multicast.h"
#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"

using rocegw::client::CmError;
using rocegw::client::FinishReal;
using rocegw::client::FromRdma;
using rocegw::client::RealOf;

namespace {

int Join(rocegw::client::CmId* id, const sockaddr* address, bool receives, void* context) {
  const int error = BeginJoin(id, address, receives, context);
  return error != 0 ? CmError(error) : Complete(id);
}

}  // namespace

ROCEGW_EXPORT int rdma_join_multicast(rdma_cm_id* id, sockaddr* address, void* context) {
  if (rdma_cm_id* real = RealOf(id)) {
    return FinishReal(id, ROCEGW_REAL(rdma_join_multicast)(real, address, context));
  }
  return Join(FromRdma(id), address, true, context);
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
  return Join(FromRdma(id), attr->addr, receives, context);
}

ROCEGW_EXPORT int rdma_leave_multicast(rdma_cm_id* rdma, sockaddr* address) {
  if (rdma_cm_id* real = RealOf(rdma)) return ROCEGW_REAL(rdma_leave_multicast)(real, address);
  return CmError(LeaveGroup(FromRdma(rdma), address));
}
