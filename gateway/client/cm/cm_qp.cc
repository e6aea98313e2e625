// SPDX-License-Identifier: Apache-2.0
// Queue pairs of an id: created in INIT (a datagram QP ready to send), moved to RTR and RTS when
// the connection is established, with attributes from the daemon's connection manager.
#include "gateway/client/cm/cm_qp.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/cm/cm_devices.h"
#include "gateway/client/cm/cm_multicast.h"
#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/extended.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/queue_pair.h"
#include "gateway/client/queues/xrc.h"

namespace rocegw::client {

namespace {

constexpr uint8_t kAsOffered = RDMA_MAX_RESP_RES;
static_assert(int{RDMA_MAX_RESP_RES} == int{RDMA_MAX_INIT_DEPTH});

int AskAttributes(CmId* id, ibv_qp_state state, ibv_qp_attr* attr, int* mask) {
  rocegw_cm_init_qp_attr request = {};
  request.id = id->handle;
  request.qp_state = state;
  rocegw_cm_qp_attr_reply reply;
  const int error = id->session->Call(ROCEGW_MSG_CM_INIT_QP_ATTR, &request, &reply);
  if (error != 0) return error;
  FromQpAttr(reply.attr, attr);
  attr->qp_state = state;
  *mask = static_cast<int>(reply.attr_mask);
  return 0;
}

int MoveTo(CmId* id, ibv_qp_state state, uint8_t responder_resources, uint8_t initiator_depth) {
  ibv_qp_attr attr;
  int mask = 0;
  const int error = AskAttributes(id, state, &attr, &mask);
  if (error != 0) return error;
  if (state == IBV_QPS_RTR && responder_resources != kAsOffered) {
    attr.max_dest_rd_atomic = responder_resources;
  }
  if (state == IBV_QPS_RTS && initiator_depth != kAsOffered) attr.max_rd_atomic = initiator_depth;
  return ibv_modify_qp(id->id.qp, &attr, mask);
}

// Makes a datagram QP ready; it needs no peer.
int ReadyDatagramQp(CmId* id) {
  int error = MoveTo(id, IBV_QPS_INIT, kAsOffered, kAsOffered);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  if (error == 0) error = ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = 0;
  if (error == 0) error = ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
  return error;
}

}  // namespace

int MakeCompletionQueue(rdma_cm_id* id, uint32_t entries, ibv_comp_channel** channel, ibv_cq** cq) {
  *channel = ibv_create_comp_channel(id->verbs);
  if (*channel == nullptr) return errno;
  *cq = ibv_create_cq(id->verbs, static_cast<int>(entries), id, *channel, 0);
  return *cq != nullptr ? 0 : errno;
}

void DestroyQueues(rdma_cm_id* id) {
  // XRC receives complete there without a queue pair.
  const ibv_cq* const in_use = id->srq != nullptr ? FromIbv(id->srq)->cq : nullptr;
  if (id->qp != nullptr || (in_use != nullptr && in_use == id->recv_cq)) return;
  if (id->recv_cq != nullptr) ibv_destroy_cq(id->recv_cq);
  if (id->send_cq != nullptr && id->send_cq != id->recv_cq) ibv_destroy_cq(id->send_cq);
  if (id->recv_cq_channel != nullptr) ibv_destroy_comp_channel(id->recv_cq_channel);
  if (id->send_cq_channel != nullptr && id->send_cq_channel != id->recv_cq_channel) {
    ibv_destroy_comp_channel(id->send_cq_channel);
  }
  id->recv_cq = id->send_cq = nullptr;
  id->recv_cq_channel = id->send_cq_channel = nullptr;
}

namespace {

int TakeOrMakeQueues(rdma_cm_id* id, ibv_qp_init_attr* attr) {
  int error = 0;
  // The receiving QP of XRC has no queues, and the sending one completes no receives.
  if (attr->qp_type == IBV_QPT_XRC_RECV) return 0;
  // The id's SRQ belongs to its QP: rdma_post_recv posts to it (rdma_create_srq).
  if (attr->srq == nullptr) attr->srq = id->srq;
  if (attr->recv_cq == nullptr) attr->recv_cq = id->recv_cq;
  if (attr->send_cq == nullptr) attr->send_cq = id->send_cq;
  const bool receives = attr->qp_type != IBV_QPT_XRC_SEND;
  if (receives && attr->recv_cq == nullptr && attr->cap.max_recv_wr != 0) {
    error = MakeCompletionQueue(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq);
    attr->recv_cq = id->recv_cq;
  }
  if (error == 0 && attr->send_cq == nullptr && attr->cap.max_send_wr != 0) {
    error = MakeCompletionQueue(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq);
    attr->send_cq = id->send_cq;
  }
  // An unused receive queue completes nothing, so any queue serves.
  if (attr->recv_cq == nullptr) attr->recv_cq = attr->send_cq;
  if (attr->send_cq == nullptr) attr->send_cq = attr->recv_cq;
  return error;
}

ibv_qp* CreateReceiver(CmId* id, ibv_xrcd* xrcd, ibv_qp_init_attr* attr) {
  if (xrcd == nullptr) xrcd = XrcdOfCmDevice(id->cm_device);
  return xrcd != nullptr ? CreateXrcReceiver(xrcd, attr) : nullptr;
}

// `xrcd`: domain of an XRC receiving QP; nullptr: the device's.
int CreateQpOnId(rdma_cm_id* rdma, ibv_pd* pd, ibv_qp_init_attr* attr, ibv_xrcd* xrcd = nullptr) {
  CmId* id = FromRdma(rdma);
  if (rdma->qp != nullptr || rdma->verbs == nullptr) return EINVAL;
  if (pd == nullptr) pd = rdma->pd;
  if (pd->context != rdma->verbs) return EINVAL;
  const auto differ = [](const ibv_cq* own, const ibv_cq* given) {
    return own != nullptr && given != nullptr && own != given;
  };
  if (differ(rdma->recv_cq, attr->recv_cq) || differ(rdma->send_cq, attr->send_cq)) return EINVAL;
  int error = TakeOrMakeQueues(rdma, attr);
  if (error == 0) {
    Ordering connection = {};
    if (attr->qp_type == IBV_QPT_RC && TakesQpAlong(id)) connection.cm_id = id->handle;
    rdma->qp = attr->qp_type == IBV_QPT_XRC_RECV ? CreateReceiver(id, xrcd, attr)
                                                 : CreateQp(pd, attr, connection);
    if (rdma->qp == nullptr) error = errno;
  }
  if (rdma->qp != nullptr && rdma->qp->state == IBV_QPS_RESET) {
    error = rdma->qp_type == IBV_QPT_UD ? ReadyDatagramQp(id)
                                        : MoveTo(id, IBV_QPS_INIT, kAsOffered, kAsOffered);
    if (error != 0) {
      ibv_destroy_qp(rdma->qp);
      rdma->qp = nullptr;
    }
  }
  if (error != 0) {
    DestroyQueues(rdma);
    return error;
  }
  rdma->pd = pd;
  return 0;
}

}  // namespace

int ReadyQp(CmId* id, uint8_t responder_resources, uint8_t initiator_depth) {
  // INIT again: the peer's access rights are known only now.
  int error = MoveTo(id, IBV_QPS_INIT, kAsOffered, kAsOffered);
  if (error == 0) error = MoveTo(id, IBV_QPS_RTR, responder_resources, initiator_depth);
  if (error == 0) error = MoveTo(id, IBV_QPS_RTS, responder_resources, initiator_depth);
  return error;
}

int BreakQp(CmId* id) {
  if (id->id.qp == nullptr) return 0;
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE);
}

int StepWithQp(CmId* id, CmStage right, uint32_t type, ibv_qp_state state) {
  ibv_qp* qp = id->id.qp;
  rocegw_cm_step request = {};
  request.with_qp = qp != nullptr && TakesQpAlong(id) ? 1 : 0;
  if (qp != nullptr && request.with_qp == 0) {
    const int error = state == IBV_QPS_RTS ? ReadyQp(id, kAsOffered, kAsOffered) : BreakQp(id);
    return error != 0 ? error : CmCall(id, type, &request);
  }
  const int error = CmStep(id, right, type, &request);
  if (error == 0 && request.with_qp != 0) SetState(qp, state);
  return error;
}

}  // namespace rocegw::client

using rocegw::client::CmError;
using rocegw::client::FromRdma;
using rocegw::client::GiveQueues;
using rocegw::client::RealOf;
using rocegw::client::TakeQueues;

ROCEGW_EXPORT int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (rdma_cm_id* real = RealOf(id)) {
    GiveQueues(id);
    return TakeQueues(id, ROCEGW_REAL(rdma_create_qp)(real, pd, attr));
  }
  return CmError(rocegw::client::CreateQpOnId(id, pd, attr));
}

ROCEGW_EXPORT int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) {
  if (rdma_cm_id* real = RealOf(id)) {
    GiveQueues(id);
    return TakeQueues(id, ROCEGW_REAL(rdma_create_qp_ex)(real, attr));
  }
  ibv_pd* pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? attr->pd : nullptr;
  ibv_qp_init_attr basic;
  int error = rocegw::client::ToBasicAttr(id->verbs, *attr, &basic);
  const bool domain = (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0;
  if (error == 0 && domain && !rocegw::client::InXrcd(*attr, id->verbs)) error = EINVAL;
  if (error != 0) return CmError(error);
  int result = rocegw::client::CreateQpOnId(id, pd, &basic, domain ? attr->xrcd : nullptr);
  if (result != 0) return CmError(result);
  result = rocegw::client::AddCalls(*attr, id->qp);
  if (result != 0) rdma_destroy_qp(id);
  if (result == 0) attr->cap = basic.cap;
  return CmError(result);
}

ROCEGW_EXPORT void rdma_destroy_qp(rdma_cm_id* id) {
  if (rdma_cm_id* real = RealOf(id)) {
    GiveQueues(id);
    ROCEGW_REAL(rdma_destroy_qp)(real);
    TakeQueues(id, 0);
    return;
  }
  rocegw::client::DetachGroups(FromRdma(id));
  if (id->qp != nullptr) ibv_destroy_qp(id->qp);
  id->qp = nullptr;
  rocegw::client::DestroyQueues(id);
}

ROCEGW_EXPORT int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) {
  if (rdma_cm_id* real = RealOf(id)) return ROCEGW_REAL(rdma_init_qp_attr)(real, attr, mask);
  return CmError(rocegw::client::AskAttributes(FromRdma(id), attr->qp_state, attr, mask));
}
