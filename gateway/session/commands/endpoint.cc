// SPDX-License-Identifier: Apache-2.0
// Commands on the states of endpoints. Their workers have the states: endpoints also change them
// by themselves.
#include <cerrno>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"

namespace rocegw::session {
namespace {

// Returns nullptr if the handle names no endpoint of the session.
Qp* FindEndpoint(ClientSession& session, uint32_t handle) {
  Qp* const qp = session.objects().qps.Find(handle);
  return qp != nullptr && qp->type == verbs::QpType::kEndpoint ? qp : nullptr;
}

}  // namespace

void ModifyEndpoint(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_modify_ep>();
  Qp* const qp = FindEndpoint(session, asked.qp);
  if (qp == nullptr || asked.state > ROCEGW_EP_ERROR) return session.exchange().Error(EINVAL);
  // Later moves need the worker's answer.
  qp->setting_up = false;
  session.workers().Send(
      qp->worker,
      worker::MoveEndpoint{session.id(), qp->qpn,
                           static_cast<transport::EndpointState>(asked.state), asked.notify != 0},
      [&session, asked](const worker::ControlReply& moved) {
        Qp* const known = FindEndpoint(session, asked.qp);
        if (moved.error == 0 && known != nullptr) known->drains = asked.state == ROCEGW_EP_DRAINING;
        session.exchange().Answer(moved.error);
      });
}

void QueryEndpoint(ClientSession& session, Request& request) {
  const Qp* const qp = FindEndpoint(session, request.As<rocegw_object_request>().handle);
  if (qp == nullptr) return session.exchange().Error(EINVAL);
  session.workers().Send(
      qp->worker, worker::QueryQp{session.id(), qp->qpn},
      [&session, suspends = qp->suspends_on_failure](const worker::ControlReply& answer) {
        if (answer.error != 0 || answer.qps.empty())
          return session.exchange().Error(answer.error != 0 ? answer.error : EINVAL);
        const transport::EndpointStatus& status = answer.qps.front().endpoint;
        rocegw_query_ep_reply reply{};
        reply.state = static_cast<uint32_t>(status.state);
        reply.on_failure = suspends ? ROCEGW_EP_SUSPEND : ROCEGW_EP_CONTINUE;
        reply.requests = status.requests;
        reply.messages = status.messages;
        reply.failures = status.failures;
        session.exchange().Reply(reply);
      });
}

}  // namespace rocegw::session
