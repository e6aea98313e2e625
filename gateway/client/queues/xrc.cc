// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/queues/xrc.h"

#include <fcntl.h>
#include <pthread.h>

#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/object_ids.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/queues/queue_pair.h"

namespace rocegw::client {

namespace {

static_assert(int{IBV_QPT_XRC_SEND} == int{ROCEGW_QPT_XRC_SEND} &&
              int{IBV_QPT_XRC_RECV} == int{ROCEGW_QPT_XRC_RECV});

int CheckInit(const ibv_xrcd_init_attr& attr) {
  constexpr uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attr.comp_mask & ~kNeeded) != 0) return EOPNOTSUPP;
  if (attr.comp_mask != kNeeded) return EINVAL;
  return (attr.oflags & ~(O_CREAT | O_EXCL)) != 0 ? EINVAL : 0;
}

// Creates the program's side of a queue pair that the daemon has created or opened: it is never
// posted to, so it has no rings.
template <typename Request>
ibv_qp* AddReceiver(ibv_xrcd* ibv, uint32_t type, Request* request, void* context) {
  Xrcd* xrcd = FromIbv(ibv);
  auto* qp = MakeObject<Qp>();
  if (qp == nullptr) return nullptr;
  qp->id = AddObject(ObjectKind::kQp, qp);
  request->xrcd = xrcd->handle;
  request->cookie = qp->id;
  rocegw_qp_reply reply;
  const int error = qp->id != 0 ? SessionOf(ibv->context)->Call(type, request, &reply) : ENOMEM;
  if (error != 0) {
    RemoveObject(qp->id);
    free(qp);
    errno = error;
    return nullptr;
  }
  qp->ibv.context = ibv->context;
  qp->ibv.qp_context = context;
  qp->ibv.handle = reply.handle;
  qp->ibv.qp_num = reply.qpn;
  SetState(&qp->ibv, IBV_QPS_RESET);
  qp->ibv.qp_type = IBV_QPT_XRC_RECV;
  qp->rings.handle = reply.handle;
  qp->rings.qpn = reply.qpn;
  qp->rings.send.qp_type = IBV_QPT_XRC_RECV;
  pthread_mutex_init(&qp->ibv.mutex, nullptr);
  pthread_cond_init(&qp->ibv.cond, nullptr);
  return &qp->ibv;
}

}  // namespace

ibv_xrcd* OpenXrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  int error = CheckInit(*attr);
  Xrcd* xrcd = error == 0 ? MakeObject<Xrcd>() : nullptr;
  if (error == 0 && xrcd == nullptr) error = ENOMEM;
  if (error == 0) {
    rocegw_open_xrcd request = {};
    request.context = FromIbv(context)->handle;
    request.named = attr->fd != -1 ? 1 : 0;
    if ((attr->oflags & O_CREAT) != 0) request.flags |= ROCEGW_XRCD_CREATE;
    if ((attr->oflags & O_EXCL) != 0) request.flags |= ROCEGW_XRCD_EXCLUSIVE;
    rocegw_object_reply reply = {};
    error = attr->fd != -1 && fcntl(attr->fd, F_GETFD) < 0
                ? EBADF
                : OfAnyDaemon(SessionOf(context)->Call(ROCEGW_MSG_OPEN_XRCD, &request, &reply,
                                                       nullptr, attr->fd));
    xrcd->handle = reply.handle;
  }
  if (error != 0) {
    free(xrcd);
    errno = error;
    return nullptr;
  }
  xrcd->ibv.context = context;
  return &xrcd->ibv;
}

int CloseXrcd(ibv_xrcd* ibv) {
  Xrcd* xrcd = FromIbv(ibv);
  const int error = SessionOf(ibv->context)->CallDestroy(ROCEGW_MSG_CLOSE_XRCD, xrcd->handle);
  if (error == 0) free(xrcd);
  return WithErrno(error);
}

ibv_qp* CreateXrcReceiver(ibv_xrcd* xrcd, ibv_qp_init_attr* attr) {
  rocegw_create_qp request = {};
  request.type = ROCEGW_QPT_XRC_RECV;
  ibv_qp* qp = AddReceiver(xrcd, ROCEGW_MSG_CREATE_QP, &request, attr->qp_context);
  if (qp != nullptr) attr->cap = {};
  return qp;
}

ibv_qp* OpenQp(ibv_context* context, ibv_qp_open_attr* attr) {
  constexpr uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  constexpr uint32_t kKnown = kNeeded | IBV_QP_OPEN_ATTR_CONTEXT;
  const bool known = (attr->comp_mask & ~kKnown) == 0;
  if (!known || (attr->comp_mask & kNeeded) != kNeeded || attr->xrcd == nullptr ||
      attr->xrcd->context != context || attr->qp_type != IBV_QPT_XRC_RECV) {
    errno = known ? EINVAL : EOPNOTSUPP;
    return nullptr;
  }
  rocegw_open_qp request = {};
  request.qpn = attr->qp_num;
  void* own = (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attr->qp_context : nullptr;
  return AddReceiver(attr->xrcd, ROCEGW_MSG_OPEN_QP, &request, own);
}

}  // namespace rocegw::client
