// SPDX-License-Identifier: Apache-2.0
// End of a connection: DREQ and DREP, REJ at any stage, silence, and ids destroyed in the middle of
// an exchange (IBTA 12.9.8). The engine answers a DREQ at once, before the program hears of it.
#include <algorithm>
#include <cerrno>
#include <vector>

#include "gateway/cm/connection/cm_time.h"
#include "gateway/cm/connection/handlers.h"

namespace rocegw::cm {
namespace {

// A request and its first resends have no answer: more than a loss explains.
constexpr Duration kSilentAfter = Seconds(2);

using wire::CmAnswered;
using wire::RejectReason;

const wire::CmRej& RejectOf(const Inbound& in) { return *std::get_if<wire::CmRej>(&in.mad.body); }

void SendDisconnectReply(Core& core, const Connection& connection, const Inbound& in, Step& step) {
  wire::CmDrep drep;
  drep.local_comm_id = connection.local_comm_id;
  drep.remote_comm_id = connection.remote_comm_id;
  core.Send(connection, in.mad.transaction_id, drep, 0, step);
}

void EmitRejected(Core& core, Connection& connection, const wire::CmRej& rej, Step& step) {
  connection.reason = static_cast<uint16_t>(rej.reason);
  if (connection.active) ++core.counters.refused;
  Id* id = core.IdOf(connection);
  if (id == nullptr) return;
  ConnectParams param;
  param.private_data = PrivateData::From(rej.private_data);
  core.Emit(*id, EventType::kRejected, static_cast<int>(rej.reason), param, step);
}

// Returns true if the peer refused for lack of a listener and the REQ is young, so it is repeated
// soon. This is the grace that early_requests.h gives to REQs of peers. A peer that refused keeps
// no memory of the REQ, so the same REQ can be sent.
bool MayBeEarly(const Core& core, const Connection& connection, const wire::CmRej& rej,
                const Step& step) {
  return connection.state == ConnectionState::kReqSent &&
         rej.reason == RejectReason::kInvalidServiceId &&
         step.now + core.config.early_retry < connection.created + core.config.listener_grace;
}

// Repeats a REQ that was refused for its path MTU with the next smaller MTU: a peer on a link with
// a smaller MTU has no other answer. Returns true if the REQ was sent again.
bool OfferSmallerMtu(Core& core, Connection& connection, const wire::CmRej& rej, Step& step) {
  if (connection.state != ConnectionState::kReqSent || rej.reason != RejectReason::kInvalidMtu ||
      connection.path_mtu <= 1) {
    return false;
  }
  Id* const id = core.IdOf(connection);
  auto* const message = std::get_if<wire::MadBytes>(&connection.message);
  wire::CmMad mad;
  if (id == nullptr || message == nullptr || wire::DecodeMad(*message, mad) != DropReason::kNone)
    return false;
  auto* const request = std::get_if<wire::CmReq>(&mad.body);
  if (request == nullptr) return false;
  request->path_mtu = id->path_mtu = --connection.path_mtu;
  wire::EncodeMad(mad, *message);
  core.Resend(connection, step);
  return true;
}

// Returns how long a peer may take to repeat its REQ.
Duration AnswerMemory(const Core& core, const Connection& connection) {
  if (!connection.asked_for_time) return core.config.answer_memory;
  return core.config.answer_memory + CodeToDuration(core.config.mra_service_timeout) +
         core.SlowInterval();
}

// Refuses a request and keeps the refusal for repetitions. A REJ has no answer. A peer that was
// asked for time repeats its REQ late, so this side repeats the REJ.
void RefuseRequest(Core& core, Connection& connection, const wire::CmRej& rej, Step& step) {
  connection.reason = static_cast<uint16_t>(rej.reason);
  ++core.counters.rejected;
  connection.state = ConnectionState::kRejected;
  core.Orphan(connection);
  const Duration memory = AnswerMemory(core, connection);
  core.SendRepeatedly(connection, rej, memory, step);
  if (!connection.asked_for_time) core.SetDeadline(connection, connection.schedule.give_up);
}

// Keeps a REQ that the peer withdrew: a copy of it may still arrive.
void RememberWithdrawal(Core& core, Connection& connection, Step& step) {
  connection.state = ConnectionState::kRejected;
  core.Orphan(connection);
  core.SetDeadline(connection, step.now + core.config.answer_memory);
  connection.schedule.give_up = connection.deadline;
}

// Withdraws a REP whose RTU did not arrive. The peer may have sent its RTU or not, so the REJ is
// repeated; if the RTU still arrives, the connection is disconnected regularly.
void WithdrawReply(Core& core, Connection& connection, RejectReason reason, Step& step) {
  connection.reason = static_cast<uint16_t>(reason);
  ++core.counters.rejected;
  connection.state = ConnectionState::kRejected;
  core.Orphan(connection);
  const Duration memory = AnswerMemory(core, connection);
  step.actions.quarantined.push_back({connection.owner, connection.local_qpn, step.now + memory});
  core.SendRepeatedly(connection, core.MakeReject(connection, CmAnswered::kOther, reason), memory,
                      step);
}

bool ReplyWithdrawn(const Connection& connection) { return connection.local_qpn != kInvalidQpn; }

// Drops requests that the program will never see, because their listener is destroyed.
void DropWaitingRequests(Core& core, const Id& listener, Step& step) {
  while (listener.first_request != nullptr) DestroyAnyId(core, *listener.first_request, step);
}

// Quarantines the QPN: the peer may send to it until it hears of the end and passes its timewait.
void KeepQpnUntilToldOff(const Core& core, const Connection& connection, Step& step) {
  step.actions.quarantined.push_back({connection.owner, connection.local_qpn,
                                      connection.schedule.give_up + core.TimewaitOf(connection)});
}

// Moves the connection to a state that ends by itself.
void Abandon(Core& core, Connection& connection, Step& step) {
  switch (connection.state) {
    case ConnectionState::kReqSent:
    case ConnectionState::kReqDelayed:
      core.SendReject(connection, CmAnswered::kOther, RejectReason::kTimeout, step);
      core.DropConnection(connection);
      return;
    case ConnectionState::kReqReceived:
      RefuseRequest(core, connection,
                    core.MakeReject(connection, CmAnswered::kReq, RejectReason::kConsumer), step);
      return;
    case ConnectionState::kRepSent:
    case ConnectionState::kRepDelayed:
      WithdrawReply(core, connection, RejectReason::kConsumer, step);
      return;
    case ConnectionState::kRepReceived:
      core.SendReject(connection, CmAnswered::kRep, RejectReason::kConsumer, step);
      core.EnterTimewait(connection, step);
      core.Orphan(connection);
      return;
    case ConnectionState::kEstablished:
      core.Orphan(connection);
      core.StartDisconnect(connection, step);
      KeepQpnUntilToldOff(core, connection, step);
      return;
    case ConnectionState::kDreqSent:
      core.Orphan(connection);
      connection.schedule.give_up =
          std::min(connection.schedule.give_up, step.now + core.config.orphan_give_up);
      core.SetDeadline(connection, std::min(connection.deadline, connection.schedule.give_up));
      KeepQpnUntilToldOff(core, connection, step);
      return;
    case ConnectionState::kReqHeld:
    case ConnectionState::kSidrReqSent:
      core.DropConnection(connection);
      return;
    case ConnectionState::kSidrReqReceived:
      RejectSidr(core, connection, {}, step);
      return;
    case ConnectionState::kTimewait:
    case ConnectionState::kRejected:
    case ConnectionState::kSidrReplied:
    case ConnectionState::kCount:
      core.Orphan(connection);
      return;
  }
}

void GiveUp(Core& core, Connection& connection, Step& step) {
  Id* id = core.IdOf(connection);
  switch (connection.state) {
    case ConnectionState::kDreqSent:
      core.FinishDisconnect(connection, -ETIMEDOUT, step);
      return;
    case ConnectionState::kRepSent:
    case ConnectionState::kRepDelayed:
      ++core.counters.timed_out;
      if (id != nullptr) core.Emit(*id, EventType::kUnreachable, -ETIMEDOUT, step);
      WithdrawReply(core, connection, RejectReason::kTimeout, step);
      return;
    case ConnectionState::kEstablished:  // no further RTU
      core.Answered(connection);
      return;
    case ConnectionState::kRejected:
      core.DropConnection(connection);
      return;
    default:
      ++core.counters.timed_out;
      if (connection.state != ConnectionState::kSidrReqSent) {
        core.SendReject(connection, CmAnswered::kOther, RejectReason::kTimeout, step);
      }
      if (id != nullptr) core.Emit(*id, EventType::kUnreachable, -ETIMEDOUT, step);
      core.DropConnection(connection);
      return;
  }
}

}  // namespace

DropReason OnDisconnect(Core& core, Connection& connection, const Inbound& in, Step& step) {
  // A DREQ for a QP of an earlier connection must not end this one.
  if (std::get_if<wire::CmDreq>(&in.mad.body)->remote_qpn != connection.local_qpn) {
    return DropReason::k_cm_unmatched;
  }
  SendDisconnectReply(core, connection, in, step);
  core.FinishDisconnect(connection, 0, step);
  return DropReason::kNone;
}

DropReason OnDisconnectAgain(Core& core, Connection& connection, const Inbound& in, Step& step) {
  SendDisconnectReply(core, connection, in, step);
  return DropReason::kNone;
}

DropReason OnDisconnected(Core& core, Connection& connection, const Inbound&, Step& step) {
  core.FinishDisconnect(connection, 0, step);
  return DropReason::kNone;
}

DropReason OnRejectWhileConnecting(Core& core, Connection& connection, const Inbound& in,
                                   Step& step) {
  const wire::CmRej& rej = RejectOf(in);
  if (MayBeEarly(core, connection, rej, step)) {
    core.SetDeadline(connection, step.now + core.config.early_retry);
    return DropReason::kNone;
  }
  if (OfferSmallerMtu(core, connection, rej, step)) return DropReason::kNone;
  EmitRejected(core, connection, rej, step);
  if (!connection.active) {
    RememberWithdrawal(core, connection, step);
  } else if (rej.reason == RejectReason::kStaleConnection) {
    core.EnterTimewait(connection, step);
  } else {
    core.DropConnection(connection);
  }
  return DropReason::kNone;
}

DropReason OnRejectAfterReply(Core& core, Connection& connection, const Inbound& in, Step& step) {
  EmitRejected(core, connection, RejectOf(in), step);
  core.EnterTimewait(connection, step);
  return DropReason::kNone;
}

// Handles a REJ in the established state: the peer missed our RTU, withdrew its REP or lost its
// state, so there is no connection.
DropReason OnRejectEstablished(Core& core, Connection& connection, const Inbound& in, Step& step) {
  const wire::CmRej& rej = RejectOf(in);
  if (rej.answered == CmAnswered::kReq) return DropReason::k_cm_state;
  connection.reason = static_cast<uint16_t>(rej.reason);
  core.FinishDisconnect(connection, -ECONNRESET, step);
  return DropReason::kNone;
}

DropReason OnRejectDisconnecting(Core& core, Connection& connection, const Inbound& in,
                                 Step& step) {
  connection.reason = static_cast<uint16_t>(RejectOf(in).reason);
  core.FinishDisconnect(connection, 0, step);
  return DropReason::kNone;
}

// Handles a REJ before or after our REP: the peer has no connection yet.
DropReason OnRequestRejected(Core& core, Connection& connection, const Inbound&, Step& step) {
  if (ReplyWithdrawn(connection) || !connection.has_pending) {
    core.SendReject(connection, CmAnswered::kReq, static_cast<RejectReason>(connection.reason),
                    step);
  } else {
    core.Resend(connection, step);
  }
  return DropReason::kNone;
}

DropReason OnReadyToUseRejected(Core& core, Connection& connection, const Inbound&, Step& step) {
  if (!ReplyWithdrawn(connection)) return DropReason::k_cm_state;
  core.StartDisconnect(connection, step);
  return DropReason::kNone;
}

DropReason ResendAnswer(Core& core, Connection& connection, const Inbound&, Step& step) {
  core.Resend(connection, step);
  return DropReason::kNone;
}

DropReason IgnoreRepetition(Core&, Connection&, const Inbound&, Step&) { return DropReason::kNone; }

int RejectRequest(Core& core, Id& id, const Reject& command, Step& step) {
  Connection* connection = core.ConnectionOf(id);
  if (connection == nullptr) return EINVAL;
  if (connection->state == ConnectionState::kSidrReqReceived) {
    if (command.private_data.length > kMaxUdAcceptData) return EINVAL;
    RejectSidr(core, *connection, command.private_data, step);
    return 0;
  }
  if (command.private_data.length > kMaxRejectData) return EINVAL;
  const bool passive = connection->state == ConnectionState::kReqReceived;
  if (!passive && connection->state != ConnectionState::kRepReceived) return EINVAL;
  wire::CmRej rej =
      core.MakeReject(*connection, passive ? CmAnswered::kReq : CmAnswered::kRep, command.reason);
  std::copy_n(command.private_data.bytes.begin(), command.private_data.length,
              rej.private_data.begin());
  if (passive) {
    core.LeaveBacklog(id);
    RefuseRequest(core, *connection, rej, step);
    return 0;
  }
  connection->reason = static_cast<uint16_t>(rej.reason);
  ++core.counters.rejected;
  core.Send(*connection, connection->transaction_id, rej, 0, step);
  core.EnterTimewait(*connection, step);
  return 0;
}

// Disconnects as rdma_disconnect does: it succeeds also if the connection was disconnected before
// or never established.
int DisconnectId(Core& core, Id& id, Step& step) {
  if (id.state != IdState::kConnecting && id.state != IdState::kDisconnected) return EINVAL;
  Connection* connection = core.ConnectionOf(id);
  if (connection != nullptr && connection->state == ConnectionState::kEstablished) {
    core.StartDisconnect(*connection, step);
  }
  return 0;
}

int FailQp(Core& core, Id& id, Step& step) {
  Connection* connection = core.ConnectionOf(id);
  if (connection == nullptr || connection->state != ConnectionState::kEstablished) return 0;
  if (id.state == IdState::kConnecting) {
    id.state = IdState::kDisconnected;
    core.Emit(id, EventType::kDisconnected, -ECONNRESET, step);
  }
  core.StartDisconnect(*connection, step);
  return 0;
}

void DestroyAnyId(Core& core, Id& id, Step& step) {
  DropWaitingRequests(core, id, step);
  if (Connection* connection = core.ConnectionOf(id); connection != nullptr)
    Abandon(core, *connection, step);
  core.EraseId(id);
}

void OnConnectionDeadline(Core& core, Connection& connection, Step& step) {
  switch (connection.state) {
    case ConnectionState::kTimewait: {
      const Id* id = core.IdOf(connection);
      if (id != nullptr && id->state == IdState::kDisconnected) {
        core.Emit(*id, EventType::kTimewaitExit, 0, step);
      }
      core.DropConnection(connection);
      return;
    }
    case ConnectionState::kSidrReplied:
      core.DropConnection(connection);
      return;
    default:
      break;
  }
  if (step.now >= connection.schedule.give_up) {
    GiveUp(core, connection, step);
    return;
  }
  core.LeaveWindow(connection, RequestWindow::End::kRepeated, step.now);
  if (connection.state == ConnectionState::kReqSent && connection.active &&
      step.now - connection.created >= kSilentAfter) {
    step.actions.silent.push_back(
        {connection.owner, connection.path.destination, step.now - connection.created});
  }
  core.Resend(connection, step);
  core.SetDeadline(connection, connection.schedule.Next(step.now));
}

}  // namespace rocegw::cm
