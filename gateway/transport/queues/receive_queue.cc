// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/queues/receive_queue.h"

#include <cstring>

#include "gateway/transport/queues/completion.h"
#include "gateway/transport/queues/shared_receives.h"

namespace rocegw::transport {

using verbs::WcStatus;

bool ReceiveQueue::Reset(QpContext& qp) {
  if (qp.shares_receives && in_flight_ != nullptr) {
    const GrowingRing<OpenReceive>& open = in_flight_->open;
    const GrowingRing<PendingReceive>& pending = in_flight_->pending;
    for (size_t i = 0; i < open.size(); ++i)
      if (!open[i].closed) qp.srq->GiveBack(open[i].request.ring_slot);
    for (size_t i = 0; i < pending.size(); ++i) qp.srq->GiveBack(pending[i].cqe.ring_slot);
  }
  in_flight_.reset();
  first_ = next_ = 0;
  if (out_of_turn_ != nullptr) {
    out_of_turn_->unused.clear();
    out_of_turn_->early.clear();
    out_of_turn_->early_count = 0;
  }
  return PostedReceives{qp}.Discard();
}

std::span<rocegw_sge> ReceiveQueue::SgesOf(const QpContext& qp, uint32_t number) {
  const uint32_t stride = Stride(qp.config.max_recv_sge);
  return {&in_flight_->sges[static_cast<size_t>(number - first_) * stride], stride};
}

uint32_t ReceiveQueue::NewNumber(const QpContext& qp, Outbox& outbox) {
  if (!in_order() && !out_of_turn_->unused.empty()) {
    const uint32_t number = out_of_turn_->unused.back();
    out_of_turn_->unused.pop_back();
    At(number) = {};
    return number;
  }
  if (in_flight_ == nullptr) in_flight_ = outbox.in_flight.receives.Take();
  in_flight_->open.push_back({});
  for (uint32_t i = Stride(qp.config.max_recv_sge); i != 0; --i) in_flight_->sges.Extend();
  return next_++;
}

shm::WorkQueue::Look ReceiveQueue::Open(QpContext& qp, Outbox& outbox) {
  PostedReceives posted{qp};
  const shm::WorkQueue::Look look = posted.Check(outbox);
  if (look != shm::WorkQueue::Look::kReady) return look;
  const uint8_t* slot = posted.Slot();
  const uint32_t index = posted.Fetch(outbox);
  const uint32_t number = NewNumber(qp, outbox);
  qp.receiving = true;
  if (!in_order()) out_of_turn_->newest = number;
  At(number).status =
      verbs::ParseReceive(qp.config, slot, index, At(number).request, SgesOf(qp, number));
  return look;
}

bool ReceiveQueue::Writable(const QpContext& qp, uint32_t number) {
  return verbs::CheckKeys(qp.worker->regions, qp.receive_keys(),
                          SgesOf(qp, number).first(At(number).request.sge_count),
                          verbs::kAccessLocalWrite);
}

bool ReceiveQueue::Place(QpContext& qp, Outbox& outbox, uint32_t number, uint32_t offset,
                         std::span<const uint8_t> bytes, AccessTag tag, uint32_t& ticket) {
  tag.qp = qp.handle;
  tag.purpose = AccessPurpose::kReceive;
  return verbs::WalkPieces(
      qp.worker->regions, qp.receive_keys(), SgesOf(qp, number).first(At(number).request.sge_count),
      verbs::kAccessLocalWrite, offset, static_cast<uint32_t>(bytes.size()),
      [&](const verbs::Piece& piece) {
        const memory::MemoryOp op{.kind = memory::OpKind::kWrite,
                                  .length = piece.length,
                                  .address = piece.address,
                                  .direct = piece.direct,
                                  .buffer = const_cast<uint8_t*>(bytes.data()) + piece.offset};
        tag.ticket = ++qp.tickets_issued;
        outbox.Access(qp, op, tag, nullptr);
        ticket = qp.tickets_issued;
      });
}

void ReceiveQueue::PlaceInRing(QpContext& qp, uint32_t number, std::span<const uint8_t> bytes) {
  const size_t slot = At(number).request.ring_slot & (qp.payload_slots() - 1);
  std::memcpy(qp.payload.rq_payload + slot * qp.config.rq_payload_stride, bytes.data(),
              bytes.size());
  qp.worker->counters.memory_ring_operations.Add();
}

void ReceiveQueue::Close(QpContext& qp, uint32_t number, rocegw_cqe cqe, uint32_t ticket) {
  OpenReceive& receive = At(number);
  cqe.wr_id = receive.request.wr_id;
  cqe.ring_slot = CompletionSlot(qp, number);
  receive.closed = true;
  if (!in_order()) out_of_turn_->unused.push_back(number);
  GrowingRing<OpenReceive>& open = in_flight_->open;
  while (in_order() && !open.empty() && open.front().closed) {
    open.pop_front();
    for (uint32_t i = Stride(qp.config.max_recv_sge); i != 0; --i) in_flight_->sges.pop_front();
    ++first_;
  }
  in_flight_->pending.push_back({cqe, ticket});
}

void ReceiveQueue::Return(QpContext& qp, uint32_t number) {
  qp.srq->GiveBack(At(number).request.ring_slot);
  At(number).closed = true;
  out_of_turn_->unused.push_back(number);
  ForgetClosed();
  if (in_flight_->empty()) in_flight_.reset();
}

void ReceiveQueue::ForgetClosed() {
  if (in_order() || in_flight_->open.size() != out_of_turn_->unused.size()) return;
  in_flight_->open.clear();
  in_flight_->sges.clear();
  out_of_turn_->unused.clear();
  first_ = next_;
}

void ReceiveQueue::Release(QpContext& qp, uint32_t slot) {
  if (qp.shares_receives) return;
  const uint32_t mask = qp.rq().entries() - 1;
  if (slot != qp.rq().released()) {
    if (out_of_turn_ == nullptr) out_of_turn_ = std::make_unique<OutOfTurn>();
    std::vector<bool>& early = out_of_turn_->early;
    if (early.empty()) early.resize(qp.rq().entries());
    early[slot & mask] = true;
    ++out_of_turn_->early_count;
    return;
  }
  uint32_t next = slot + 1;
  if (out_of_turn_ != nullptr) {
    for (; out_of_turn_->early_count != 0 && out_of_turn_->early[next & mask]; ++next) {
      out_of_turn_->early[next & mask] = false;
      --out_of_turn_->early_count;
    }
  }
  qp.rq().Release(next);
}

void ReceiveQueue::CloseReceived(QpContext& qp, Outbox& outbox, uint32_t number,
                                 const ReceivedMessage& message, uint32_t ticket) {
  rocegw_cqe cqe = MakeCompletion(qp, WcStatus::kSuccess, 0, 0);
  cqe.opcode = static_cast<uint8_t>(message.write ? verbs::WcOpcode::kReceiveRdmaWithImm
                                                  : verbs::WcOpcode::kReceive);
  cqe.byte_length = message.length;
  const Qpn source = message.source == kInvalidQpn ? qp.attributes.dest_qpn : message.source;
  cqe.source_qpn = source.value;
  if (message.has_immediate) {
    cqe.imm_or_rkey = message.immediate;
    cqe.flags |= ROCEGW_CQE_WITH_IMM;
  }
  if (message.has_invalidated) {
    cqe.imm_or_rkey = message.invalidated;
    cqe.flags |= ROCEGW_CQE_WITH_INV;
  }
  if (message.solicited) cqe.flags |= ROCEGW_CQE_SOLICITED;
  if (message.in_ring) cqe.flags |= ROCEGW_CQE_PAYLOAD_IN_RING;
  Close(qp, number, cqe, ticket);
  OnMemoryDone(qp, outbox);
}

void ReceiveQueue::CloseFailed(QpContext& qp, uint32_t number, WcStatus status, uint32_t ticket) {
  Close(qp, number, MakeCompletion(qp, status, 0, 0), ticket);
}

void ReceiveQueue::OnMemoryDone(QpContext& qp, Outbox& outbox) {
  if (in_flight_ != nullptr) {
    GrowingRing<PendingReceive>& pending = in_flight_->pending;
    while (!pending.empty() && qp.IsDone(pending.front().ticket)) {
      const rocegw_cqe cqe = pending.front().cqe;
      pending.pop_front();
      Release(qp, cqe.ring_slot);
      if (!PushReceive(qp, outbox, cqe)) (void)qp.EnterError();
    }
    ForgetClosed();
    if (in_flight_->empty()) outbox.in_flight.receives.GiveBack(std::move(in_flight_));
  }
  if (qp.state() == verbs::QpState::kError && in_flight_ == nullptr)
    PostedReceives{qp}.ReportLast(outbox);
}

// Fails the receive of the fault and flushes later ones. All of them still wait for placements in
// progress.
void ReceiveQueue::OnFault(QpContext& qp, const AccessTag& tag, uint32_t ticket) {
  const bool receive = tag.purpose == AccessPurpose::kReceive;
  if (!FailFrom(tag.ticket, receive ? WcStatus::kLocalProtection : WcStatus::kFlush) && receive &&
      IsOpen(first())) {
    CloseFailed(qp, WcStatus::kLocalProtection, ticket);
  }
}

bool ReceiveQueue::FailFrom(uint32_t ticket, WcStatus status) {
  if (in_flight_ == nullptr) return false;
  bool found = false;
  for (size_t i = 0; i < in_flight_->pending.size(); ++i) {
    PendingReceive& pending = in_flight_->pending[i];
    if (static_cast<int32_t>(pending.ticket - ticket) < 0) continue;
    const WcStatus with = found ? WcStatus::kFlush : status;
    found = true;
    if (pending.cqe.status == 0) pending.cqe.status = static_cast<uint8_t>(with);
  }
  return found;
}

void ReceiveQueue::FailOne(uint32_t ring_slot, WcStatus status) {
  if (in_flight_ == nullptr) return;
  GrowingRing<PendingReceive>& pending = in_flight_->pending;
  for (size_t i = 0; i < pending.size(); ++i)
    if (pending[i].cqe.ring_slot == ring_slot) pending[i].cqe.status = static_cast<uint8_t>(status);
}

void ReceiveQueue::Flush(QpContext& qp, Outbox& outbox, uint32_t ticket) {
  // Receives that remain in a shared receive queue are not flushed.
  do {
    if (in_order()) {
      while (first_ != next_) CloseFailed(qp, WcStatus::kFlush, ticket);
    }
    for (uint32_t number = first_; number != next_; ++number)
      if (!At(number).closed) CloseFailed(qp, number, WcStatus::kFlush, ticket);
  } while (!qp.shares_receives && Open(qp, outbox) == shm::WorkQueue::Look::kReady);
  OnMemoryDone(qp, outbox);
}

}  // namespace rocegw::transport
