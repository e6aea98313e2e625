// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/queue_pair.h"

#include <algorithm>
#include <cerrno>

#include "gateway/transport/message/frame_packet.h"
#include "gateway/verbs/qp_state.h"

namespace rocegw::transport {

using verbs::QpState;

namespace {
// Budget of SendPendingResponses: a closing queue pair delays others no longer than one long
// quantum would.
constexpr PumpBudget kClosingBudget{.packets = 64, .bytes = 64 << 10, .last = true};
}  // namespace

void QueuePair::Bind(const verbs::QpConfig& config) {
  qp_.config = config;
  qp_.payload = config;
  qp_.rare = config;
  qp_.bounded = config.window_bytes != 0;
  qp_.control = config.control;
  qp_.status = config.status;
  qp_.send_ring = shm::RingPlace(config.sq, config.sq_entries, config.sq_stride);
  qp_.receive_ring =
      shm::RingPlace(config.rq, config.srq != 0 ? 0 : config.rq_entries, config.rq_stride);
}

bool QueuePair::OnArrived(const flow::Carrier&, const flow::FrameRef& frame) {
  if (!qp_.bounded || !IsOfConnection(qp_.connection, frame)) return false;
  qp_.in_flight -= std::min<uint32_t>(qp_.in_flight, frame.length);
  const bool waited = qp_.wants_room;
  qp_.wants_room = false;
  return waited;
}

void QueuePair::PublishState() {
  __atomic_store_n(&qp_.status->state, static_cast<uint32_t>(qp_.attributes.state),
                   __ATOMIC_RELEASE);
  // In the error state receives are flushed as they are posted, so each post needs a doorbell.
  __atomic_store_n(&qp_.status->rq_starved, qp_.attributes.state == QpState::kError ? 1u : 0u,
                   __ATOMIC_RELEASE);
  // A client that still sees the old value has posted before this fence: the flush finds its
  // receive.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

int QueuePair::Modify(Outbox& outbox, uint32_t mask, const verbs::QpAttributes& wanted,
                      TimePoint now) {
  qp_.EndRest();
  const QpState current = qp_.attributes.state;
  if ((mask & verbs::kAttrCurState) != 0 && wanted.current_state != current) return EINVAL;
  const QpState next = (mask & verbs::kAttrState) != 0 ? wanted.state : current;
  if (const int error = verbs::CheckTransition(qp_.config.type, current, next, mask); error != 0)
    return error;
  if (next == QpState::kReset || next == QpState::kError) SendPendingResponses(outbox, now);
  verbs::TakeAttributes(mask, wanted, qp_.attributes);
  qp_.attributes.state = next;
  const bool notify = (mask & verbs::kAttrEnSqdAsyncNotify) != 0 && wanted.sqd_notify;
  qp_.report_drained = next == QpState::kSqd && (qp_.report_drained || notify);
  qp_.attributes.sqd_notify = next == QpState::kSqd && (qp_.attributes.sqd_notify || notify);
  if (next == QpState::kReset) {
    qp_.attributes = verbs::QpAttributes();
    qp_.first_ticket = qp_.tickets_issued + 1;
    qp_.leftovers = !qp_.IsDone(qp_.tickets_issued);
    qp_.flushed = false;
    qp_.last_receive_reported = false;
    if (!DoReset()) outbox.Fault(qp_, "queue producer index out of range");
  } else if (next == QpState::kRtr && current == QpState::kInit) {
    DoReadyToReceive(now);
  } else if (next == QpState::kRts && current == QpState::kRtr) {
    DoReadyToSend(now);
  } else {
    DoAttributes(mask);
  }
  PublishState();
  FlushOnError(outbox);
  ReportDrained(outbox);
  return 0;
}

void QueuePair::FlushOnError(Outbox& outbox) {
  if (qp_.attributes.state != QpState::kError) return;
  qp_.EndRest();
  if (!qp_.flushed) {
    qp_.flushed = true;
    PublishState();
  }
  DoFlush(outbox);
}

void QueuePair::ReportDrained(Outbox& outbox) {
  if (!qp_.report_drained || !Drained()) return;
  qp_.report_drained = false;
  outbox.Event(qp_, verbs::AsyncEvent::kSqDrained);
}

void QueuePair::OnDoorbell(Outbox& outbox) {
  qp_.EndRest();
  FlushOnError(outbox);
}

PumpResult QueuePair::Pump(Outbox& outbox, TimePoint now, PumpBudget& budget) {
  const PumpResult result = DoPump(outbox, now, budget);
  if (!qp_.flushed) FlushOnError(outbox);
  ReportDrained(outbox);
  return result;
}

void QueuePair::SendPendingResponses(Outbox& outbox, TimePoint now) {
  PumpBudget budget = kClosingBudget;
  PumpAnswers(outbox, now, budget);
}

void QueuePair::SendLast(Outbox& outbox, TimePoint now) {
  PumpBudget budget = kClosingBudget;
  PumpLast(outbox, now, budget);
}

metrics::DropReason QueuePair::OnPacket(Outbox& outbox, const wire::RxPacket& packet,
                                        TimePoint now) {
  const metrics::DropReason reason = DoPacket(outbox, packet, now);
  if (!qp_.flushed) FlushOnError(outbox);
  return reason;
}

void QueuePair::OnMemoryDone(Outbox& outbox, uint32_t ticket) {
  qp_.TakeDone(DoneUpTo(ticket));
  DoMemoryDone(outbox);
  if (!qp_.flushed) FlushOnError(outbox);
}

void QueuePair::OnMemoryFault(Outbox& outbox, const AccessTag& tag) {
  // A fault of an operation from before the reset does not concern the queue pair any more.
  if (qp_.IsLeftOver(tag.ticket)) return;
  qp_.EndRest();
  DoMemoryFault(outbox, tag);
  if (!qp_.flushed) FlushOnError(outbox);
}

void QueuePair::OnDeadline(Outbox& outbox, TimePoint now) {
  qp_.EndRest();
  DoDeadline(outbox, now);
  if (!qp_.flushed) FlushOnError(outbox);
}

}  // namespace rocegw::transport
