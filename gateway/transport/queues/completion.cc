// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/queues/completion.h"

namespace rocegw::transport {
namespace {

bool Push(QpContext& qp, verbs::CompletionQueue& cq, Outbox& outbox, rocegw_cqe cqe) {
  cqe.timestamp_ns = static_cast<uint64_t>(outbox.now().ns);
  const bool overrun_before = cq.overrun();
  if (cq.Push(cqe)) {
    qp.worker->counters.cqe_entries.Add();
    if (cqe.status != 0) {
      qp.worker->counters.cqe_error_entries.Add();
      if (cqe.status == static_cast<uint32_t>(verbs::WcStatus::kFlush))
        qp.worker->counters.cqe_flushed_entries.Add();
    }
    return true;
  }
  if (!overrun_before) {
    qp.worker->counters.cq_overflow_events.Add();
    outbox.Event(qp, verbs::AsyncEvent::kCqError);
  }
  return false;
}

}  // namespace

verbs::WcOpcode CompletionOpcode(verbs::SendOpcode opcode) {
  switch (opcode) {
    case verbs::SendOpcode::kWrite:
    case verbs::SendOpcode::kWriteImm:
      return verbs::WcOpcode::kRdmaWrite;
    case verbs::SendOpcode::kRead:
      return verbs::WcOpcode::kRdmaRead;
    case verbs::SendOpcode::kCompareSwap:
      return verbs::WcOpcode::kCompareSwap;
    case verbs::SendOpcode::kFetchAdd:
    // libibverbs has no values for the others.
    case verbs::SendOpcode::kAtomicSwap:
    case verbs::SendOpcode::kAtomicLoad:
    case verbs::SendOpcode::kAtomicStore:
    case verbs::SendOpcode::kFetchAnd:
    case verbs::SendOpcode::kFetchOr:
    case verbs::SendOpcode::kFetchXor:
    case verbs::SendOpcode::kFetchSubtract:
      return verbs::WcOpcode::kFetchAdd;
    case verbs::SendOpcode::kLocalInvalidate:
      return verbs::WcOpcode::kLocalInvalidate;
    case verbs::SendOpcode::kBindMw:
      return verbs::WcOpcode::kBindMw;
    case verbs::SendOpcode::kFlush:
      return verbs::WcOpcode::kPlacementFlush;
    case verbs::SendOpcode::kAtomicWrite:
      return verbs::WcOpcode::kAtomicWrite;
    case verbs::SendOpcode::kSend:
    case verbs::SendOpcode::kSendImm:
    case verbs::SendOpcode::kSendInvalidate:
      break;
  }
  return verbs::WcOpcode::kSend;
}

rocegw_cqe MakeCompletion(const QpContext& qp, verbs::WcStatus status, uint64_t wr_id,
                          uint32_t ring_slot) {
  rocegw_cqe cqe{};
  cqe.wr_id = wr_id;
  cqe.qpn = qp.config.qpn.value;
  cqe.qp_handle = qp.config.qp_handle;
  if (qp.config.type == verbs::QpType::kXrcReceive) cqe.flags = ROCEGW_CQE_XRC;
  cqe.status = static_cast<uint8_t>(status);
  cqe.ring_slot = ring_slot;
  return cqe;
}

std::optional<verbs::WcStatus> StatusOfNak(uint8_t syndrome) {
  switch (static_cast<wire::NakCode>(syndrome)) {
    case wire::NakCode::kInvalidRequest:
      return verbs::WcStatus::kRemoteInvalidRequest;
    case wire::NakCode::kRemoteAccess:
      return verbs::WcStatus::kRemoteAccess;
    case wire::NakCode::kRemoteOperation:
      return verbs::WcStatus::kRemoteOperation;
    case wire::NakCode::kInvalidRdRequest:
      return verbs::WcStatus::kRemoteInvalidRdRequest;
    default:
      return std::nullopt;
  }
}

verbs::AsyncEvent EventOfNak(wire::NakCode code) {
  if (code == wire::NakCode::kRemoteAccess) return verbs::AsyncEvent::kQpAccessError;
  if (code == wire::NakCode::kInvalidRequest) return verbs::AsyncEvent::kQpRequestError;
  return verbs::AsyncEvent::kQpFatal;
}

bool PushSend(QpContext& qp, Outbox& outbox, const rocegw_cqe& cqe) {
  qp.CountSendCompleted();
  return Push(qp, *qp.send_cq, outbox, cqe);
}

bool PushReceive(QpContext& qp, Outbox& outbox, const rocegw_cqe& cqe) {
  qp.CountReceiveCompleted();
  rocegw_cqe receive = cqe;
  receive.flags |= ROCEGW_CQE_RECEIVE;
  return Push(qp, *qp.recv_cq, outbox, receive);
}

}  // namespace rocegw::transport
