// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/extended.h"

#include <cerrno>

#include "gateway/client/objects.h"
#include "gateway/client/queue_pair.h"
#include "gateway/client/refusals.h"

namespace rocegw::client {

int ToBasicAttr(const ibv_qp_init_attr_ex& attr, ibv_qp_init_attr* basic) {
  constexpr uint32_t kHarmless =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  const uint32_t mask = attr.comp_mask;
  if ((mask & ~kHarmless) != 0 ||
      ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr.create_flags != 0) ||
      ((mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0 && attr.max_tso_header != 0)) {
    return refusal::ibv_create_qp_ex;
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

ibv_qp* CreateQpExtended(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  ibv_qp_init_attr basic;
  int error = ToBasicAttr(*attr, &basic);
  if (error == 0 &&
      ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd->context != context)) {
    error = EINVAL;
  }
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  ibv_qp* qp = CreateQp(attr->pd, &basic);
  if (qp != nullptr) attr->cap = basic.cap;
  return qp;
}

ibv_cq_ex* CreateCqExtended(ibv_context*, ibv_cq_init_attr_ex*) {
  errno = refusal::ibv_create_cq_ex;
  return nullptr;
}

}  // namespace rocegw::client
