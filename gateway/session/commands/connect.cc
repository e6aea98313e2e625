// SPDX-License-Identifier: Apache-2.0
// Commands of the connection manager that connect, accept, reject and disconnect, with or without
// the queue pair of the connection.
#include <cerrno>
#include <utility>

#include "gateway/session/client_session.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/cm/cm_records.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/commands/qp_moves.h"

namespace rocegw::session {
namespace {

constexpr uint32_t kEventCommEstablished = 4;  // enum ibv_event_type

// Runs a command whose only result is success or an errno.
void RunSimple(ClientSession& session, uint32_t handle, const CmBinding::Body& body) {
  const CmId* const id = session.cm().Named(session, handle);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  session.exchange().Answer(session.cm().Run(session, id->engine, body));
}

void RememberQp(ClientSession& session, uint32_t handle, CmId& id, Qpn qpn) {
  if (qpn == kInvalidQpn) return;
  id.qpn = qpn;
  auto& by_qpn = session.objects().cm_id_by_qpn;
  by_qpn.Erase(qpn.value);
  by_qpn.Insert(qpn.value, handle);
}

// Returns the id and the handle of its queue pair; nullptr: it has none.
std::pair<CmId*, const uint32_t*> FindWithQp(ClientSession& session, uint32_t handle) {
  CmId* const id = session.cm().Named(session, handle);
  if (id == nullptr) return {nullptr, nullptr};
  return {id, session.objects().qp_by_number.Find(id->qpn.value)};
}

void Accept(ClientSession& session, const rocegw_cm_connect& asked) {
  const cm::ConnectParams param = ParamsOf(asked.param);
  CmId& id = *session.objects().cm_ids.Find(asked.id);
  // Set before the command, whose events already carry the cookie.
  const uint64_t cookie = std::exchange(id.cookie, asked.cookie);
  const int error = session.cm().Run(session, id.engine, cm::Accept{param});
  if (error != 0) {
    id.cookie = cookie;
  } else {
    RememberQp(session, asked.id, id, param.qpn);
  }
  session.exchange().Answer(error);
}

// Returns a continuation for a moved queue pair, which does nothing if the session ended meanwhile.
template <typename Then>
auto Before(ClientSession& session, Then then) {
  return [&session, then = std::move(then)](int error) {
    if (error == 0 && session.ending()) error = ESHUTDOWN;
    if (error != 0) return session.exchange().Error(error);
    then();
  };
}

}  // namespace

void CmConnect(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_connect>();
  const cm::ConnectParams param = ParamsOf(asked.param);
  CmId* const id = session.cm().Named(session, asked.id);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  // A program may only offer queue pairs of its own.
  if (param.qpn != kInvalidQpn && session.objects().qp_by_number.Find(param.qpn.value) == nullptr)
    return session.exchange().Error(EINVAL);
  cm::IdInfo info;
  int error = 0;
  if (session.cm().Query(session.id(), id->engine, info) && !info.destination_gid.IsZero())
    error = session.rules().CheckPeer(session.pool(), info.destination_gid);
  if (error == 0) error = session.rules().TakeConnect(session.pool());
  if (error == 0) error = session.cm().Run(session, id->engine, cm::Connect{param});
  if (error == 0) RememberQp(session, asked.id, *id, param.qpn);
  session.exchange().Answer(error);
}

void CmAccept(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_connect>();
  const CmId* const id = session.cm().Named(session, asked.id);
  const uint32_t* const qp = session.objects().qp_by_number.Find(ParamsOf(asked.param).qpn.value);
  if (id == nullptr || qp == nullptr) return session.exchange().Error(EINVAL);
  if (asked.with_qp == 0) return Accept(session, asked);
  // Before the peer hears of it: its first message may follow its RTU at once.
  const OwnDepths depths = {asked.param.responder_resources, asked.param.initiator_depth};
  ReadyQpOf(session, *id, *qp, &depths,
            Before(session, [&session, asked] { Accept(session, asked); }));
}

void CmReject(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_reject>();
  cm::Reject reject;
  if (asked.reason != 0) reject.reason = static_cast<wire::RejectReason>(asked.reason);
  reject.private_data = cm::PrivateData::From({asked.private_data, asked.private_length});
  RunSimple(session, asked.id, reject);
}

void CmEstablish(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_step>();
  if (asked.with_qp == 0) return RunSimple(session, asked.id, cm::Establish{});
  const auto [id, qp] = FindWithQp(session, asked.id);
  if (qp == nullptr) return session.exchange().Error(EINVAL);
  ReadyQpOf(session, *id, *qp, nullptr,
            Before(session, [&session, asked] { RunSimple(session, asked.id, cm::Establish{}); }));
}

void CmDisconnect(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_step>();
  if (asked.with_qp == 0) return RunSimple(session, asked.id, cm::Disconnect{});
  const uint32_t* const qp = FindWithQp(session, asked.id).second;
  if (qp == nullptr) return session.exchange().Error(EINVAL);
  BreakQp(session, *qp);
  RunSimple(session, asked.id, cm::Disconnect{});
}

void CmInitQpAttr(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_init_qp_attr>();
  const CmId* const id = session.cm().Named(session, asked.id);
  const bool known = asked.qp_state >= static_cast<uint32_t>(cm::QpState::kInit) &&
                     asked.qp_state <= static_cast<uint32_t>(cm::QpState::kRts);
  if (id == nullptr || !known) return session.exchange().Error(EINVAL);
  cm::QpAttributes attributes;
  const int error = session.cm().InitQpAttributes(
      session, id->engine, static_cast<cm::QpState>(asked.qp_state), attributes);
  if (error != 0) return session.exchange().Error(error);
  session.exchange().Reply(ReplyOf(attributes));
}

void CmNotify(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_notify>();
  if (asked.event == kEventCommEstablished)
    return RunSimple(session, asked.id, cm::CommEstablished{});
  // Other QP events do not concern the connection manager.
  session.exchange().Answer(session.cm().Named(session, asked.id) != nullptr ? 0 : EINVAL);
}

}  // namespace rocegw::session
