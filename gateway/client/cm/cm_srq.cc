// SPDX-License-Identifier: Apache-2.0
// Shared receive queues that belong to an id.
#include <cerrno>

#include "gateway/client/cm/cm_id.h"
#include "gateway/client/real.h"
#include "gateway/client/refusals.h"

namespace rocegw::client {

namespace {

int CreateSrqOnId(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (id->srq != nullptr || id->verbs == nullptr) return EINVAL;
  if (pd == nullptr) pd = id->pd;
  if (pd->context != id->verbs) return EINVAL;
  id->srq = ibv_create_srq(pd, attr);
  if (id->srq == nullptr) return errno;
  id->pd = pd;
  return 0;
}

}  // namespace

}  // namespace rocegw::client

using rocegw::client::CmError;
using rocegw::client::IsOurs;

ROCEGW_EXPORT int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (!IsOurs(id)) return ROCEGW_REAL(rdma_create_srq)(id, pd, attr);
  return CmError(rocegw::client::CreateSrqOnId(id, pd, attr));
}

ROCEGW_EXPORT int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr) {
  if (!IsOurs(id)) return ROCEGW_REAL(rdma_create_srq_ex)(id, attr);
  constexpr uint32_t kKnown = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  const bool typed = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
  if ((attr->comp_mask & ~kKnown) != 0 || (typed && attr->srq_type != IBV_SRQT_BASIC))
    return CmError(rocegw::client::refusal::rdma_create_srq_ex);
  ibv_pd* pd = (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 ? attr->pd : nullptr;
  ibv_srq_init_attr basic = {attr->srq_context, attr->attr};
  const int error = rocegw::client::CreateSrqOnId(id, pd, &basic);
  if (error == 0) attr->attr = basic.attr;
  return CmError(error);
}

ROCEGW_EXPORT void rdma_destroy_srq(rdma_cm_id* id) {
  if (!IsOurs(id)) {
    ROCEGW_REAL(rdma_destroy_srq)(id);
    return;
  }
  if (id->srq != nullptr) ibv_destroy_srq(id->srq);
  id->srq = nullptr;
}
