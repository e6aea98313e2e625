// SPDX-License-Identifier: Apache-2.0
// Shared receive queues.
#include <pthread.h>

#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/event_acks.h"
#include "gateway/client/device/object_ids.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/queue_pair.h"
#include "gateway/client/queues/xrc.h"
#include "gateway/client/rings/map_rings.h"

namespace rocegw::client {

namespace {

constexpr uint32_t kMinorWithResize = 4;
constexpr uint32_t kMostReceives = 1u << 24;  // beyond any daemon's limit

// XRC receives complete in the completion queue of the SRQ, which must know the SRQ before.
int JoinQueue(Srq* srq, ibv_cq* cq, uint32_t handle) {
  srq->receiver = MakeObject<QpRings>();
  if (srq->receiver == nullptr) return ENOMEM;
  srq->receiver->handle = handle;
  srq->receiver->qpn = kReceiver | handle;
  srq->receiver->shared = &srq->ring;
  srq->cq = cq;
  return FromIbv(cq)->rings.Add(srq->receiver, false, true);
}

// Attributes beyond a basic SRQ; all null: none.
struct XrcPlace {
  ibv_xrcd* xrcd;
  ibv_cq* cq;
};

ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init, XrcPlace place = {}) {
  auto* srq = MakeObject<Srq>();
  if (srq == nullptr) return nullptr;
  srq->id = AddObject(ObjectKind::kSrq, srq);
  rocegw_create_srq request = {};
  request.pd = pd->handle;
  request.max_wr = init->attr.max_wr;
  request.max_sge = init->attr.max_sge;
  request.limit = init->attr.srq_limit;
  request.cookie = srq->id;
  request.xrcd = place.xrcd != nullptr ? FromIbv(place.xrcd)->handle : 0;
  request.cq = place.cq != nullptr ? place.cq->handle : 0;
  rocegw_srq_reply reply;
  Session* session = SessionOf(pd->context);
  int error =
      srq->id != 0 ? OfAnyDaemon(session->Call(ROCEGW_MSG_CREATE_SRQ, &request, &reply)) : ENOMEM;
  if (error == 0) {
    srq->ring.keys = &session->keys();
    srq->ring.pd = pd->handle;
    error = MapSharedRing(reply, session->resolver(), &srq->ring);
    if (error == 0) error = InitShared(srq->ring);
    if (error == 0 && place.cq != nullptr) error = JoinQueue(srq, place.cq, reply.handle);
    if (error != 0) session->CallDestroy(ROCEGW_MSG_DESTROY_SRQ, reply.handle);
  }
  if (error != 0) {
    RemoveObject(srq->id);
    free(srq->receiver);
    free(srq);
    errno = error;
    return nullptr;
  }
  srq->ibv.context = pd->context;
  srq->ibv.srq_context = init->srq_context;
  srq->ibv.pd = pd;
  srq->ibv.handle = reply.handle;
  srq->number = reply.number;
  pthread_mutex_init(&srq->ibv.mutex, nullptr);
  pthread_cond_init(&srq->ibv.cond, nullptr);
  init->attr.max_wr = reply.entries;
  init->attr.max_sge = reply.max_sge;
  return &srq->ibv;
}

struct Resizing {
  Session* session;
  rocegw_modify_srq request;
};

int CallResize(void* context, SharedQueue* to) {
  auto* resizing = static_cast<Resizing*>(context);
  rocegw_srq_reply reply;
  const int error = resizing->session->Call(ROCEGW_MSG_MODIFY_SRQ, &resizing->request, &reply);
  return error != 0 ? error : MapSharedQueue(reply, resizing->session->resolver(), to);
}

int ModifySrq(Srq* srq, const ibv_srq_attr& attr, int mask) {
  Session* session = SessionOf(srq->ibv.context);
  rocegw_modify_srq request = {};
  request.srq = srq->ibv.handle;
  request.mask = static_cast<uint32_t>(mask);
  request.limit = attr.srq_limit;
  if ((mask & IBV_SRQ_MAX_WR) == 0) {
    rocegw_object_reply reply;
    return session->Call(ROCEGW_MSG_MODIFY_SRQ, &request, &reply);
  }
  if (session->welcome().minor < kMinorWithResize) return EOPNOTSUPP;
  if (attr.max_wr == 0 || attr.max_wr > kMostReceives) return EINVAL;
  request.max_wr = 1;
  while (request.max_wr < attr.max_wr) request.max_wr *= 2;
  Resizing resizing = {session, request};
  return ResizeShared(srq->ring, request.max_wr, {&CallResize, &resizing});
}

}  // namespace

ibv_srq* CreateSrqExtended(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  constexpr uint32_t kPlain = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  constexpr uint32_t kPlaced = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  const ibv_srq_type type =
      (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 ? attr->srq_type : IBV_SRQT_BASIC;
  const bool xrc = type == IBV_SRQT_XRC;
  if ((attr->comp_mask & ~(kPlain | kPlaced)) != 0 || (!xrc && type != IBV_SRQT_BASIC)) {
    errno = refusal::ibv_create_srq_ex;
    return nullptr;
  }
  const bool whole = (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 &&
                     attr->pd->context == context &&
                     (!xrc || ((attr->comp_mask & kPlaced) == kPlaced &&
                               attr->xrcd->context == context && attr->cq->context == context));
  if (!whole) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_srq_init_attr plain = {attr->srq_context, attr->attr};
  ibv_srq* srq = CreateSrq(attr->pd, &plain, xrc ? XrcPlace{attr->xrcd, attr->cq} : XrcPlace{});
  if (srq != nullptr) attr->attr = plain.attr;
  return srq;
}

int GetSrqNumber(ibv_srq* srq, uint32_t* number) {
  // Basic SRQs have no number.
  if (FromIbv(srq)->number == 0) return EINVAL;
  *number = FromIbv(srq)->number;
  return 0;
}

int PostReceiveOnSrq(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return PostShared(FromIbv(srq)->ring, wr, bad);
}

}  // namespace rocegw::client

using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
using rocegw::client::SessionOf;
using rocegw::client::Srq;

ROCEGW_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_create_srq)(pd, init);
  return rocegw::client::CreateSrq(pd, init);
}

ROCEGW_EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  if (!IsOurs(srq->context)) return ROCEGW_REAL(ibv_modify_srq)(srq, attr, mask);
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return rocegw::client::WithErrno(EINVAL);
  return mask == 0
             ? 0
             : rocegw::client::WithErrno(rocegw::client::ModifySrq(FromIbv(srq), *attr, mask));
}

ROCEGW_EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  if (!IsOurs(srq->context)) return ROCEGW_REAL(ibv_query_srq)(srq, attr);
  rocegw_object_request request = {};
  request.handle = srq->handle;
  rocegw_query_srq_reply reply;
  const int error = SessionOf(srq->context)->Call(ROCEGW_MSG_QUERY_SRQ, &request, &reply);
  if (error != 0) return rocegw::client::WithErrno(error);
  attr->max_wr = reply.max_wr;
  attr->max_sge = reply.max_sge;
  attr->srq_limit = reply.limit;
  return 0;
}

ROCEGW_EXPORT int ibv_destroy_srq(ibv_srq* ibv) {
  if (!IsOurs(ibv->context)) return ROCEGW_REAL(ibv_destroy_srq)(ibv);
  Srq* srq = FromIbv(ibv);
  const int error = SessionOf(ibv->context)->CallDestroy(ROCEGW_MSG_DESTROY_SRQ, ibv->handle);
  if (error != 0) return rocegw::client::WithErrno(error);
  if (srq->receiver != nullptr) FromIbv(srq->cq)->rings.Remove(srq->receiver);
  rocegw::client::RemoveObject(srq->id);
  rocegw::client::WaitForEventAcks(srq);
  pthread_cond_destroy(&ibv->cond);
  pthread_mutex_destroy(&ibv->mutex);
  DestroyShared(srq->ring);
  free(srq->receiver);
  free(srq);
  return 0;
}
