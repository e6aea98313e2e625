// SPDX-License-Identifier: Apache-2.0
// Endpoints and their peers of rocegwdv.h: an endpoint is a queue pair that is made ready at once,
// a peer an address that the daemon has looked up.
#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/objects.h"
#include "gateway/client/dv/known_size.h"
#include "gateway/client/dv/peer.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/queue_pair.h"

namespace rocegw::client {
namespace {

static_assert(int{IBV_QPT_DRIVER} == int{ROCEGW_QPT_ENDPOINT});

int CheckEndpoint(const ibv_pd& pd, const rocegwdv_ep_init_attr& attr) {
  if (attr.service_mode != ROCEGWDV_SERVICE_BY_INITIATOR && !HasNoOrder(attr.service_mode)) {
    return EOPNOTSUPP;
  }
  if (attr.service_mode == ROCEGWDV_SERVICE_UNACKNOWLEDGED &&
      !DaemonKnowsFetchOperate(SessionOf(pd.context)))
    return EOPNOTSUPP;
  if ((attr.srq != nullptr || attr.on_failure != ROCEGWDV_EP_CONTINUE) &&
      !DaemonKnowsEndpointStates(SessionOf(pd.context)))
    return EOPNOTSUPP;
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr || attr.reserved != 0 ||
      attr.on_failure > ROCEGWDV_EP_SUSPEND ||
      (attr.group != nullptr && attr.group->context != pd.context)) {
    return EINVAL;
  }
  return CheckOrders(attr.service_mode, attr.execution_order, attr.completion_order);
}

int MakeReady(ibv_qp* qp, uint32_t key) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = key;
  int error = ModifyQp(qp, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  attr.qp_state = IBV_QPS_RTR;
  if (error == 0) error = ModifyQp(qp, attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_RTS;
  if (error == 0) error = ModifyQp(qp, attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
  return error;
}

}  // namespace
}  // namespace rocegw::client

using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
using rocegw::client::SessionOf;

ROCEGW_EXPORT ibv_qp* rocegwdv_create_ep(ibv_pd* pd, rocegwdv_ep_init_attr* attr, size_t size) {
  rocegwdv_ep_init_attr known;
  int error = 0;
  if (pd == nullptr || attr == nullptr) {
    error = EINVAL;
  } else if (!IsOurs(pd->context) || !rocegw::client::DaemonKnowsOrder(SessionOf(pd->context)) ||
             !rocegw::client::TakeKnown(attr, size, &known)) {
    error = EOPNOTSUPP;
  } else {
    error = rocegw::client::CheckEndpoint(*pd, known);
  }
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  ibv_qp_init_attr init = {};
  init.qp_context = known.context;
  init.send_cq = known.send_cq;
  init.recv_cq = known.recv_cq;
  init.srq = known.srq;
  init.cap = known.cap;
  init.qp_type = IBV_QPT_DRIVER;
  init.sq_sig_all = static_cast<int>(known.sq_sig_all);
  known.execution_order = rocegw::client::ExecutionOrder(known.service_mode, known.execution_order);
  // The daemon knows the mode by a flag of each request.
  const bool unacknowledged = known.service_mode == ROCEGWDV_SERVICE_UNACKNOWLEDGED;
  const rocegw::client::Ordering ordering = {
      unacknowledged ? uint32_t{ROCEGWDV_SERVICE_UNORDERED} : known.service_mode,
      known.execution_order,
      known.completion_order,
      rocegw::client::OrderFlags(known.execution_order),
      true,
      known.timeout_ms,
      known.group != nullptr ? known.group->handle : 0,
      0,
      known.on_failure};
  ibv_qp* qp = rocegw::client::CreateQp(pd, &init, ordering);
  if (qp == nullptr) return nullptr;
  FromIbv(qp)->service_mode = known.service_mode;
  error = rocegw::client::MakeReady(qp, known.key);
  if (error != 0) {
    rocegw::client::DestroyQp(qp);
    errno = error;
    return nullptr;
  }
  attr->cap = init.cap;
  return qp;
}

ROCEGW_EXPORT rocegwdv_peer* rocegwdv_create_peer(ibv_pd* pd, const rocegwdv_peer_attr* attr,
                                                  size_t size) {
  rocegwdv_peer_attr known;
  int error = 0;
  const bool given = pd != nullptr && attr != nullptr;
  if (given && (!IsOurs(pd->context) || !rocegw::client::DaemonKnowsOrder(SessionOf(pd->context)) ||
                !rocegw::client::TakeKnown(attr, size, &known))) {
    error = EOPNOTSUPP;
  } else if (!given || known.reserved != 0) {
    error = EINVAL;
  }
  rocegwdv_peer* peer = nullptr;
  if (error == 0) {
    peer = rocegw::client::MakeObject<rocegwdv_peer>();
    if (peer == nullptr) error = ENOMEM;
  }
  if (error == 0) {
    rocegw_create_peer request = {};
    request.pd = pd->handle;
    request.qpn = known.ep_num;
    request.key = known.key;
    memcpy(request.av.dgid, known.gid.raw, sizeof(request.av.dgid));
    request.av.flow_label = known.flow_label;
    request.av.sgid_index = known.sgid_index;
    request.av.traffic_class = known.traffic_class;
    rocegw_object_reply reply;
    error = SessionOf(pd->context)->Call(ROCEGW_MSG_CREATE_PEER, &request, &reply);
    error = rocegw::client::OfAnyDaemon(error);
    if (error == 0) *peer = {pd->context, reply.handle};
  }
  if (error == 0) return peer;
  free(peer);
  errno = error;
  return nullptr;
}

ROCEGW_EXPORT int rocegwdv_destroy_peer(rocegwdv_peer* peer) {
  if (peer == nullptr) return EINVAL;
  const int error = SessionOf(peer->context)->CallDestroy(ROCEGW_MSG_DESTROY_PEER, peer->handle);
  if (error != 0) return error;
  free(peer);
  return 0;
}
