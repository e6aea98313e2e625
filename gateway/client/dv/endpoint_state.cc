// SPDX-License-Identifier: Apache-2.0
// Calls of rocegwdv.h on the states of endpoints. The daemon checks transitions; the library keeps
// the state that libibverbs shows.
#include <cerrno>

#include "gateway/client/device/objects.h"
#include "gateway/client/dv/known_size.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/queue_pair.h"

namespace {

static_assert(int{ROCEGWDV_EP_RESET} == int{ROCEGW_EP_RESET} &&
              int{ROCEGWDV_EP_READY} == int{ROCEGW_EP_READY} &&
              int{ROCEGWDV_EP_SUSPENDED} == int{ROCEGW_EP_SUSPENDED} &&
              int{ROCEGWDV_EP_DRAINING} == int{ROCEGW_EP_DRAINING} &&
              int{ROCEGWDV_EP_EXCEPTION} == int{ROCEGW_EP_EXCEPTION} &&
              int{ROCEGWDV_EP_ERROR} == int{ROCEGW_EP_ERROR} &&
              int{ROCEGWDV_EP_CONTINUE} == int{ROCEGW_EP_CONTINUE} &&
              int{ROCEGWDV_EP_SUSPEND} == int{ROCEGW_EP_SUSPEND});

// Returns the error for a queue pair that is no endpoint of a daemon with states; 0: it is one.
int CheckEndpoint(const ibv_qp* ep) {
  if (ep == nullptr) return EINVAL;
  if (!rocegw::client::IsOurs(ep->context)) return EOPNOTSUPP;
  if (ep->qp_type != IBV_QPT_DRIVER) return EINVAL;
  const auto* session = rocegw::client::SessionOf(ep->context);
  return rocegw::client::DaemonKnowsEndpointStates(session) ? 0 : EOPNOTSUPP;
}

ibv_qp_state StateOf(uint32_t state) {
  if (state == ROCEGWDV_EP_ERROR) return IBV_QPS_ERR;
  return state == ROCEGWDV_EP_SUSPENDED ? IBV_QPS_SQD : IBV_QPS_RTS;
}

}  // namespace

using rocegw::client::SessionOf;

ROCEGW_EXPORT int rocegwdv_modify_ep(ibv_qp* ep, uint32_t state, uint32_t flags) {
  if (const int error = CheckEndpoint(ep)) return error;
  if ((flags & ~uint32_t{ROCEGWDV_EP_NOTIFY}) != 0) return EINVAL;
  rocegw_modify_ep request = {};
  request.qp = ep->handle;
  request.state = state;
  request.notify = (flags & ROCEGWDV_EP_NOTIFY) != 0 ? 1 : 0;
  rocegw_object_reply reply;
  const int error = SessionOf(ep->context)->Call(ROCEGW_MSG_MODIFY_EP, &request, &reply);
  if (error == 0) rocegw::client::SetState(ep, StateOf(state));
  return error;
}

ROCEGW_EXPORT int rocegwdv_query_ep(ibv_qp* ep, rocegwdv_ep_attr* attr, size_t size) {
  if (attr == nullptr || size < sizeof(attr->comp_mask)) return EINVAL;
  if (const int error = CheckEndpoint(ep)) return error;
  rocegw_object_request request = {};
  request.handle = ep->handle;
  rocegw_query_ep_reply reply;
  const int error = SessionOf(ep->context)->Call(ROCEGW_MSG_QUERY_EP, &request, &reply);
  if (error != 0) return error;
  rocegwdv_ep_attr known = {};
  known.state = reply.state;
  known.on_failure = reply.on_failure;
  known.requests = reply.requests;
  known.messages = reply.messages;
  known.failures = reply.failures;
  rocegw::client::CopyKnown(known, attr, size);
  return 0;
}
