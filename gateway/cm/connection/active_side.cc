// SPDX-License-Identifier: Apache-2.0
// Active side of a connection: REQ out, REP in, RTU out (IBTA 12.9.7, figure 114).
#include <algorithm>
#include <cerrno>
#include <variant>
#include <vector>

#include "gateway/cm/connection/cm_time.h"
#include "gateway/cm/connection/handlers.h"
#include "gateway/cm/path/path_rules.h"

namespace rocegw::cm {
namespace {

// The RTU is sent at 0, 1, 3 and 7 times the first interval.
constexpr int kReadyToUseRepeat = 8;
constexpr uint16_t kPermissiveLid =
    0xFFFF;  // value of RoCE senders in the LID fields of InfiniBand

wire::CmPath PrimaryPath(const Id& id, uint8_t ack_timeout) {
  wire::CmPath path;
  path.local_lid = kPermissiveLid;
  path.remote_lid = kPermissiveLid;
  path.local_gid = id.source_gid;
  path.remote_gid = id.destination_gid;
  path.flow_label = id.flow_label;
  path.traffic_class = id.traffic_class;
  path.hop_limit = id.hop_limit;
  path.local_ack_timeout = ack_timeout;
  return path;
}

// Derives the packet lifetime from the program's ack timeout, which covers a round trip.
uint8_t PacketLifetime(const Core& core, const Id& id) {
  return id.has_ack_timeout && id.ack_timeout > 0 ? id.ack_timeout - 1
                                                  : core.config.packet_lifetime;
}

wire::CmTransport TransportOf(QpType type) {
  if (type == QpType::kXrcSend) return wire::CmTransport::kExtended;
  return type == QpType::kUc ? wire::CmTransport::kUc : wire::CmTransport::kRc;
}

wire::CmReq MakeRequest(const Core& core, const Id& id, const Connection& connection,
                        const ConnectParams& param) {
  wire::CmReq req;
  req.local_comm_id = connection.local_comm_id;
  req.vendor_id = connection.ece.sent.vendor_id;
  req.service_id = connection.service_id;
  req.local_ca_guid = core.CaGuidFor(connection.path.destination);
  req.local_qpn = connection.local_qpn;
  req.responder_resources = connection.responder_resources;
  req.initiator_depth = connection.initiator_depth;
  req.remote_response_timeout = core.config.response_timeout;
  req.local_response_timeout = core.config.response_timeout;
  req.transport = TransportOf(id.qp_type);
  req.flow_control = param.flow_control;
  req.starting_psn = connection.local_psn;
  req.retry_count = connection.retry_count;
  req.rnr_retry_count = std::min(param.rnr_retry_count, kMaxRetryCount);
  req.path_mtu = id.path_mtu;
  req.max_cm_retries = core.config.max_cm_retries;
  req.srq = param.srq;
  if (id.qp_type == QpType::kXrcSend) {
    // An XRC send QP has no responder: the peer sends requests of its own through another QP.
    req.extended_transport = wire::kXrcTransport;
    req.responder_resources = req.retry_count = req.rnr_retry_count = 0;
    req.srq = false;
  }
  req.primary =
      PrimaryPath(id, AckTimeoutCode(core.config.target_ack_delay, PacketLifetime(core, id)));
  std::span<uint8_t, sizeof req.private_data> area(req.private_data);
  wire::EncodeIpCm(MakeIpCmHeader(id.local, id.remote), area.first<wire::kIpCmHeaderLength>());
  std::copy_n(param.private_data.bytes.begin(), param.private_data.length,
              area.begin() + wire::kIpCmHeaderLength);
  return req;
}

wire::CmRtu MakeReadyToUse(const Connection& connection) {
  wire::CmRtu rtu;
  rtu.local_comm_id = connection.local_comm_id;
  rtu.remote_comm_id = connection.remote_comm_id;
  return rtu;
}

void SendRequest(Core& core, const Id& id, Connection& connection, const ConnectParams& param,
                 Step& step) {
  connection.state = ConnectionState::kReqSent;
  connection.has_place = true;
  connection.created = step.now;
  connection.transaction_id = core.random.Next();
  const Ece ece = EceForRequest(param.ece, core.ViewOf(connection), connection.ece);
  core.SendUntilAnswered(connection, connection.transaction_id,
                         MakeRequest(core, id, connection, param), ece.options, core.SlowInterval(),
                         core.config.max_cm_retries + 1, step);
}

void Hold(Connection& connection, const ConnectParams& param) {
  connection.state = ConnectionState::kReqHeld;
  connection.message = param;
}

const ConnectParams& HeldBy(const Connection& connection) {
  return *std::get_if<ConnectParams>(&connection.message);
}

// Sends the REQ at once, or when the listener has a slot for it (request_window.h).
void SendRequestInTurn(Core& core, const Id& id, Connection& connection, const ConnectParams& param,
                       Step& step) {
  connection.ticket = core.window.Enter(LineOf(connection), connection.local_comm_id);
  if (connection.ticket != 0) return Hold(connection, param);
  SendRequest(core, id, connection, param, step);
}

}  // namespace

int StartConnect(Core& core, Id& id, const ConnectParams& param, Step& step) {
  if (id.state != IdState::kRouteResolved) return EINVAL;
  if (id.qp_type == QpType::kUd) return StartSidr(core, id, param, step);
  // A receive-only XRC queue pair cannot connect actively.
  if (id.qp_type == QpType::kXrcReceive) return EINVAL;
  if (param.private_data.length > kMaxConnectData || !UsableQpn(param.qpn)) return EINVAL;
  Connection* const connection = &core.NewConnection(id, /*active=*/true, step);
  connection->path = MadPath(id.source_gid, id.destination_gid, id.traffic_class, id.hop_limit);
  connection->service_id = wire::IpServiceId(static_cast<uint16_t>(id.port_space), id.remote.port);
  connection->local_qpn = param.qpn;
  connection->path_mtu = id.path_mtu;
  connection->responder_resources = std::min(param.responder_resources, core.config.max_depth);
  connection->initiator_depth = std::min(param.initiator_depth, core.config.max_depth);
  connection->retry_count = std::min(param.retry_count, kMaxRetryCount);
  connection->ack_timeout = AckTimeoutCode(core.config.target_ack_delay, PacketLifetime(core, id));
  id.state = IdState::kConnecting;
  ++core.counters.connects;
  if (core.Ask(id.source_gid, id.destination_gid, step) == PeerKind::kAsking) {
    Hold(*connection, param);
    core.undiscovered.emplace(id.destination_gid, connection->local_comm_id);
    return 0;
  }
  SendRequestInTurn(core, id, *connection, param, step);
  return 0;
}

void SendHeldRequests(Core& core, const wire::Gid& peer, Step& step) {
  // Sending may change the set, so each round searches from the start.
  while (true) {
    const auto first = core.undiscovered.lower_bound({peer, 0});
    if (first == core.undiscovered.end() || first->first != peer) return;
    Connection* const connection = core.connections.ByLocalId(first->second);
    core.undiscovered.erase(first);
    if (connection == nullptr || connection->state != ConnectionState::kReqHeld) continue;
    const ConnectParams param = HeldBy(*connection);
    SendRequestInTurn(core, *core.IdOf(*connection), *connection, param, step);
  }
}

void SendWaitingRequests(Core& core, Step& step) {
  for (const uint32_t local_comm_id : core.window.TakeTurns()) {
    Connection& connection = *core.connections.ByLocalId(local_comm_id);
    connection.ticket = 0;
    const ConnectParams param = HeldBy(connection);
    SendRequest(core, *core.IdOf(connection), connection, param, step);
  }
}

DropReason OnReply(Core& core, Connection& connection, const Inbound& in, Step& step) {
  const auto& rep = *std::get_if<wire::CmRep>(&in.mad.body);
  Id* id = core.IdOf(connection);
  if (id == nullptr) return DropReason::k_cm_unmatched;
  // An XRC REP carries the peer's QPN in the field of the RD end-to-end context.
  const Qpn peer = id->qp_type == QpType::kXrcSend ? Qpn{rep.local_eecn} : rep.local_qpn;
  if (!UsableQpn(peer)) return DropReason::k_mad_malformed;
  connection.remote_comm_id = rep.local_comm_id;
  connection.remote_ca_guid = rep.local_ca_guid;
  connection.remote_qpn = peer;
  EceFromReply({rep.vendor_id, in.mad.attribute_modifier}, core.ViewOf(connection), connection.ece);
  core.connections.IndexRemoteId(connection);
  if (core.connections.ByPeerQpn(in.meta.source, rep.local_ca_guid, peer) != nullptr) {
    // The peer answered with a QP whose previous connection here has not ended.
    ++core.counters.stale;
    core.SendReject(connection, wire::CmAnswered::kRep, wire::RejectReason::kStaleConnection, step);
    core.Emit(*id, EventType::kRejected, static_cast<int>(wire::RejectReason::kStaleConnection),
              step);
    core.EnterTimewait(connection, step);
    return DropReason::kNone;
  }
  core.connections.IndexRemoteQpn(connection);
  connection.remote_psn = rep.starting_psn;
  connection.responder_resources = std::min(rep.initiator_depth, core.config.max_depth);
  connection.initiator_depth = std::min(rep.responder_resources, core.config.max_depth);
  connection.rnr_retry_count = rep.rnr_retry_count;
  connection.ack_timeout = AckTimeoutCode(rep.target_ack_delay, PacketLifetime(core, *id));
  connection.state = ConnectionState::kRepReceived;
  core.Answered(connection);

  ConnectParams param;
  param.qpn = peer;
  param.responder_resources = connection.responder_resources;
  param.initiator_depth = connection.initiator_depth;
  param.flow_control = rep.flow_control;
  param.rnr_retry_count = rep.rnr_retry_count;
  param.srq = rep.srq;
  param.ece = connection.ece.received;
  param.private_data = PrivateData::From(rep.private_data);
  core.Emit(*id, EventType::kConnectResponse, 0, param, step);
  return DropReason::kNone;
}

int ConfirmEstablished(Core& core, Id& id, Step& step) {
  Connection* connection = core.ConnectionOf(id);
  if (connection == nullptr || connection->state != ConnectionState::kRepReceived) return EINVAL;
  connection->state = ConnectionState::kEstablished;
  ++core.counters.established;
  if (connection->asked_for_time) {
    // The peer repeats its REP only after a long time: a lost RTU would cost that time.
    core.SendRepeatedly(*connection, MakeReadyToUse(*connection),
                        core.config.first_resend * kReadyToUseRepeat, step);
  } else {
    core.Send(*connection, connection->transaction_id, MakeReadyToUse(*connection), 0, step);
  }
  return 0;
}

// Answers a repeated REP while the program prepares its QP: asks the peer to wait.
DropReason OnReplyAgain(Core& core, Connection& connection, const Inbound&, Step& step) {
  core.AskForTime(connection, wire::CmAnswered::kRep, step);
  return DropReason::kNone;
}

// Answers a repeated REP when the RTU was lost: sends the RTU again.
DropReason OnReplyEstablished(Core& core, Connection& connection, const Inbound&, Step& step) {
  core.Send(connection, connection.transaction_id, MakeReadyToUse(connection), 0, step);
  return DropReason::kNone;
}

// Answers a repeated REP of an attempt that this side refused or ended; the peer still waits for an
// RTU.
DropReason OnReplyStale(Core& core, Connection& connection, const Inbound&, Step& step) {
  core.SendReject(connection, wire::CmAnswered::kRep, wire::RejectReason::kStaleConnection, step);
  return DropReason::kNone;
}

DropReason OnDelayOfRequest(Core& core, Connection& connection, const Inbound& in, Step& step) {
  const auto& mra = *std::get_if<wire::CmMra>(&in.mad.body);
  if (mra.answered != wire::CmAnswered::kReq) return DropReason::k_cm_state;
  connection.state = ConnectionState::kReqDelayed;
  core.LeaveWindow(connection, RequestWindow::End::kAnswered, step.now);
  const Duration wait = std::min(CodeToDuration(mra.service_timeout), core.config.longest_mra);
  core.SetDeadline(connection, connection.schedule.Extend(step.now, wait + core.SlowInterval()));
  return DropReason::kNone;
}

}  // namespace rocegw::cm
