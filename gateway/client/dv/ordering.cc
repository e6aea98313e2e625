// SPDX-License-Identifier: Apache-2.0
// Calls of rocegwdv.h about ordering: arguments are checked here, and again by the daemon.
#include <cerrno>
#include <cstring>

#include "gateway/client/device/device.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/dv/known_size.h"
#include "gateway/client/dv/peer.h"
#include "gateway/client/dv/rocegwdv.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/queue_pair.h"

namespace rocegw::client {
namespace {

static_assert(int{ROCEGWDV_SERVICE_BY_TARGET} == int{ROCEGW_SERVICE_BY_TARGET} &&
              int{ROCEGWDV_SERVICE_BY_INITIATOR} == int{ROCEGW_SERVICE_BY_INITIATOR} &&
              int{ROCEGWDV_SERVICE_BY_LOWER_LAYER} == int{ROCEGW_SERVICE_BY_LOWER_LAYER} &&
              int{ROCEGWDV_SERVICE_UNORDERED} == int{ROCEGW_SERVICE_UNORDERED});
static_assert(int{ROCEGWDV_PATH_NONE} == int{ROCEGW_PATH_NONE} &&
              int{ROCEGWDV_PATH_NATIVE} == int{ROCEGW_PATH_NATIVE} &&
              int{ROCEGWDV_PATH_CHANNEL} == int{ROCEGW_PATH_CHANNEL} &&
              int{ROCEGWDV_PATH_ANY_ORDER} == int{ROCEGW_PATH_ANY_ORDER});

constexpr uint32_t kFences = ROCEGWDV_FENCE_READS | ROCEGWDV_FENCE_ALL | ROCEGWDV_FENCE_TARGET;
int CheckInit(const ibv_qp_init_attr& attr, const rocegwdv_qp_init_attr& dv) {
  if (attr.qp_type != IBV_QPT_RC) return EOPNOTSUPP;
  if (dv.service_mode > ROCEGWDV_SERVICE_UNORDERED || dv.reserved != 0) return EINVAL;
  return CheckOrders(dv.service_mode, dv.execution_order, dv.completion_order);
}

constexpr uint32_t kEndpointOperations = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM |
                                         1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM;
constexpr uint32_t kEndpointReads =
    1u << IBV_WR_RDMA_READ | 1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD;

constexpr uint32_t kFurtherAtomics =
    1u << ROCEGWDV_WR_ATOMIC_SWAP | 1u << ROCEGWDV_WR_ATOMIC_LOAD | 1u << ROCEGWDV_WR_ATOMIC_STORE |
    1u << ROCEGWDV_WR_ATOMIC_FETCH_AND | 1u << ROCEGWDV_WR_ATOMIC_FETCH_OR |
    1u << ROCEGWDV_WR_ATOMIC_FETCH_XOR | 1u << ROCEGWDV_WR_ATOMIC_FETCH_SUB;
static_assert(int{ROCEGWDV_WR_ATOMIC_SWAP} == int{ROCEGW_WR_ATOMIC_SWAP} &&
              int{ROCEGWDV_WR_ATOMIC_LOAD} == int{ROCEGW_WR_ATOMIC_LOAD} &&
              int{ROCEGWDV_WR_ATOMIC_STORE} == int{ROCEGW_WR_ATOMIC_STORE} &&
              int{ROCEGWDV_WR_ATOMIC_FETCH_AND} == int{ROCEGW_WR_ATOMIC_FETCH_AND} &&
              int{ROCEGWDV_WR_ATOMIC_FETCH_OR} == int{ROCEGW_WR_ATOMIC_FETCH_OR} &&
              int{ROCEGWDV_WR_ATOMIC_FETCH_XOR} == int{ROCEGW_WR_ATOMIC_FETCH_XOR} &&
              int{ROCEGWDV_WR_ATOMIC_FETCH_SUB} == int{ROCEGW_WR_ATOMIC_FETCH_SUB});

// Returns true if the request is one of the operations. The opcode may be any number.
bool IsOneOf(const rocegwdv_send_wr& wr, uint32_t operations) {
  uint32_t opcode;
  memcpy(&opcode, &wr.wr.opcode, sizeof opcode);
  return opcode < 32 && (1u << opcode & operations) != 0;
}

// Returns EOPNOTSUPP for a request that the daemon lacks.
int CheckKnown(const ibv_qp& qp, const rocegwdv_send_wr& wr) {
  if (IsOneOf(wr, kFurtherAtomics) && !DaemonKnowsFetchOperate(SessionOf(qp.context)))
    return EOPNOTSUPP;
  if (wr.peer == nullptr) return 0;
  if (wr.peer->context != qp.context) return EINVAL;
  return IsOneOf(wr, kEndpointReads) && !DaemonKnowsEndpointReads(SessionOf(qp.context))
             ? EOPNOTSUPP
             : 0;
}

// Sets the flags of one request; EINVAL for undefined values.
int OrderingOf(const Qp& qp, const rocegwdv_send_wr& wr, uint32_t* flags) {
  uint32_t order = wr.execution_order;
  if (wr.comp_mask != 0 || order > ROCEGWDV_ORDER_STRONG || (wr.fence & ~kFences) != 0) {
    return EINVAL;
  }
  if (order == ROCEGWDV_ORDER_DEFAULT) order = qp.execution_order;
  // Waiting at the target requires strong order, which such a queue pair does not have.
  const bool target = (wr.fence & ROCEGWDV_FENCE_TARGET) != 0;
  if (HasNoOrder(qp.service_mode) && (order > ROCEGWDV_ORDER_NONE || target)) {
    return EINVAL;
  }
  if (target && wr.execution_order != ROCEGWDV_ORDER_DEFAULT &&
      wr.execution_order != ROCEGWDV_ORDER_STRONG) {
    return EINVAL;
  }
  *flags = target ? uint32_t{ROCEGW_WQE_FENCE_TARGET} : OrderFlags(order);
  if (qp.service_mode == ROCEGWDV_SERVICE_UNACKNOWLEDGED) {
    // These need an answer.
    if (IsOneOf(wr, kEndpointReads | kFurtherAtomics)) return EINVAL;
    *flags |= ROCEGW_WQE_UNACKNOWLEDGED;
  }
  if ((wr.fence & ROCEGWDV_FENCE_READS) != 0) *flags |= ROCEGW_WQE_FENCE;
  if ((wr.fence & ROCEGWDV_FENCE_ALL) != 0) *flags |= ROCEGW_WQE_FENCE_ALL;
  return 0;
}

}  // namespace
}  // namespace rocegw::client

using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
using rocegw::client::Qp;
using rocegw::client::SessionOf;

ROCEGW_EXPORT bool rocegwdv_is_supported(ibv_device* device) { return IsOurs(device); }

ROCEGW_EXPORT int rocegwdv_query_device(ibv_context* context, rocegwdv_device_attr* attr,
                                        size_t size) {
  if (!IsOurs(context)) return EOPNOTSUPP;
  if (attr == nullptr || size < sizeof(attr->comp_mask)) return EINVAL;
  if (!rocegw::client::DaemonKnowsOrder(SessionOf(context))) return EOPNOTSUPP;
  rocegwdv_device_attr known = {};
  known.service_modes = (2u << ROCEGWDV_SERVICE_UNORDERED) - 1;
  known.execution_orders = (2u << ROCEGWDV_ORDER_STRONG) - 1;
  known.fences = rocegw::client::kFences;
  known.completion_orders = (2u << ROCEGWDV_COMPLETION_ANY) - 1;
  known.ep_operations = rocegw::client::kEndpointOperations;
  if (rocegw::client::DaemonKnowsEndpointReads(SessionOf(context)))
    known.ep_operations |= rocegw::client::kEndpointReads;
  if (rocegw::client::DaemonKnowsFetchOperate(SessionOf(context))) {
    known.ep_operations |= rocegw::client::kFurtherAtomics;
    known.qp_operations = rocegw::client::kFurtherAtomics;
    known.service_modes |= 1u << ROCEGWDV_SERVICE_UNACKNOWLEDGED;
  }
  rocegw::client::CopyKnown(known, attr, size);
  return 0;
}

ROCEGW_EXPORT ibv_qp* rocegwdv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr,
                                         const rocegwdv_qp_init_attr* dv_attr, size_t size) {
  rocegwdv_qp_init_attr dv;
  int error = 0;
  if (pd == nullptr || attr == nullptr || dv_attr == nullptr) {
    error = EINVAL;
  } else if (!IsOurs(pd->context) || !rocegw::client::DaemonKnowsOrder(SessionOf(pd->context)) ||
             !rocegw::client::TakeKnown(dv_attr, size, &dv)) {
    error = EOPNOTSUPP;
  } else {
    error = rocegw::client::CheckInit(*attr, dv);
  }
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  dv.execution_order = rocegw::client::ExecutionOrder(dv.service_mode, dv.execution_order);
  const rocegw::client::Ordering ordering = {dv.service_mode, dv.execution_order,
                                             dv.completion_order,
                                             rocegw::client::OrderFlags(dv.execution_order)};
  return rocegw::client::CreateQp(pd, attr, ordering);
}

ROCEGW_EXPORT int rocegwdv_query_qp(ibv_qp* ibv, rocegwdv_qp_attr* attr, size_t size) {
  if (ibv == nullptr || attr == nullptr || size < sizeof(attr->comp_mask)) return EINVAL;
  if (!IsOurs(ibv->context)) return EOPNOTSUPP;
  const Qp* qp = FromIbv(ibv);
  rocegw_object_request request = {};
  request.handle = ibv->handle;
  rocegw_query_qp_reply reply;
  const int error = SessionOf(ibv->context)->Call(ROCEGW_MSG_QUERY_QP, &request, &reply);
  if (error != 0) return error;
  rocegwdv_qp_attr known = {};
  known.service_mode = qp->service_mode;
  known.execution_order = qp->execution_order;
  known.completion_order = qp->completion_order;
  known.path = reply.path;
  if (reply.fetch_operate != 0) known.operations = rocegw::client::kFurtherAtomics;
  rocegw::client::CopyKnown(known, attr, size);
  return 0;
}

ROCEGW_EXPORT int rocegwdv_post_send(ibv_qp* ibv, rocegwdv_send_wr* wr, rocegwdv_send_wr** bad_wr) {
  if (!IsOurs(ibv->context)) {
    *bad_wr = wr;
    return EOPNOTSUPP;
  }
  Qp* qp = FromIbv(ibv);
  rocegw::client::SendPost post(qp->rings.send);
  int error = post.error();
  while (error == 0 && wr != nullptr) {
    uint32_t flags = 0;
    error = rocegw::client::OrderingOf(*qp, *wr, &flags);
    if (error == 0) error = rocegw::client::CheckKnown(*ibv, *wr);
    if (error == 0) error = post.Add(wr->wr, flags, wr->peer != nullptr ? wr->peer->handle : 0);
    if (error == 0) wr = wr->next;
  }
  if (error != 0) *bad_wr = wr;
  return error;
}
