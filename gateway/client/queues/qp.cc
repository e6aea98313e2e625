// SPDX-License-Identifier: Apache-2.0
// Queue pairs: control path, and entry points of the data path.
#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/device/event_acks.h"
#include "gateway/client/device/object_ids.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/dv/known_size.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/queue_pair.h"
#include "gateway/client/queues/send_builder.h"
#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

namespace {

constexpr int kSupportedMask = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY |
                               IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY |
                               IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                               IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
                               IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                               IBV_QP_DEST_QPN | IBV_QP_RATE_LIMIT;

int Map(Session* session, ibv_context* context, ibv_pd* pd, const ibv_qp_init_attr& attr,
        const rocegw_qp_reply& reply, QpRings* rings) {
  QpMapping mapping = {};
  if (!session->FindWorker(reply.worker, &mapping.line, &mapping.wake_fd)) return EPROTO;
  mapping.wake_lost = session->wake_lost();
  mapping.keys = &session->keys();
  mapping.pd = pd->handle;
  mapping.qp_type = attr.qp_type;
  mapping.max_message = FromIbv(context)->max_message;
  mapping.placement = FromIbv(context)->placement;
  mapping.operates = DaemonKnowsFetchOperate(session);
  mapping.signal_all = attr.sq_sig_all != 0;
  return MapQpRings(reply, session->resolver(), mapping, rings);
}

int ExpectCompletionsInAnyOrder(QpRings& rings) {
  // Completions of a shared receive queue name its slots in any order anyway.
  const int error = rings.shared != nullptr ? 0 : ExpectAnyOrder(rings.receive);
  return error != 0 ? error : ExpectSendsInAnyOrder(rings);
}

void FreeOrder(QpRings& rings) {
  free(rings.receive.early);
  free(rings.sends_polled_at);
}

// Registers the QP with its completion queues before it can complete anything.
int JoinQueues(Qp* qp) {
  const int error = FromIbv(qp->ibv.send_cq)->rings.Add(&qp->rings, true, false);
  if (error != 0 || qp->ibv.recv_cq == nullptr) return error;
  const int receive_error = FromIbv(qp->ibv.recv_cq)->rings.Add(&qp->rings, false, true);
  if (receive_error != 0) FromIbv(qp->ibv.send_cq)->rings.Remove(&qp->rings);
  return receive_error;
}

void LeaveQueues(Qp* qp) {
  if (qp->ibv.send_cq == nullptr) return;
  // Received but unpolled completions hold slots of the shared receive queue.
  if (qp->rings.shared != nullptr) FromIbv(qp->ibv.recv_cq)->rings.Purge(&qp->rings, false, true);
  FromIbv(qp->ibv.send_cq)->rings.Remove(&qp->rings);
  if (qp->ibv.recv_cq != nullptr) FromIbv(qp->ibv.recv_cq)->rings.Remove(&qp->rings);
}

template <typename Request>
int AskEce(ibv_qp* qp, uint32_t type, Request* request, ibv_ece* ece) {
  rocegw_ece_reply reply;
  const int error = SessionOf(qp->context)->Call(type, request, &reply);
  // An older daemon.
  if (error != 0) return errno = OfAnyDaemon(error);
  *ece = {reply.vendor_id, reply.options, 0};
  return 0;
}

// Resets the rings: both sides begin at the index that the daemon names, and everything posted or
// completed before is void.
void StartOver(Qp* qp) {
  // An XRC receiving QP has no queues.
  if (qp->ibv.send_cq == nullptr) return;
  if (qp->ibv.send_cq == qp->ibv.recv_cq) {
    FromIbv(qp->ibv.send_cq)->rings.Purge(&qp->rings, true, true);
  } else {
    FromIbv(qp->ibv.send_cq)->rings.Purge(&qp->rings, true, false);
    if (qp->ibv.recv_cq != nullptr) FromIbv(qp->ibv.recv_cq)->rings.Purge(&qp->rings, false, true);
  }
  SendRing& send = qp->rings.send;
  {
    SpinGuard guard(send.lock);
    send.producer = LoadAcquire(&send.status->sq_released);
    send.released_seen = send.producer;
    qp->rings.sends_polled = send.producer;
    StoreRelease(&send.control->sq_producer, send.producer);
  }
  ReceiveRing& receive = qp->rings.receive;
  SpinGuard guard(receive.lock);
  receive.producer = LoadAcquire(&receive.status->rq_released);
  if (receive.early != nullptr) memset(receive.early, 0, receive.mask + 1);
  StoreRelease(&receive.polled, receive.producer);
  StoreRelease(&receive.control->rq_producer, receive.producer);
}

// Writes the state and its copies. Requires the state's lock.
void WriteState(Qp* qp, ibv_qp_state state) {
  ++qp->moves;
  qp->ibv.state = state;
  {
    SpinGuard guard(qp->rings.send.lock);
    qp->rings.send.state = state;
  }
  SpinGuard guard(qp->rings.receive.lock);
  qp->rings.receive.state = state;
}

void ToWire(const ibv_qp_attr& from, int mask, rocegw_qp_attr* to) {
  *to = {};
  to->qp_state = from.qp_state;
  to->cur_qp_state = from.cur_qp_state;
  to->path_mtu = from.path_mtu;
  to->qkey = from.qkey;
  to->rq_psn = from.rq_psn;
  to->sq_psn = from.sq_psn;
  to->dest_qpn = from.dest_qp_num;
  to->access_flags = from.qp_access_flags;
  if ((mask & IBV_QP_AV) != 0) {
    ToAddressVector(from.ah_attr, &to->av);
    to->service_level = from.ah_attr.sl;
  }
  to->pkey_index = from.pkey_index;
  to->max_rd_atomic = from.max_rd_atomic;
  to->max_dest_rd_atomic = from.max_dest_rd_atomic;
  to->min_rnr_timer = from.min_rnr_timer;
  to->port_num = from.port_num;
  to->timeout = from.timeout;
  to->retry_cnt = from.retry_cnt;
  to->rnr_retry = from.rnr_retry;
  to->en_sqd_async_notify = from.en_sqd_async_notify;
  to->rate_limit = (mask & IBV_QP_RATE_LIMIT) != 0 ? from.rate_limit : 0;
}

// Copies only the attributes named by the mask: others may be uninitialised and must not reach the
// daemon.
ibv_qp_attr OnlyMasked(const ibv_qp_attr& from, int mask) {
  ibv_qp_attr to = {};
  if ((mask & IBV_QP_STATE) != 0) to.qp_state = from.qp_state;
  if ((mask & IBV_QP_CUR_STATE) != 0) to.cur_qp_state = from.cur_qp_state;
  if ((mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0) to.en_sqd_async_notify = from.en_sqd_async_notify;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) to.qp_access_flags = from.qp_access_flags;
  if ((mask & IBV_QP_PKEY_INDEX) != 0) to.pkey_index = from.pkey_index;
  if ((mask & IBV_QP_PORT) != 0) to.port_num = from.port_num;
  if ((mask & IBV_QP_QKEY) != 0) to.qkey = from.qkey;
  if ((mask & IBV_QP_AV) != 0) to.ah_attr = from.ah_attr;
  if ((mask & IBV_QP_PATH_MTU) != 0) to.path_mtu = from.path_mtu;
  if ((mask & IBV_QP_TIMEOUT) != 0) to.timeout = from.timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) to.retry_cnt = from.retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) to.rnr_retry = from.rnr_retry;
  if ((mask & IBV_QP_RQ_PSN) != 0) to.rq_psn = from.rq_psn;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) to.max_rd_atomic = from.max_rd_atomic;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) to.min_rnr_timer = from.min_rnr_timer;
  if ((mask & IBV_QP_SQ_PSN) != 0) to.sq_psn = from.sq_psn;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  if ((mask & IBV_QP_DEST_QPN) != 0) to.dest_qp_num = from.dest_qp_num;
  if ((mask & IBV_QP_RATE_LIMIT) != 0) to.rate_limit = from.rate_limit;
  return to;
}

// Returns the attributes that only the other end of XRC has. The kernel ignores them too
// (ib_uverbs), and perftest sets all for both ends.
int NotOf(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_XRC_SEND:
      return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    case IBV_QPT_XRC_RECV:
      return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
    default:
      return 0;
  }
}

// RoCE has no alternate path, so a queue pair is always in the state "migrated". RNICs accept that
// state where the kernel lets programs name it: for connected types, on the way to RTS or SQD and
// there.
bool NamesItsMigrationState(const Qp& qp, const ibv_qp_attr& attr, int mask) {
  if ((mask & IBV_QP_PATH_MIG_STATE) == 0 || attr.path_mig_state != IBV_MIG_MIGRATED) return false;
  if (qp.ibv.qp_type == IBV_QPT_UD) return false;
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : qp.ibv.state;
  return to == IBV_QPS_RTS || to == IBV_QPS_SQD;
}

int Modify(Qp* qp, const ibv_qp_attr& attr, int mask) {
  mask &= ~NotOf(qp->ibv.qp_type);
  if (NamesItsMigrationState(*qp, attr, mask)) mask &= ~IBV_QP_PATH_MIG_STATE;
  if ((mask & ~kSupportedMask) != 0) return refusal::ibv_modify_qp;
  // RoCE addresses are always GIDs.
  if ((mask & IBV_QP_AV) != 0 && attr.ah_attr.is_global == 0) return EINVAL;
  const ibv_qp_attr masked = OnlyMasked(attr, mask);
  rocegw_modify_qp request = {};
  request.qp = qp->ibv.handle;
  request.attr_mask = static_cast<uint32_t>(mask);
  ToWire(masked, mask, &request.attr);
  rocegw_object_reply reply;
  const int error = SessionOf(qp->ibv.context)->Call(ROCEGW_MSG_MODIFY_QP, &request, &reply);
  if (error != 0) return error;
  if ((mask & IBV_QP_QKEY) != 0) qp->rings.send.qkey = attr.qkey;
  if ((mask & IBV_QP_STATE) != 0) {
    if (attr.qp_state == IBV_QPS_RESET) StartOver(qp);
    SetState(&qp->ibv, attr.qp_state);
  }
  return 0;
}

int CheckInit(const ibv_pd* pd, const ibv_qp_init_attr& attr, bool endpoint) {
  // An XRC receiving QP belongs to a domain, which only ibv_create_qp_ex can name.
  if (!endpoint && attr.qp_type == IBV_QPT_XRC_RECV) return EINVAL;
  if (!endpoint && attr.qp_type != IBV_QPT_RC && attr.qp_type != IBV_QPT_UC &&
      attr.qp_type != IBV_QPT_UD && attr.qp_type != IBV_QPT_XRC_SEND) {
    return refusal::ibv_create_qp;
  }
  if (attr.send_cq == nullptr || attr.send_cq->context != pd->context) return EINVAL;
  if (attr.qp_type == IBV_QPT_XRC_SEND) return attr.srq != nullptr ? EINVAL : 0;
  if (attr.recv_cq == nullptr || attr.recv_cq->context != pd->context) return EINVAL;
  if (attr.srq != nullptr && attr.srq->context != pd->context) return EINVAL;
  return 0;
}

}  // namespace

void SetState(ibv_qp* qp, ibv_qp_state state) {
  SpinGuard guard(FromIbv(qp)->state_lock);
  WriteState(FromIbv(qp), state);
}

void ToAddressVector(const ibv_ah_attr& attr, rocegw_address_vector* vector) {
  memcpy(vector->dgid, attr.grh.dgid.raw, sizeof(vector->dgid));
  vector->flow_label = attr.grh.flow_label;
  vector->sgid_index = attr.grh.sgid_index;
  vector->traffic_class = attr.grh.traffic_class;
  vector->hop_limit = attr.grh.hop_limit;
  vector->reserved = 0;
}

void FromQpAttr(const rocegw_qp_attr& from, ibv_qp_attr* to) {
  *to = {};
  to->qp_state = static_cast<ibv_qp_state>(from.qp_state);
  to->cur_qp_state = static_cast<ibv_qp_state>(from.cur_qp_state);
  to->path_mtu = static_cast<ibv_mtu>(from.path_mtu);
  to->path_mig_state = IBV_MIG_MIGRATED;
  to->qkey = from.qkey;
  to->rq_psn = from.rq_psn;
  to->sq_psn = from.sq_psn;
  to->dest_qp_num = from.dest_qpn;
  to->qp_access_flags = from.access_flags;
  to->ah_attr.is_global = 1;
  to->ah_attr.port_num = from.port_num;
  to->ah_attr.sl = from.service_level;
  memcpy(to->ah_attr.grh.dgid.raw, from.av.dgid, sizeof(from.av.dgid));
  to->ah_attr.grh.flow_label = from.av.flow_label;
  to->ah_attr.grh.sgid_index = from.av.sgid_index;
  to->ah_attr.grh.traffic_class = from.av.traffic_class;
  to->ah_attr.grh.hop_limit = from.av.hop_limit;
  to->pkey_index = from.pkey_index;
  to->sq_draining = from.sq_draining;
  to->max_rd_atomic = from.max_rd_atomic;
  to->max_dest_rd_atomic = from.max_dest_rd_atomic;
  to->min_rnr_timer = from.min_rnr_timer;
  to->port_num = from.port_num;
  to->timeout = from.timeout;
  to->retry_cnt = from.retry_cnt;
  to->rnr_retry = from.rnr_retry;
  to->en_sqd_async_notify = from.en_sqd_async_notify;
  to->rate_limit = from.rate_limit;
}

ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr, const Ordering& ordering) {
  int error = CheckInit(pd, *attr, ordering.endpoint);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* qp = MakeObject<Qp>();
  if (qp == nullptr) return nullptr;
  qp->id = AddObject(ObjectKind::kQp, qp);
  // An XRC sending QP completes no receives.
  ibv_cq* const recv_cq = attr->qp_type == IBV_QPT_XRC_SEND ? nullptr : attr->recv_cq;
  rocegw_create_qp request = {};
  request.pd = pd->handle;
  request.send_cq = attr->send_cq->handle;
  request.recv_cq = (recv_cq != nullptr ? recv_cq : attr->send_cq)->handle;
  request.type = attr->qp_type;
  request.max_send_wr = attr->cap.max_send_wr;
  request.max_recv_wr = attr->cap.max_recv_wr;
  request.max_send_sge = attr->cap.max_send_sge;
  request.max_recv_sge = attr->cap.max_recv_sge;
  request.max_inline = attr->cap.max_inline_data;
  request.signal_all = attr->sq_sig_all != 0 ? 1 : 0;
  request.cookie = qp->id;
  request.service_mode = ordering.service_mode;
  request.any_completion_order = ordering.completion_order;
  request.give_up_ms = ordering.give_up_ms;
  request.srq = attr->srq != nullptr ? attr->srq->handle : 0;
  request.group = ordering.group;
  request.cm_id = ordering.cm_id;
  request.on_failure = ordering.on_failure;
  rocegw_qp_reply reply;
  Session* session = SessionOf(pd->context);
  error = qp->id != 0 ? session->Call(ROCEGW_MSG_CREATE_QP, &request, &reply) : ENOMEM;
  if (error == 0) {
    qp->ibv.send_cq = attr->send_cq;
    qp->ibv.recv_cq = recv_cq;
    error = Map(session, pd->context, pd, *attr, reply, &qp->rings);
    if (attr->srq != nullptr) qp->rings.shared = &FromIbv(attr->srq)->ring;
    // Messages of several senders complete in any order.
    if (error == 0 && (ordering.completion_order != 0 || ordering.endpoint))
      error = ExpectCompletionsInAnyOrder(qp->rings);
    if (error == 0) error = JoinQueues(qp);
    if (error != 0) session->CallDestroy(ROCEGW_MSG_DESTROY_QP, reply.handle);
  }
  if (error != 0) {
    FreeOrder(qp->rings);
    RemoveObject(qp->id);
    free(qp);
    errno = error;
    return nullptr;
  }
  qp->ibv.context = pd->context;
  qp->ibv.qp_context = attr->qp_context;
  qp->ibv.pd = pd;
  qp->ibv.srq = attr->srq;
  qp->ibv.handle = reply.handle;
  qp->ibv.qp_num = reply.qpn;
  SetState(&qp->ibv, IBV_QPS_RESET);
  qp->ibv.qp_type = attr->qp_type;
  pthread_mutex_init(&qp->ibv.mutex, nullptr);
  pthread_cond_init(&qp->ibv.cond, nullptr);
  qp->signal_all = attr->sq_sig_all != 0;
  qp->service_mode = ordering.service_mode;
  qp->execution_order = ordering.execution_order;
  qp->completion_order = ordering.completion_order;
  qp->rings.send.order_flags = ordering.flags;
  qp->cap = {reply.sq_entries, reply.rq_entries, reply.max_send_sge, reply.max_recv_sge,
             reply.max_inline};
  attr->cap = qp->cap;
  if (ordering.cm_id != 0) SetState(&qp->ibv, IBV_QPS_INIT);
  return &qp->ibv;
}

int ModifyQp(ibv_qp* qp, const ibv_qp_attr& attr, int mask) {
  return Modify(FromIbv(qp), attr, mask);
}

uint32_t MovesOf(ibv_qp* qp) {
  SpinGuard guard(FromIbv(qp)->state_lock);
  return FromIbv(qp)->moves;
}

bool LearnState(ibv_qp* qp, ibv_qp_state state, uint32_t moves) {
  SpinGuard guard(FromIbv(qp)->state_lock);
  if (FromIbv(qp)->moves != moves) return false;
  if (qp->state != state) WriteState(FromIbv(qp), state);
  return true;
}

int DestroyQp(ibv_qp* ibv) {
  Qp* qp = FromIbv(ibv);
  const int error = SessionOf(ibv->context)->CallDestroy(ROCEGW_MSG_DESTROY_QP, ibv->handle);
  if (error != 0) return error;
  LeaveQueues(qp);
  RemoveObject(qp->id);
  WaitForEventAcks(qp);
  pthread_cond_destroy(&ibv->cond);
  pthread_mutex_destroy(&ibv->mutex);
  FreeOrder(qp->rings);
  RemoveSendBuilder(qp);
  free(qp);
  return 0;
}

int PostSendOnQp(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  return PostSend(FromIbv(qp)->rings.send, wr, bad);
}

int PostReceiveOnQp(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return PostReceive(FromIbv(qp)->rings.receive, wr, bad);
}

}  // namespace rocegw::client

using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
using rocegw::client::Qp;
using rocegw::client::SessionOf;

ROCEGW_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_create_qp)(pd, attr);
  return rocegw::client::CreateQp(pd, attr);
}

ROCEGW_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  if (!IsOurs(qp->context)) return ROCEGW_REAL(ibv_modify_qp)(qp, attr, mask);
  return rocegw::client::WithErrno(rocegw::client::Modify(FromIbv(qp), *attr, mask));
}

ROCEGW_EXPORT int ibv_query_qp(ibv_qp* ibv, ibv_qp_attr* attr, int mask,
                               ibv_qp_init_attr* init_attr) {
  if (!IsOurs(ibv->context)) return ROCEGW_REAL(ibv_query_qp)(ibv, attr, mask, init_attr);
  Qp* qp = FromIbv(ibv);
  rocegw_query_qp_reply reply;
  // Asks again if the queue pair moved meanwhile: the answer must not replace a newer state.
  for (bool known = false; !known;) {
    const uint32_t moves = rocegw::client::MovesOf(ibv);
    rocegw_object_request request = {};
    request.handle = ibv->handle;
    const int error = SessionOf(ibv->context)->Call(ROCEGW_MSG_QUERY_QP, &request, &reply);
    if (error != 0) return rocegw::client::WithErrno(error);
    // The daemon may have moved it to an error state on its own. Only a program that asks for the
    // state learns it, as with libibverbs.
    known = (mask & IBV_QP_STATE) == 0 ||
            rocegw::client::LearnState(ibv, static_cast<ibv_qp_state>(reply.attr.qp_state), moves);
  }
  rocegw::client::FromQpAttr(reply.attr, attr);
  attr->cap = qp->cap;
  *init_attr = {};
  init_attr->qp_context = ibv->qp_context;
  init_attr->send_cq = ibv->send_cq;
  init_attr->recv_cq = ibv->recv_cq;
  init_attr->srq = ibv->srq;
  init_attr->cap = qp->cap;
  init_attr->qp_type = ibv->qp_type;
  init_attr->sq_sig_all = qp->signal_all ? 1 : 0;
  return 0;
}

ROCEGW_EXPORT int ibv_destroy_qp(ibv_qp* ibv) {
  if (!IsOurs(ibv->context)) return ROCEGW_REAL(ibv_destroy_qp)(ibv);
  return rocegw::client::WithErrno(rocegw::client::DestroyQp(ibv));
}

ROCEGW_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  if (!IsOurs(qp->context)) return ROCEGW_REAL(ibv_qp_to_qp_ex)(qp);
  return FromIbv(qp)->extended != 0 ? &FromIbv(qp)->ex : nullptr;
}

ROCEGW_EXPORT int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, uint32_t flags) {
  if (!IsOurs(qp->context)) return ROCEGW_REAL(ibv_query_qp_data_in_order)(qp, opcode, flags);
  return 0;
}

ROCEGW_EXPORT int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  if (!IsOurs(qp->context)) return ROCEGW_REAL(ibv_set_ece)(qp, ece);
  // From RTR on it would have no effect.
  const bool in_time = qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT;
  if (ece == nullptr || ece->comp_mask != 0 || !in_time) return errno = EINVAL;
  rocegw_set_ece request = {};
  request.qp = qp->handle;
  request.vendor_id = ece->vendor_id;
  request.options = ece->options;
  return rocegw::client::AskEce(qp, ROCEGW_MSG_SET_ECE, &request, ece);
}

ROCEGW_EXPORT int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  if (!IsOurs(qp->context)) return ROCEGW_REAL(ibv_query_ece)(qp, ece);
  if (ece == nullptr) return errno = EINVAL;
  rocegw_object_request request = {};
  request.handle = qp->handle;
  return rocegw::client::AskEce(qp, ROCEGW_MSG_QUERY_ECE, &request, ece);
}
