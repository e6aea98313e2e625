// SPDX-License-Identifier: Apache-2.0
// Service ID resolution: lets UD ids find the QPN and Q_Key of a service (IBTA 12.11). One request,
// one reply. The reply is kept for a while, so a repeated request does not reach the program again.
#include <algorithm>
#include <cerrno>

#include "gateway/cm/connection/cm_time.h"
#include "gateway/cm/connection/handlers.h"
#include "gateway/cm/connection/incoming.h"
#include "gateway/cm/path/path_rules.h"

namespace rocegw::cm {
namespace {

uint64_t ServiceOf(const Id& id, uint16_t port) {
  return wire::IpServiceId(static_cast<uint16_t>(id.port_space), port);
}

DropReason Refuse(Core& core, const Inbound& in, wire::SidrStatus status, Step& step) {
  const auto& req = *std::get_if<wire::CmSidrReq>(&in.mad.body);
  wire::CmSidrRep rep;
  rep.request_id = req.request_id;
  rep.status = status;
  rep.service_id = req.service_id;
  return core.Reply(in, rep, step) ? DropReason::kNone : DropReason::k_mad_rate;
}

void SendReply(Core& core, Connection& connection, const wire::CmSidrRep& rep, uint32_t modifier,
               Step& step) {
  if (Id* const id = core.IdOf(connection); id != nullptr) core.LeaveBacklog(*id);
  core.Send(connection, connection.transaction_id, rep, modifier, step);
  connection.message = step.actions.mads.back().bytes;
  connection.state = ConnectionState::kSidrReplied;
  core.SetDeadline(connection, step.now + core.config.answer_memory);
}

}  // namespace

int StartSidr(Core& core, Id& id, const ConnectParams& param, Step& step) {
  if (param.private_data.length > kMaxUdConnectData) return EINVAL;
  Connection* const connection = &core.NewConnection(id, /*active=*/true, step);
  connection->path = MadPath(id.source_gid, id.destination_gid, id.traffic_class, id.hop_limit);
  connection->transaction_id = core.random.Next();
  connection->state = ConnectionState::kSidrReqSent;
  wire::CmSidrReq req;
  req.request_id = connection->local_comm_id;
  req.service_id = ServiceOf(id, id.remote.port);
  std::span<uint8_t, sizeof req.private_data> area(req.private_data);
  wire::EncodeIpCm(MakeIpCmHeader(id.local, id.remote), area.first<wire::kIpCmHeaderLength>());
  std::copy_n(param.private_data.bytes.begin(), param.private_data.length,
              area.begin() + wire::kIpCmHeaderLength);
  id.state = IdState::kConnecting;
  ++core.counters.connects;
  core.SendUntilAnswered(*connection, connection->transaction_id, req, 0,
                         CodeToDuration(core.config.response_timeout),
                         core.config.max_cm_retries + 1, step);
  return 0;
}

DropReason OnNewSidrRequest(Core& core, const Inbound& in, Step& step) {
  const auto& req = *std::get_if<wire::CmSidrReq>(&in.mad.body);
  if ((req.pkey & 0x7FFF) != 0x7FFF) return Refuse(core, in, wire::SidrStatus::kRejected, step);
  Incoming incoming;
  const auto header = std::span(req.private_data).first<wire::kIpCmHeaderLength>();
  switch (Match(core, in, req.service_id, QpType::kUd, header, incoming)) {
    case IncomingVerdict::kNoService:
    case IncomingVerdict::kNoListener:
      return Refuse(core, in, wire::SidrStatus::kUnsupportedService, step);
    case IncomingVerdict::kRefused:
      return Refuse(core, in, wire::SidrStatus::kRejected, step);
    case IncomingVerdict::kFull:
      return DropReason::k_cm_backlog;
    case IncomingVerdict::kListener:
      break;
  }
  const uint32_t flow_label = FlowLabel({incoming.header.destination, incoming.port},
                                        {incoming.header.source, incoming.header.source_port});
  Connection* connection =
      NewPassive(core, incoming, in, flow_label, wire::WithoutEcn(in.meta.traffic_class), step);
  if (connection == nullptr) return DropReason::k_cm_backlog;
  connection->state = ConnectionState::kSidrReqReceived;
  connection->remote_comm_id = req.request_id;
  core.connections.IndexSidrRequest(*connection);
  const Id& id = *core.IdOf(*connection);
  ConnectParams param;
  param.private_data =
      PrivateData::From(std::span(req.private_data).subspan(wire::kIpCmHeaderLength));
  ++core.counters.requests;
  core.EmitRequest(id, param, step);
  return DropReason::kNone;
}

DropReason OnSidrReply(Core& core, Connection& connection, const Inbound& in, Step& step) {
  const auto& rep = *std::get_if<wire::CmSidrRep>(&in.mad.body);
  Id* id = core.IdOf(connection);
  if (id == nullptr) return DropReason::k_cm_unmatched;
  ConnectParams param;
  param.private_data = PrivateData::From(rep.private_data);
  if (rep.status != wire::SidrStatus::kOk) {
    ++core.counters.refused;
    core.Emit(*id, EventType::kUnreachable, static_cast<int>(rep.status), param, step);
  } else if (rep.qkey == 0 || rep.qpn == kInvalidQpn) {
    core.Emit(*id, EventType::kAddrError, -EINVAL, step);
  } else {
    ++core.counters.established;
    param.qpn = rep.qpn;
    param.qkey = rep.qkey;
    param.ece = {rep.vendor_id, in.mad.attribute_modifier};
    core.Emit(*id, EventType::kEstablished, 0, param, step);
  }
  core.DropConnection(connection);
  return DropReason::kNone;
}

int AcceptSidr(Core& core, Id& id, Connection& connection, const ConnectParams& param, Step& step) {
  if (param.private_data.length > kMaxUdAcceptData || param.qpn == kInvalidQpn) return EINVAL;
  const Ece ece = EceForReply(param.ece, {}, connection.ece);
  wire::CmSidrRep rep;
  rep.request_id = connection.remote_comm_id;
  rep.service_id = ServiceOf(id, id.local.port);
  rep.vendor_id = ece.vendor_id;
  rep.qpn = param.qpn;
  rep.qkey = param.qkey != 0 ? param.qkey : kUdpQkey;
  std::copy_n(param.private_data.bytes.begin(), param.private_data.length,
              rep.private_data.begin());
  connection.local_qpn = param.qpn;
  ++core.counters.established;
  SendReply(core, connection, rep, ece.options, step);
  return 0;
}

void RejectSidr(Core& core, Connection& connection, const PrivateData& data, Step& step) {
  const Id* id = core.IdOf(connection);
  wire::CmSidrRep rep;
  rep.request_id = connection.remote_comm_id;
  rep.status = wire::SidrStatus::kRejected;
  if (id != nullptr) rep.service_id = ServiceOf(*id, id->local.port);
  std::copy_n(data.bytes.begin(), data.length, rep.private_data.begin());
  ++core.counters.rejected;
  SendReply(core, connection, rep, 0, step);
  core.Orphan(connection);
}

}  // namespace rocegw::cm
