// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/device/extended.h"

#include <cerrno>
#include <climits>

#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/queues/completion_queue.h"
#include "gateway/client/queues/queue_pair.h"
#include "gateway/client/queues/send_builder.h"
#include "gateway/client/queues/xrc.h"

namespace rocegw::client {

bool InXrcd(const ibv_qp_init_attr_ex& attr, const ibv_context* context) {
  return (attr.comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && attr.xrcd != nullptr &&
         attr.xrcd->context == context;
}

int ToBasicAttr(ibv_context* context, const ibv_qp_init_attr_ex& attr, ibv_qp_init_attr* basic) {
  constexpr uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                              IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
                              IBV_QP_INIT_ATTR_XRCD;
  // A queue pair never receives what it sends to a group.
  constexpr uint32_t kIgnoredFlags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  const uint32_t mask = attr.comp_mask;
  if ((mask & ~kKnown) != 0 ||
      ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && (attr.create_flags & ~kIgnoredFlags) != 0) ||
      ((mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0 && attr.max_tso_header != 0)) {
    return refusal::ibv_create_qp_ex;
  }
  if ((mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    const int error = CheckSendOps(context, attr.qp_type, attr.send_ops_flags);
    if (error != 0) return error;
  }
  *basic = {};
  basic->qp_context = attr.qp_context;
  basic->send_cq = attr.send_cq;
  basic->recv_cq = attr.recv_cq;
  basic->srq = attr.srq;
  basic->cap = attr.cap;
  basic->qp_type = attr.qp_type;
  basic->sq_sig_all = attr.sq_sig_all;
  return 0;
}

int AddCalls(const ibv_qp_init_attr_ex& attr, ibv_qp* qp) {
  const bool wanted = (attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  return wanted ? AddSendBuilder(FromIbv(qp), attr.send_ops_flags) : 0;
}

ibv_qp* CreateQpExtended(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  ibv_qp_init_attr basic;
  int error = ToBasicAttr(context, *attr, &basic);
  const bool receives = attr->qp_type == IBV_QPT_XRC_RECV;
  const bool in_pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 && attr->pd->context == context;
  if (error == 0 && !(receives ? InXrcd(*attr, context) : in_pd)) error = EINVAL;
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  ibv_qp* qp = receives ? CreateXrcReceiver(attr->xrcd, &basic) : CreateQp(attr->pd, &basic);
  if (qp == nullptr) return nullptr;
  error = AddCalls(*attr, qp);
  if (error != 0) {
    DestroyQp(qp);
    errno = error;
    return nullptr;
  }
  attr->cap = basic.cap;
  return qp;
}

ibv_cq_ex* CreateCqExtended(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  const bool flagged = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
  const bool in_domain = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
  constexpr uint32_t kKnown = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  const bool known =
      (attr->comp_mask & ~kKnown) == 0 && (attr->wc_flags & ~kKnownWcFlags) == 0 &&
      (!flagged || (attr->flags & ~uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) == 0);
  // The thread domain is a hint only.
  const bool wrong_domain =
      in_domain && (attr->parent_domain == nullptr || attr->parent_domain->context != context ||
                    FromIbv(attr->parent_domain)->protection == nullptr);
  if (!known || wrong_domain || attr->cqe > INT_MAX || attr->comp_vector > INT_MAX) {
    errno = known ? EINVAL : refusal::ibv_create_cq_ex;
    return nullptr;
  }
  ibv_cq* cq = CreateCq(context, static_cast<int>(attr->cqe), attr->cq_context, attr->channel,
                        static_cast<int>(attr->comp_vector));
  if (cq == nullptr) return nullptr;
  AddPollCalls(FromIbv(cq));
  return &FromIbv(cq)->ex;
}

}  // namespace rocegw::client
