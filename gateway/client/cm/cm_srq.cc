// SPDX-License-Identifier: Apache-2.0
// Shared receive queues that belong to an id.
#include <rdma/rdma_verbs.h>

#include <cerrno>

#include "gateway/client/cm/cm_devices.h"
#include "gateway/client/cm/cm_qp.h"
#include "gateway/client/cm/cm_real.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/xrc.h"

namespace rocegw::client {

namespace {

// Adds a domain and a completion queue if the program passes none, as librdmacm does.
int CompleteXrc(CmId* id, ibv_srq_init_attr_ex* attr) {
  rdma_cm_id* rdma = &id->id;
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) == 0 || attr->xrcd == nullptr) {
    attr->xrcd = XrcdOfCmDevice(id->cm_device);
    if (attr->xrcd == nullptr) return errno;
  }
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) == 0 || attr->cq == nullptr) {
    const int error =
        MakeCompletionQueue(rdma, attr->attr.max_wr, &rdma->recv_cq_channel, &rdma->recv_cq);
    if (error != 0) return error;
    attr->cq = rdma->recv_cq;
  }
  attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  return 0;
}

int CreateSrqOnId(CmId* id, ibv_srq_init_attr_ex* attr) {
  rdma_cm_id* rdma = &id->id;
  if (rdma->srq != nullptr || rdma->verbs == nullptr ||
      (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0) {
    return EINVAL;
  }
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr) attr->pd = rdma->pd;
  attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
  int error = attr->srq_type == IBV_SRQT_XRC ? CompleteXrc(id, attr) : 0;
  if (error == 0) {
    rdma->srq = CreateSrqExtended(rdma->verbs, attr);
    if (rdma->srq == nullptr) error = errno;
  }
  if (error != 0) {
    DestroyQueues(rdma);
    return error;
  }
  rdma->pd = attr->pd;
  return 0;
}

}  // namespace

}  // namespace rocegw::client

using rocegw::client::CmError;
using rocegw::client::GiveQueues;
using rocegw::client::RealOf;
using rocegw::client::TakeQueues;

ROCEGW_EXPORT int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (rdma_cm_id* real = RealOf(id)) {
    GiveQueues(id);
    return TakeQueues(id, ROCEGW_REAL(rdma_create_srq)(real, pd, attr));
  }
  // As in librdmacm, the id decides which kind of queue it is.
  ibv_srq_init_attr_ex extended = {};
  extended.srq_context = attr->srq_context;
  extended.attr = attr->attr;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  extended.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  extended.pd = pd;
  const int error = rocegw::client::CreateSrqOnId(rocegw::client::FromRdma(id), &extended);
  if (error == 0) attr->attr = extended.attr;
  return CmError(error);
}

ROCEGW_EXPORT int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr) {
  if (rdma_cm_id* real = RealOf(id)) {
    GiveQueues(id);
    return TakeQueues(id, ROCEGW_REAL(rdma_create_srq_ex)(real, attr));
  }
  return CmError(rocegw::client::CreateSrqOnId(rocegw::client::FromRdma(id), attr));
}

ROCEGW_EXPORT void rdma_destroy_srq(rdma_cm_id* id) {
  if (rdma_cm_id* real = RealOf(id)) {
    GiveQueues(id);
    ROCEGW_REAL(rdma_destroy_srq)(real);
    TakeQueues(id, 0);
    return;
  }
  if (id->srq != nullptr) ibv_destroy_srq(id->srq);
  id->srq = nullptr;
  rocegw::client::DestroyQueues(id);
}
