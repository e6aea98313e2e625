// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/native/responder.h"

#include <algorithm>
#include <cstring>

#include "gateway/transport/queues/completion.h"

namespace rocegw::transport {

using metrics::DropReason;
using verbs::WcStatus;
using wire::NakCode;

void Responder::Start(QpContext& qp) {
  next_ = qp.attributes.rq_psn.value;
  msn_ = 0;
  gap_answered_ = rnr_ = established_ = false;
  message_ = MessageKind::kNone;
  // At least one slot even if READs are refused, so that indexing needs no special case.
  remembered_.assign(std::max<size_t>(1, qp.attributes.max_dest_rd_atomic), Remembered{});
  next_remembered_ = 0;
  placement_ticket_ = read_ticket_ = qp.tickets_issued;
}

void Responder::SetDepth(QpContext& qp) {
  const size_t depth = std::max<size_t>(1, qp.attributes.max_dest_rd_atomic);
  // The number never shrinks, because the peer may still repeat older requests.
  if (depth <= remembered_.size()) return;
  std::rotate(remembered_.begin(),
              remembered_.begin() + static_cast<std::ptrdiff_t>(next_remembered_),
              remembered_.end());
  next_remembered_ = remembered_.size();
  remembered_.resize(depth);
}

void Responder::Reset() {
  replies_.clear();
  held_until_ = kNever;
  message_ = MessageKind::kNone;
}

DropReason Responder::OnRequest(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet) {
  if (!established_) {
    established_ = true;
    if (qp.state() == verbs::QpState::kRtr) outbox.Event(qp, verbs::AsyncEvent::kCommEstablished);
  }
  const int32_t ahead = PsnDistance(packet.headers.bth.psn, expected());
  if (ahead < 0) return OnDuplicate(qp, packet);
  if (ahead > 0) {
    if (gap_answered_) return rnr_ ? DropReason::k_rnr_wait : DropReason::k_sequence_gap;
    gap_answered_ = true;
    rnr_ = false;
    qp.worker->counters.nak_sequence_tx_packets.Add();
    QueueAck(qp, expected(), msn_, wire::SyndromeOf(NakCode::kPsnSequence), Placed(qp));
    return DropReason::k_sequence_gap;
  }
  if (is_xrc_ && !EnterSrq(packet))
    return Refuse(qp, outbox, packet.headers.bth.psn, NakCode::kInvalidRequest);
  if (const DropReason reason = CheckSequence(qp, packet); reason != DropReason::kNone) {
    return Refuse(qp, outbox, packet.headers.bth.psn, NakCode::kInvalidRequest);
  }
  return Execute(qp, outbox, packet);
}

// Switches to the shared receive queue of the packet. All packets of a message must name the same
// one.
bool Responder::EnterSrq(const wire::RxPacket& packet) {
  const uint32_t srq = packet.headers.xrc_srq;
  if (message_ != MessageKind::kNone && srq != srq_) return false;
  ReceiveQueue* const receives = selector_->Enter(srq);
  if (receives == nullptr) return false;
  receives_ = receives;
  srq_ = srq;
  return true;
}

DropReason Responder::CheckSequence(QpContext& qp, const wire::RxPacket& packet) {
  if (!Continues(*packet.traits, message_)) return DropReason::k_invalid_request;
  if (KindOf(*packet.traits) == MessageKind::kNone) return DropReason::kNone;
  return HasProperLength(packet, qp.mtu()) ? DropReason::kNone : DropReason::k_invalid_request;
}

DropReason Responder::Execute(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet) {
  switch (packet.traits->operation) {
    case wire::Operation::kSend:
      return ExecuteSend(qp, outbox, packet);
    case wire::Operation::kWrite:
      return ExecuteWrite(qp, outbox, packet);
    case wire::Operation::kReadRequest:
      return ExecuteRead(qp, outbox, packet);
    case wire::Operation::kCompareSwap:
    case wire::Operation::kFetchAdd:
      return ExecuteAtomic(qp, outbox, packet);
    case wire::Operation::kAtomicWrite:
      return ExecuteAtomicWrite(qp, outbox, packet);
    case wire::Operation::kFlush:
      return ExecuteFlush(qp, outbox, packet);
    default:
      break;
  }
  return Refuse(qp, outbox, packet.headers.bth.psn, NakCode::kInvalidRequest);
}

DropReason Responder::Refuse(QpContext& qp, Outbox& outbox, Psn psn, NakCode code) {
  return Refuse(qp, outbox, psn, code, Placed(qp));
}

DropReason Responder::Refuse(QpContext& qp, Outbox& outbox, Psn psn, NakCode code,
                             uint32_t ticket) {
  qp.worker->counters.nak_error_tx_packets.Add();
  qp.worker->counters.qp_error_events.Add();
  QueueAck(qp, psn, msn_, wire::SyndromeOf(code), ticket);
  qp.attributes.state = verbs::QpState::kError;
  outbox.Event(qp, EventOfNak(code));
  return code == NakCode::kRemoteAccess     ? DropReason::k_access_error
         : code == NakCode::kInvalidRequest ? DropReason::k_invalid_request
                                            : DropReason::k_operation_error;
}

// Handles a fault of class J (IBTA 9.9.6.3): the queue pair fails here, and the requester gets no
// NAK.
DropReason Responder::FailSilently(QpContext& qp, Outbox& outbox) {
  qp.worker->counters.qp_error_events.Add();
  qp.attributes.state = verbs::QpState::kError;
  outbox.Event(qp, EventOfNak(NakCode::kRemoteAccess));
  return DropReason::k_access_error;
}

void Responder::Advance(QpContext& qp, const wire::RxPacket& packet, uint32_t psns) {
  const Psn last = expected() + (psns - 1);
  next_ += psns;
  gap_answered_ = rnr_ = false;
  if (packet.traits->ends_message()) msn_ = (msn_ + 1) & kPsnMask;
  const bool answers_itself = packet.traits->operation != wire::Operation::kSend &&
                              packet.traits->operation != wire::Operation::kWrite;
  if (!answers_itself && packet.headers.bth.ack_request)
    QueueAck(qp, last, msn_, wire::kSyndromeAck, Placed(qp));
}

bool Responder::TakeReceive(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                            DropReason& reason) {
  const Psn psn = packet.headers.bth.psn;
  switch (receives_->Open(qp, outbox)) {
    case shm::WorkQueue::Look::kFault:
      reason = DropReason::k_operation_error;
      return false;
    case shm::WorkQueue::Look::kEmpty:
      gap_answered_ = rnr_ = true;
      qp.worker->counters.rnr_tx_packets.Add();
      QueueAck(qp, psn, msn_, wire::kSyndromeRnr | (qp.attributes.min_rnr_timer & 31), Placed(qp));
      reason = DropReason::k_rnr_wait;
      return false;
    case shm::WorkQueue::Look::kReady:
      break;
  }
  WcStatus status = receives_->At(receives_->first()).status;
  // A WRITE with immediate takes a receive and none of its buffers.
  if (status == WcStatus::kSuccess && packet.traits->operation == wire::Operation::kSend &&
      !receives_->Writable(qp, receives_->first())) {
    status = WcStatus::kLocalProtection;
  }
  if (status == WcStatus::kSuccess) return true;
  receives_->CloseFailed(qp, status, placement_ticket_);
  qp.worker->counters.wqe_bad_requests.Add();
  reason = Refuse(qp, outbox, psn, NakCode::kRemoteOperation);
  return false;
}

void Responder::CompleteReceive(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                uint32_t bytes, bool in_ring) {
  const wire::Headers& h = packet.headers;
  receives_->CloseReceived(qp, outbox,
                           {.write = packet.traits->operation == wire::Operation::kWrite,
                            .has_immediate = packet.traits->has_immediate,
                            .solicited = h.bth.solicited,
                            .in_ring = in_ring,
                            .has_invalidated = packet.traits->has_invalidate,
                            .length = bytes,
                            .immediate = h.immediate,
                            .invalidated = h.invalidate_rkey},
                           placement_ticket_);
}

DropReason Responder::ExecuteSend(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet) {
  const Psn psn = packet.headers.bth.psn;
  const auto length = static_cast<uint32_t>(packet.payload.size());
  DropReason reason = DropReason::kNone;
  if (packet.traits->starts_message() && !TakeReceive(qp, outbox, packet, reason)) return reason;
  OpenReceive& receive = receives_->At(receives_->first());
  if (uint64_t{receive.received} + length > receive.request.capacity) {
    receives_->CloseFailed(qp, WcStatus::kLocalLength, placement_ticket_);
    return Refuse(qp, outbox, psn, NakCode::kInvalidRequest);
  }
  const bool in_ring = packet.traits->position == wire::Position::kOnly &&
                       receives_->FitsRing(qp, receives_->first(), length);
  if (in_ring) {
    receives_->PlaceInRing(qp, receives_->first(), packet.payload);
  } else if (!receives_->Place(qp, outbox, receives_->first(), receive.received, packet.payload,
                               {.psn = psn}, placement_ticket_)) {
    receives_->CloseFailed(qp, WcStatus::kLocalProtection, placement_ticket_);
    return Refuse(qp, outbox, psn, NakCode::kRemoteOperation);
  }
  receive.received += length;
  if (packet.traits->has_invalidate &&
      !qp.worker->regions.Invalidate(qp.user(), MemoryKey{packet.headers.invalidate_rkey})) {
    receives_->CloseFailed(qp, WcStatus::kLocalAccess, placement_ticket_);
    return FailSilently(qp, outbox);
  }
  qp.CountBytesReceived(length);
  message_ = packet.traits->ends_message() ? MessageKind::kNone : MessageKind::kSend;
  if (packet.traits->ends_message()) {
    CompleteReceive(qp, outbox, packet, receive.received, in_ring);
  }
  Advance(qp, packet, 1);
  return DropReason::kNone;
}

DropReason Responder::ExecuteWrite(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet) {
  const Psn psn = packet.headers.bth.psn;
  // A message of one packet leaves nothing for the next packet.
  IncomingWrite alone;
  IncomingWrite& write = packet.traits->position == wire::Position::kOnly ? alone : write_;
  const IncomingWrite::Refusal refusal = write.Admit(qp, packet);
  if (refusal != IncomingWrite::Refusal::kNone) {
    const bool access = refusal == IncomingWrite::Refusal::kAccess;
    // The program learns of the fault by the receive that the immediate would have taken (IBTA
    // 11.6.2).
    if (access && packet.traits->has_immediate &&
        receives_->Open(qp, outbox) == shm::WorkQueue::Look::kReady) {
      receives_->CloseFailed(qp, WcStatus::kLocalAccess, placement_ticket_);
    }
    return Refuse(qp, outbox, psn, access ? NakCode::kRemoteAccess : NakCode::kInvalidRequest);
  }
  DropReason reason = DropReason::kNone;
  if (packet.traits->has_immediate && !TakeReceive(qp, outbox, packet, reason)) return reason;
  if (write.Place(qp, outbox, packet) != IncomingWrite::Refusal::kNone) {
    if (packet.traits->has_immediate)
      receives_->CloseFailed(qp, WcStatus::kLocalAccess, placement_ticket_);
    return Refuse(qp, outbox, psn, NakCode::kRemoteAccess);
  }
  if (!packet.payload.empty()) placement_ticket_ = qp.tickets_issued;
  message_ = packet.traits->ends_message() ? MessageKind::kNone : MessageKind::kWrite;
  if (packet.traits->has_immediate) CompleteReceive(qp, outbox, packet, write.length(), false);
  Advance(qp, packet, 1);
  return DropReason::kNone;
}

// Returns true if the peer exceeds its number of READs. Repetitions count separately: when the
// requester repeats, late answers to the first requests may arrive and allow it new requests.
bool Responder::TooManyReads(const QpContext& qp, bool repeated) const {
  size_t count = 0;
  for (size_t i = 0; i < replies_.size(); ++i) {
    const ReplyKind kind = replies_[i].kind;
    count +=
        kind != ReplyKind::kAck && kind != ReplyKind::kFlush && replies_[i].repeated == repeated;
  }
  return count >= qp.attributes.max_dest_rd_atomic;
}

Responder::Remembered& Responder::Remember(const wire::RxPacket& packet, uint32_t psns) {
  Remembered& memory = remembered_[next_remembered_];
  next_remembered_ = (next_remembered_ + 1) % remembered_.size();
  memory = Remembered{};
  memory.valid = true;
  memory.operation = packet.traits->operation;
  memory.at = next_;
  memory.first = packet.headers.bth.psn;
  memory.psns = psns;
  memory.srq = srq_;
  return memory;
}

DropReason Responder::ExecuteRead(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet) {
  const wire::Reth& reth = packet.headers.reth;
  const Psn psn = packet.headers.bth.psn;
  if ((qp.attributes.access & verbs::kAccessRemoteRead) == 0 || reth.length > verbs::kMaxMessage ||
      TooManyReads(qp, false)) {
    return Refuse(qp, outbox, psn, NakCode::kInvalidRequest);
  }
  if (reth.length != 0 && !qp.worker->regions
                               .FindRemote(qp.user(), MemoryKey{reth.rkey},
                                           verbs::kAccessRemoteRead, reth.address, reth.length)
                               .has_value()) {
    return Refuse(qp, outbox, psn, NakCode::kRemoteAccess);
  }
  const uint32_t psns = std::max<uint32_t>(1, (reth.length + qp.mtu() - 1) / qp.mtu());
  Remembered& memory = Remember(packet, psns);
  memory.address = reth.address;
  memory.rkey = reth.rkey;
  memory.length = reth.length;
  Advance(qp, packet, psns);
  memory.msn = msn_;
  QueueRead(qp, memory, psn, reth.address, reth.length, psns);
  return DropReason::kNone;
}

DropReason Responder::ExecuteAtomic(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet) {
  const wire::AtomicEth& atomic = packet.headers.atomic;
  const Psn psn = packet.headers.bth.psn;
  if ((qp.attributes.access & verbs::kAccessRemoteAtomic) == 0 || (atomic.address & 7) != 0 ||
      TooManyReads(qp, false)) {
    return Refuse(qp, outbox, psn, NakCode::kInvalidRequest);
  }
  const std::optional<verbs::RemotePlace> place = qp.worker->regions.FindRemote(
      qp.user(), MemoryKey{atomic.rkey}, verbs::kAccessRemoteAtomic, atomic.address, 8);
  if (!place.has_value()) return Refuse(qp, outbox, psn, NakCode::kRemoteAccess);
  const bool swap = packet.traits->operation == wire::Operation::kCompareSwap;
  const memory::MemoryOp op{.kind = swap ? memory::OpKind::kCompareSwap : memory::OpKind::kFetchAdd,
                            .length = 8,
                            .address = place->address,
                            .direct = place->direct,
                            .compare = atomic.compare,
                            .swap_or_add = atomic.swap_or_add};
  outbox.Access(qp, op, {qp.handle, ++qp.tickets_issued, AccessPurpose::kAtomic, psn, 0}, nullptr);
  placement_ticket_ = qp.tickets_issued;
  Remembered& memory = Remember(packet, 1);
  memory.ticket = qp.tickets_issued;
  Advance(qp, packet, 1);
  memory.msn = msn_;
  QueueAtomic(qp, memory);
  return DropReason::kNone;
}

DropReason Responder::OnDuplicate(QpContext& qp, const wire::RxPacket& packet) {
  const Psn psn = packet.headers.bth.psn;
  switch (packet.traits->operation) {
    case wire::Operation::kReadRequest: {
      const wire::Reth& reth = packet.headers.reth;
      const Remembered* memory = FindRemembered(psn);
      if (memory == nullptr || memory->operation != packet.traits->operation ||
          memory->rkey != reth.rkey) {
        return DropReason::k_duplicate_invalid;
      }
      const uint64_t skipped =
          uint64_t{static_cast<uint32_t>(PsnDistance(psn, memory->first))} * qp.mtu();
      // A repetition may ask for the rest of the READ, or less.
      if (reth.address != memory->address + skipped || reth.length > memory->length - skipped) {
        return DropReason::k_duplicate_invalid;
      }
      DropRepliesFrom(psn);
      if (TooManyReads(qp, true)) return DropReason::k_duplicate_invalid;
      qp.worker->counters.read_replay_events.Add();
      QueueRead(qp, *memory, psn, reth.address, reth.length,
                std::max<uint32_t>(1, (reth.length + qp.mtu() - 1) / qp.mtu()));
      replies_.back().repeated = true;
      return DropReason::k_duplicate_request;
    }
    case wire::Operation::kCompareSwap:
    case wire::Operation::kFetchAdd:
    case wire::Operation::kAtomicWrite: {
      const Remembered* memory = FindRemembered(psn);
      if (memory == nullptr || memory->operation != packet.traits->operation)
        return DropReason::k_duplicate_invalid;
      DropRepliesFrom(psn);
      if (TooManyReads(qp, true)) return DropReason::k_duplicate_invalid;
      qp.worker->counters.atomic_replay_events.Add();
      if (packet.traits->operation == wire::Operation::kAtomicWrite) {
        QueueAtomicWrite(qp, *memory);
      } else {
        QueueAtomic(qp, *memory);
      }
      replies_.back().repeated = true;
      return DropReason::k_duplicate_request;
    }
    case wire::Operation::kFlush:
      return OnDuplicateFlush(qp, packet);
    default:
      AcknowledgeAgain(qp, psn);
      return DropReason::k_duplicate_request;
  }
}

void Responder::OnAtomicResult(const AccessTag& tag, uint64_t original) {
  Remembered* memory = FindRemembered(tag.psn);
  if (memory == nullptr || memory->ticket != tag.ticket) return;
  memory->result = original;
  memory->result_known = true;
}

void Responder::OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag) {
  qp.worker->counters.memory_fault_operations.Add();
  DropRepliesFrom(tag.psn);
  receives_->OnFault(qp, tag, placement_ticket_);
  if (qp.state() == verbs::QpState::kError) return;
  // All tickets before the fault are done.
  const bool receive = tag.purpose == AccessPurpose::kReceive;
  Refuse(qp, outbox, tag.psn, receive ? NakCode::kRemoteOperation : NakCode::kRemoteAccess,
         qp.tickets_done);
}

}  // namespace rocegw::transport
