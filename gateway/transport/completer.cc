// SPDX-License-Identifier: Apache-2.0
// The requester's answer side: acknowledgements, READ data and atomic results retire work requests
// in order.
#include <algorithm>

#include "gateway/transport/completion.h"
#include "gateway/transport/requester.h"

namespace rocegw::transport {

using metrics::DropReason;
using verbs::WcStatus;

Duration RnrDelay(uint8_t code) {
  // Hundredths of a millisecond.
  static constexpr uint32_t kDelays[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                           16,    24,   32,   48,    64,    96,    128,   192,
                                           256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                           4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return Microseconds(int64_t{kDelays[code & 31]} * 10);
}

void Requester::SyncWithFlow() {
  if (seen_rewinds_ == flow_.rewinds()) return;
  seen_rewinds_ = flow_.rewinds();
  // Whatever was awaited lies behind una and is asked for again.
  awaited_.clear();
  cursor_ = head_;
  since_ack_request_ = 0;
}

// The first PSN that only a READ response or an atomic's result can acknowledge.
std::optional<Psn> Requester::FirstAwaited() {
  if (reading_ == 0) return std::nullopt;
  for (uint32_t i = head_; i != tail_ && At(i).started; ++i) {
    const Outstanding& o = At(i);
    if (!o.request.reads_remote() || Answered(o)) continue;
    return PsnBefore(o.first, flow_.una()) ? flow_.una() : o.first;
  }
  return std::nullopt;
}

bool Requester::Acknowledge(QpContext& qp, Outbox& outbox, Psn upto, const wire::RxPacket& packet,
                            TimePoint now) {
  const bool marked = (packet.meta.traffic_class & 3) == 3;
  if (!flow_.OnAcked(upto, qp.mtu(), marked, now)) return false;
  rnr_left_ = qp.attributes.rnr_retry;
  asked_again_ = false;
  SyncWithFlow();
  Retire(qp, outbox);
  return true;
}

DropReason Requester::OnResponse(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                 TimePoint now) {
  if (!qp.sends()) return DropReason::k_qp_state;
  const Psn psn = packet.headers.bth.psn;
  if (PsnBefore(psn, flow_.una()) || !PsnBefore(psn, flow_.max()))
    return DropReason::k_stale_response;
  switch (packet.traits->operation) {
    case wire::Operation::kAck:
      return OnAck(qp, outbox, packet, now);
    case wire::Operation::kReadResponse:
      return OnReadResponse(qp, outbox, packet, now);
    default:
      return OnAtomicAck(qp, outbox, packet, now);
  }
}

DropReason Requester::OnAck(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                            TimePoint now) {
  const Psn psn = packet.headers.bth.psn;
  const wire::Aeth& aeth = packet.headers.aeth;
  const std::optional<Psn> awaited = FirstAwaited();
  // An ACK covers its own PSN; a NAK everything before. Neither covers a READ or atomic whose
  // answer is missing.
  Psn upto = aeth.is_ack() ? psn + 1 : psn;
  const bool answer_lost = awaited.has_value() && PsnAfter(upto, *awaited);
  if (answer_lost) upto = *awaited;
  if (aeth.is_ack()) {
    qp.counters->ack_rx_packets.Add();
    Acknowledge(qp, outbox, upto, packet, now);
    if (answer_lost && !awaited_.empty()) OnAnswerLost(qp, now);
    return DropReason::kNone;
  }
  const bool progress = Acknowledge(qp, outbox, upto, packet, now);
  if (qp.state() == verbs::QpState::kError) return DropReason::kNone;
  if (aeth.is_rnr()) {
    qp.counters->rnr_rx_packets.Add();
    // While the flow waits nothing is sent: the same NAK again is a copy.
    if (rnr_waiting_ && !progress) return DropReason::k_stale_response;
    OnRnr(qp, aeth.rnr_timer(), now);
    return DropReason::kNone;
  }
  if (!aeth.is_nak()) return DropReason::k_malformed_response;
  switch (static_cast<wire::NakCode>(aeth.syndrome & 0x7F)) {
    case wire::NakCode::kPsnSequence:
      qp.counters->nak_sequence_rx_packets.Add();
      // What followed a request that the receiver was not ready for draws a NAK of its own from
      // some peers; everything is sent again after the wait anyway.
      if (!rnr_waiting_) OnLoss(qp, now);
      return DropReason::kNone;
    case wire::NakCode::kInvalidRequest:
      Fail(qp, WcStatus::kRemoteInvalidRequest);
      break;
    case wire::NakCode::kRemoteAccess:
      Fail(qp, WcStatus::kRemoteAccess);
      break;
    case wire::NakCode::kRemoteOperation:
      Fail(qp, WcStatus::kRemoteOperation);
      break;
    case wire::NakCode::kInvalidRdRequest:
      Fail(qp, WcStatus::kRemoteInvalidRdRequest);
      break;
    default:
      return DropReason::k_malformed_response;
  }
  qp.counters->nak_error_rx_packets.Add();
  return DropReason::kNone;
}

void Requester::OnRnr(QpContext& qp, uint8_t timer, TimePoint now) {
  if (qp.attributes.rnr_retry != 7) {
    if (rnr_left_ == 0) {
      Fail(qp, WcStatus::kRnrRetryExceeded);
      return;
    }
    --rnr_left_;
  }
  flow_.OnReceiverNotReady();
  SyncWithFlow();
  rnr_waiting_ = true;
  rnr_until_ = now + RnrDelay(timer);
}

void Requester::OnLoss(QpContext& qp, TimePoint now) {
  if (!flow_.OnLoss(now)) {
    Fail(qp, WcStatus::kRetryExceeded);
    return;
  }
  SyncWithFlow();
}

// Once until there is progress: what is on its way was sent before the repeated request arrived,
// and shows the same gap. When the repetition is lost, too, the timers tell.
void Requester::OnAnswerLost(QpContext& qp, TimePoint now) {
  if (asked_again_ || qp.state() == verbs::QpState::kError) return;
  asked_again_ = true;
  qp.counters->implied_nak_events.Add();
  OnLoss(qp, now);
}

Requester::Outstanding* Requester::MatchAwaited(QpContext& qp, Outbox& outbox,
                                                const wire::RxPacket& packet, TimePoint now,
                                                DropReason& reason) {
  const Psn psn = packet.headers.bth.psn;
  if (awaited_.empty() || PsnBefore(psn, awaited_.front().next)) {
    reason = DropReason::k_stale_response;
    return nullptr;
  }
  if (psn != awaited_.front().next) {
    // Something in between was lost; what came before it counts.
    reason = DropReason::k_response_gap;
    Acknowledge(qp, outbox, awaited_.front().next, packet, now);
    OnAnswerLost(qp, now);
    return nullptr;
  }
  const uint32_t index = awaited_.front().request;
  Acknowledge(qp, outbox, psn, packet, now);
  // Acknowledging may have ended the QP or sent the flow back.
  if (qp.state() == verbs::QpState::kError || awaited_.empty()) {
    reason = DropReason::k_stale_response;
    return nullptr;
  }
  reason = DropReason::kNone;
  return &At(index);
}

bool Requester::Place(QpContext& qp, Outbox& outbox, Outstanding& o, uint32_t index,
                      uint32_t offset, std::span<const uint8_t> bytes, AccessPurpose purpose,
                      Psn psn) {
  if (bytes.empty()) return true;
  const bool whole = verbs::WalkPieces(
      *qp.regions, qp.config, ListOf(index), verbs::kAccessLocalWrite, offset,
      static_cast<uint32_t>(bytes.size()), [&](const verbs::Piece& piece) {
        const memory::MemoryOp op{.kind = memory::OpKind::kWrite,
                                  .length = piece.length,
                                  .address = piece.address,
                                  .direct = piece.direct,
                                  .buffer = const_cast<uint8_t*>(bytes.data()) + piece.offset};
        outbox.Access(qp, op, {qp.handle, ++qp.tickets_issued, purpose, psn, index}, nullptr);
        o.ticket = qp.tickets_issued;
        o.has_ticket = true;
      });
  if (!whole) o.failed = WcStatus::kLocalProtection;
  return whole;
}

DropReason Requester::OnReadResponse(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                     TimePoint now) {
  DropReason reason;
  Outstanding* o = MatchAwaited(qp, outbox, packet, now, reason);
  if (o == nullptr) return reason;
  const Psn psn = packet.headers.bth.psn;
  const uint32_t index = awaited_.front().request;
  const uint32_t offset = OffsetOf(qp, *o, psn);
  // First/Middle/Last are not compared: some responders repeat a READ from its middle without a new
  // First.
  const uint32_t expected = std::min(qp.mtu(), o->request.length - offset);
  const bool is_nak = packet.traits->has_aeth && !packet.headers.aeth.is_ack();
  if (o->request.opcode != verbs::SendOpcode::kRead || packet.payload.size() != expected ||
      is_nak) {
    Fail(qp, WcStatus::kBadResponse);
    return DropReason::k_malformed_response;
  }
  qp.bytes_received += expected;
  Place(qp, outbox, *o, index, offset, packet.payload, AccessPurpose::kReadPlacement, psn);
  awaited_.front().next = psn + 1;
  if (awaited_.front().next == awaited_.front().end) awaited_.pop_front();
  Acknowledge(qp, outbox, psn + 1, packet, now);
  return DropReason::kNone;
}

DropReason Requester::OnAtomicAck(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                  TimePoint now) {
  DropReason reason;
  Outstanding* o = MatchAwaited(qp, outbox, packet, now, reason);
  if (o == nullptr) return reason;
  if (!o->request.is_atomic() || !packet.headers.aeth.is_ack()) {
    Fail(qp, WcStatus::kBadResponse);
    return DropReason::k_malformed_response;
  }
  const Psn psn = packet.headers.bth.psn;
  const uint32_t index = awaited_.front().request;
  awaited_.pop_front();
  // The result stays in the request until it is placed.
  o->request.compare_add = packet.headers.atomic_ack;
  Place(qp, outbox, *o, index, 0, {reinterpret_cast<const uint8_t*>(&o->request.compare_add), 8},
        AccessPurpose::kAtomicPlacement, psn);
  Acknowledge(qp, outbox, psn + 1, packet, now);
  return DropReason::kNone;
}

void Requester::OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag) {
  qp.counters->memory_fault_operations.Add();
  if (tag.request - head_ >= tail_ - head_) return;
  Outstanding& o = At(tag.request);
  // A packet that was to be sent again is not missed once the first one is acknowledged.
  if (tag.purpose == AccessPurpose::kSendPayload && PsnBefore(tag.psn, flow_.una())) return;
  o.failed = WcStatus::kLocalProtection;
  if (qp.state() != verbs::QpState::kError) Retire(qp, outbox);
}

void Requester::OnMemoryDone(QpContext& qp, Outbox& outbox) {
  if (qp.state() == verbs::QpState::kError) {
    if (flushing_) Flush(qp, outbox);
  } else {
    Retire(qp, outbox);
  }
}

// Completes the oldest request.
void Requester::Complete(QpContext& qp, Outbox& outbox, WcStatus status) {
  const Outstanding& o = At(head_);
  const bool signaled = qp.config.signal_all || (o.request.flags & ROCEGW_WQE_SIGNALED) != 0;
  if (o.started && o.request.reads_remote()) --reading_;
  if (cursor_ == head_) ++cursor_;
  ++head_;
  qp.sq.Release(head_);
  if (status == WcStatus::kSuccess && !signaled) {
    ++qp.sends_completed;
    return;
  }
  rocegw_cqe cqe = MakeCompletion(qp, status, o.request.wr_id, o.request.ring_slot);
  cqe.opcode = static_cast<uint8_t>(CompletionOpcode(o.request.opcode));
  if (status == WcStatus::kSuccess) cqe.byte_length = o.request.length;
  if (!PushSend(qp, outbox, cqe)) Fail(qp, WcStatus::kGeneral);
}

void Requester::Retire(QpContext& qp, Outbox& outbox) {
  while (head_ != tail_ && qp.state() != verbs::QpState::kError) {
    const Outstanding& o = At(head_);
    if (o.failed != WcStatus::kSuccess) {
      Fail(qp, o.failed);
      return;
    }
    if (!Answered(o) || (o.has_ticket && !qp.IsDone(o.ticket))) return;
    Complete(qp, outbox, WcStatus::kSuccess);
  }
}

void Requester::Fail(QpContext& qp, WcStatus status) {
  if (qp.state() == verbs::QpState::kError) return;
  qp.attributes.state = verbs::QpState::kError;
  qp.counters->qp_error_events.Add();
  uint32_t i = head_;
  while (i != tail_ && Answered(At(i)) && At(i).failed == WcStatus::kSuccess) ++i;
  if (i != tail_) At(i).failed = status;
}

void Requester::Flush(QpContext& qp, Outbox& outbox) {
  if (!flushing_) {
    flushing_ = true;
    flush_ticket_ = qp.tickets_issued;
    awaited_.clear();
    rnr_waiting_ = false;
  }
  if (!qp.IsDone(flush_ticket_)) return;
  flush_ticket_ = qp.tickets_done;
  // What was taken before: at most one of them tells why.
  for (bool told = false; head_ != tail_;) {
    const Outstanding& o = At(head_);
    WcStatus status = WcStatus::kFlush;
    if (!told) {
      if (o.failed != WcStatus::kSuccess) {
        status = o.failed;
      } else if (Answered(o)) {
        status = WcStatus::kSuccess;
      }
      told = status != WcStatus::kSuccess;
    }
    Complete(qp, outbox, status);
  }
  // What is posted: whatever comes while this runs has a doorbell of its own.
  for (uint32_t i = 0; i < qp.sq.entries() && FetchOne(qp, outbox); ++i)
    Complete(qp, outbox, WcStatus::kFlush);
}

}  // namespace rocegw::transport
