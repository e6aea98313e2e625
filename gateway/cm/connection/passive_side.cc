// SPDX-License-Identifier: Apache-2.0
// Passive side of a connection: REQ in, REP out, RTU in (IBTA 12.9.7, figure 115). Most messages
// here come from unknown peers, so everything is checked before any state is created.
#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "gateway/cm/connection/cm_time.h"
#include "gateway/cm/connection/handlers.h"
#include "gateway/cm/connection/incoming.h"
#include "gateway/cm/path/path_rules.h"

namespace rocegw::cm {
namespace {

constexpr uint8_t kDefaultHopLimit = 64;

// Refuses a REQ without creating a connection.
DropReason Refuse(Core& core, const Inbound& in, wire::RejectReason reason, Step& step) {
  wire::CmRej rej;
  rej.remote_comm_id = std::get_if<wire::CmReq>(&in.mad.body)->local_comm_id;
  rej.answered = wire::CmAnswered::kReq;
  rej.reason = reason;
  if (reason == wire::RejectReason::kInvalidGid) {
    rej.info_length = static_cast<uint8_t>(in.meta.destination.bytes.size());
    std::copy(in.meta.destination.bytes.begin(), in.meta.destination.bytes.end(), rej.info.begin());
  }
  if (!core.Reply(in, rej, step)) return DropReason::k_mad_rate;
  ++core.counters.rejected;
  return DropReason::kNone;
}

// Returns the type of the queue pair that answers; nothing: there is none.
std::optional<QpType> TypeFor(const wire::CmReq& req) {
  switch (req.transport) {
    case wire::CmTransport::kRc:
      return QpType::kRc;
    case wire::CmTransport::kUc:
      return QpType::kUc;
    case wire::CmTransport::kExtended:
      if (req.extended_transport == wire::kXrcTransport) return QpType::kXrcReceive;
      break;
    case wire::CmTransport::kRd:
      break;
  }
  return std::nullopt;
}

// Checks the REQ without its listener. Returns nothing if it has no fault.
std::optional<wire::RejectReason> FaultOf(const Core& core, const Inbound& in,
                                          const wire::CmReq& req) {
  if (!TypeFor(req).has_value()) return wire::RejectReason::kInvalidTransport;
  // A non-zero alternate LID means an alternate path, which RoCE does not have.
  if (req.alternate.local_lid != 0) return wire::RejectReason::kInvalidAlternateGid;
  // The data path must be that of this message: otherwise a request could direct a QP's traffic at
  // a third party.
  if ((req.pkey & 0x7FFF) != 0x7FFF || req.primary.local_gid != in.meta.source ||
      req.primary.remote_gid != in.meta.destination ||
      core.FindAddress(in.meta.destination) == nullptr) {
    return wire::RejectReason::kInvalidGid;
  }
  return std::nullopt;
}

DropReason HoldOrRefuse(Core& core, const Inbound& in, Step& step) {
  const TimePoint until = step.now + core.config.listener_grace;
  std::optional<EarlyRequests::Held> displaced;
  const EarlyRequests::Verdict verdict =
      core.early.Hold({in.mad, in.meta, in.source_qpn, until}, displaced);
  if (displaced.has_value()) {
    (void)Refuse(core, {displaced->mad, displaced->meta, displaced->source_qpn},
                 wire::RejectReason::kInvalidServiceId, step);
  }
  if (verdict != EarlyRequests::Verdict::kFull) return DropReason::kNone;
  return Refuse(core, in, wire::RejectReason::kInvalidServiceId, step);
}

// Ends a connection that the peer has forgotten, since its QP requests a new one.
void EndStale(Core& core, Connection& old, Step& step) {
  switch (old.state) {
    case ConnectionState::kEstablished:
      core.StartDisconnect(old, step);
      break;
    case ConnectionState::kReqReceived:
      if (Id* id = core.IdOf(old); id != nullptr) {
        core.Emit(*id, EventType::kRejected, static_cast<int>(wire::RejectReason::kStaleConnection),
                  step);
      }
      core.DropConnection(old);
      break;
    default:
      break;
  }
}

void TakeParameters(const Core& core, const wire::CmReq& req, Connection& connection) {
  connection.remote_comm_id = req.local_comm_id;
  connection.remote_ca_guid = req.local_ca_guid;
  connection.remote_qpn = req.local_qpn;
  connection.remote_psn = req.starting_psn;
  connection.path_mtu = req.path_mtu;
  // Both values from our point of view, limited by our maximum.
  connection.responder_resources = std::min(req.initiator_depth, core.config.max_depth);
  connection.initiator_depth = std::min(req.responder_resources, core.config.max_depth);
  connection.retry_count = req.retry_count;
  connection.rnr_retry_count = req.rnr_retry_count;
  connection.ack_timeout = req.primary.local_ack_timeout;
  connection.peer_response_timeout = req.local_response_timeout;
  connection.peer_cm_retries = req.max_cm_retries;
}

ConnectParams EventParameters(const Connection& connection, const wire::CmReq& req) {
  ConnectParams param;
  param.qpn = req.local_qpn;
  param.responder_resources = connection.responder_resources;
  param.initiator_depth = connection.initiator_depth;
  param.flow_control = req.flow_control;
  param.retry_count = req.retry_count;
  param.rnr_retry_count = req.rnr_retry_count;
  param.srq = req.srq;
  param.ece = connection.ece.received;
  param.private_data =
      PrivateData::From(std::span(req.private_data).subspan(wire::kIpCmHeaderLength));
  return param;
}

uint8_t Depth(uint8_t wanted, uint8_t offered, const Core& core) {
  return wanted == kMaxDepth ? offered : std::min(wanted, core.config.max_depth);
}

wire::CmRep MakeReply(const Core& core, const Id& id, const Connection& connection,
                      const ConnectParams& param) {
  wire::CmRep rep;
  rep.local_comm_id = connection.local_comm_id;
  rep.remote_comm_id = connection.remote_comm_id;
  rep.local_qpn = connection.local_qpn;
  rep.vendor_id = connection.ece.sent.vendor_id;
  rep.starting_psn = connection.local_psn;
  rep.responder_resources = connection.responder_resources;
  rep.initiator_depth = connection.initiator_depth;
  rep.target_ack_delay = core.config.target_ack_delay;
  rep.flow_control = param.flow_control;
  rep.rnr_retry_count = std::min(param.rnr_retry_count, kMaxRetryCount);
  rep.srq = param.srq;
  if (id.qp_type == QpType::kXrcReceive) {
    // As Linux does: an XRC REP carries the QPN in the field of the RD end-to-end context.
    rep.local_eecn = std::exchange(rep.local_qpn, Qpn{0}).value;
    rep.initiator_depth = 0;
    rep.srq = true;
  }
  rep.local_ca_guid = core.CaGuidFor(connection.path.destination);
  std::copy_n(param.private_data.bytes.begin(), param.private_data.length,
              rep.private_data.begin());
  return rep;
}

void BecomeEstablished(Core& core, Connection& connection, Step& step) {
  core.Answered(connection);
  connection.state = ConnectionState::kEstablished;
  ++core.counters.established;
  if (Id* id = core.IdOf(connection); id != nullptr)
    core.Emit(*id, EventType::kEstablished, 0, step);
}

}  // namespace

DropReason OnNewRequest(Core& core, const Inbound& in, Step& step) {
  const auto& req = *std::get_if<wire::CmReq>(&in.mad.body);
  if (!UsableQpn(req.local_qpn)) return DropReason::k_mad_malformed;
  if (const auto fault = FaultOf(core, in, req); fault.has_value())
    return Refuse(core, in, *fault, step);

  Connection* old = core.connections.ByPeerQpn(in.meta.source, req.local_ca_guid, req.local_qpn);
  if (old != nullptr && old->state != ConnectionState::kRejected) {
    ++core.counters.stale;
    EndStale(core, *old, step);
    return Refuse(core, in, wire::RejectReason::kStaleConnection, step);
  }

  Incoming incoming;
  const auto header = std::span(req.private_data).first<wire::kIpCmHeaderLength>();
  switch (Match(core, in, req.service_id, *TypeFor(req), header, incoming)) {
    case IncomingVerdict::kNoService:
      return Refuse(core, in, wire::RejectReason::kInvalidServiceId, step);
    case IncomingVerdict::kNoListener:
      return HoldOrRefuse(core, in, step);
    case IncomingVerdict::kRefused:
      return Refuse(core, in, wire::RejectReason::kConsumer, step);
    case IncomingVerdict::kFull:
      return DropReason::k_cm_backlog;
    case IncomingVerdict::kListener:
      break;
  }
  // The passive side cannot choose a smaller MTU.
  if (req.path_mtu == 0 || req.path_mtu > PathMtuCode(incoming.local->mtu)) {
    return Refuse(core, in, wire::RejectReason::kInvalidMtu, step);
  }

  Connection* connection =
      NewPassive(core, incoming, in, req.primary.flow_label, req.primary.traffic_class, step);
  if (connection == nullptr) return DropReason::k_cm_backlog;
  connection->state = ConnectionState::kReqReceived;
  TakeParameters(core, req, *connection);
  EceFromRequest({req.vendor_id, in.mad.attribute_modifier}, connection->ece);
  core.connections.IndexRemoteId(*connection);
  core.connections.IndexRemoteQpn(*connection);
  // Starts discovery early: usually the result is there before the program decides.
  if (connection->ece.received.vendor_id == core.config.discovery.vendor_id)
    core.discovery.Hint(in.meta.source);
  core.AskStranger(in.meta.destination, in.meta.source, step);
  Id& id = *core.IdOf(*connection);
  id.path_mtu = req.path_mtu;
  id.hop_limit = std::max(req.primary.hop_limit, kDefaultHopLimit);
  ++core.counters.requests;
  core.EmitRequest(id, EventParameters(*connection, req), step);
  return DropReason::kNone;
}

void OnListening(Core& core, const Id& listener, Step& step) {
  const uint64_t service =
      wire::IpServiceId(static_cast<uint16_t>(listener.port_space), listener.local.port);
  for (const EarlyRequests::Held& held : core.early.TakeFor(service)) {
    OnNewRequest(core, {held.mad, held.meta, held.source_qpn}, step);
  }
}

void OnEarlyDeadline(Core& core, Step& step) {
  for (const EarlyRequests::Held& held : core.early.TakeDue(step.now)) {
    Refuse(core, {held.mad, held.meta, held.source_qpn}, wire::RejectReason::kInvalidServiceId,
           step);
  }
}

// Answers a repeated REQ while the program decides: asks the peer to wait.
DropReason OnRequestAgain(Core& core, Connection& connection, const Inbound&, Step& step) {
  core.AskForTime(connection, wire::CmAnswered::kReq, step);
  return DropReason::kNone;
}

DropReason OnRequestAnswered(Core& core, Connection& connection, const Inbound&, Step& step) {
  core.Resend(connection, step);
  return DropReason::kNone;
}

DropReason OnRequestStale(Core& core, Connection& connection, const Inbound&, Step& step) {
  ++core.counters.stale;
  core.SendReject(connection, wire::CmAnswered::kReq, wire::RejectReason::kStaleConnection, step);
  return DropReason::kNone;
}

int AcceptRequest(Core& core, Id& id, const ConnectParams& param, Step& step) {
  Connection* connection = core.ConnectionOf(id);
  if (connection == nullptr) return EINVAL;
  if (connection->state == ConnectionState::kSidrReqReceived) {
    return AcceptSidr(core, id, *connection, param, step);
  }
  if (connection->state != ConnectionState::kReqReceived) return EINVAL;
  if (param.private_data.length > kMaxAcceptData || !UsableQpn(param.qpn)) return EINVAL;
  core.LeaveBacklog(id);
  connection->local_qpn = param.qpn;
  connection->responder_resources =
      Depth(param.responder_resources, connection->responder_resources, core);
  connection->initiator_depth = Depth(param.initiator_depth, connection->initiator_depth, core);
  const Ece ece = EceForReply(param.ece, core.ViewOf(*connection), connection->ece);
  connection->state = ConnectionState::kRepSent;
  core.SendUntilAnswered(
      *connection, connection->transaction_id, MakeReply(core, id, *connection, param), ece.options,
      CodeToDuration(connection->peer_response_timeout), connection->peer_cm_retries + 1, step);
  return 0;
}

DropReason OnReadyToUse(Core& core, Connection& connection, const Inbound&, Step& step) {
  BecomeEstablished(core, connection, step);
  return DropReason::kNone;
}

DropReason OnDelayOfReply(Core& core, Connection& connection, const Inbound& in, Step& step) {
  const auto& mra = *std::get_if<wire::CmMra>(&in.mad.body);
  if (mra.answered != wire::CmAnswered::kRep) return DropReason::k_cm_state;
  connection.state = ConnectionState::kRepDelayed;
  const Duration wait = std::min(CodeToDuration(mra.service_timeout), core.config.longest_mra);
  core.SetDeadline(connection, connection.schedule.Extend(step.now, wait + core.SlowInterval()));
  return DropReason::kNone;
}

// Handles data from the peer before its RTU: it proves the same.
int NoteCommEstablished(Core& core, Id& id, Step& step) {
  Connection* connection = core.ConnectionOf(id);
  if (connection == nullptr) return EINVAL;
  if (connection->state == ConnectionState::kEstablished) return 0;
  if (connection->state != ConnectionState::kRepSent &&
      connection->state != ConnectionState::kRepDelayed) {
    return EINVAL;
  }
  BecomeEstablished(core, *connection, step);
  return 0;
}

}  // namespace rocegw::cm
