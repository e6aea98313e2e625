// SPDX-License-Identifier: Apache-2.0
// Receiving side of the requester: acknowledgements, READ responses and atomic results complete
// work requests in order.
#include <algorithm>

#include "gateway/transport/native/requester.h"
#include "gateway/transport/native/rnr_delay.h"
#include "gateway/transport/queues/completion.h"

namespace rocegw::transport {

using metrics::DropReason;
using verbs::WcStatus;

// Marks requests whose packets are all acknowledged. For READs and atomics, a response
// acknowledges.
void Requester::MarkAnswered() {
  // Local requests complete without the peer, so `answered_` may lie behind the head.
  if (static_cast<int32_t>(answered_ - send_.head()) < 0) answered_ = send_.head();
  for (; send_.Holds(answered_) && send_.At(answered_).started; ++answered_) {
    SendEntry& o = send_.At(answered_);
    if (o.request.is_local()) continue;
    if (PsnBefore(flow_.una(), o.end())) return;
    o.answered = true;
  }
}

void Requester::SyncWithFlow() {
  if (seen_rewinds_ == flow_.rewinds()) return;
  seen_rewinds_ = flow_.rewinds();
  // All awaited PSNs lie behind una and are requested again.
  awaited_.clear();
  cursor_ = send_.head();
  since_ack_request_ = 0;
}

// Returns the first PSN that only a READ response or an atomic's result can acknowledge.
std::optional<Psn> Requester::FirstAwaited() {
  if (send_.reading() == 0) return std::nullopt;
  for (uint32_t i = send_.head(); i != send_.tail() && send_.At(i).started; ++i) {
    const SendEntry& o = send_.At(i);
    if (!o.request.has_own_answer() || o.answered) continue;
    return PsnBefore(o.first, flow_.una()) ? flow_.una() : o.first;
  }
  return std::nullopt;
}

bool Requester::Acknowledge(QpContext& qp, Outbox& outbox, Psn upto, TimePoint now) {
  if (!flow_.OnAcked(upto, qp.mtu(), now)) return false;
  rnr_left_ = qp.attributes.rnr_retry;
  asked_again_ = false;
  MarkAnswered();
  SyncWithFlow();
  send_.Retire(qp, outbox);
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
  // An ACK covers its own PSN, a NAK everything before it. Neither covers a READ or atomic whose
  // response is missing.
  Psn upto = aeth.is_ack() ? psn + 1 : psn;
  const bool answer_lost = awaited.has_value() && PsnAfter(upto, *awaited);
  if (answer_lost) upto = *awaited;
  if (aeth.is_ack()) {
    qp.worker->counters.ack_rx_packets.Add();
    Acknowledge(qp, outbox, upto, now);
    if (answer_lost && !awaited_.empty()) OnAnswerLost(qp, now);
    return DropReason::kNone;
  }
  const bool sequence = (aeth.syndrome & 0x7F) == wire::SyndromeOf(wire::NakCode::kPsnSequence);
  const std::optional<WcStatus> refused = StatusOfNak(aeth.syndrome & 0x7F);
  // An invalid syndrome acknowledges nothing.
  if (!aeth.is_rnr() && !sequence && !refused.has_value()) return DropReason::k_malformed_response;
  const bool progress = Acknowledge(qp, outbox, upto, now);
  if (qp.state() == verbs::QpState::kError) return DropReason::kNone;
  if (aeth.is_rnr()) {
    qp.worker->counters.rnr_rx_packets.Add();
    // While the flow waits, nothing is sent: the same NAK again is a copy.
    if (rnr_waiting_ && !progress) return DropReason::k_stale_response;
    OnRnr(qp, aeth.rnr_timer(), now);
    return DropReason::kNone;
  }
  if (sequence) {
    qp.worker->counters.nak_sequence_rx_packets.Add();
    // Some peers send a sequence NAK for each packet behind an RNR NAK. All of them are sent again
    // after the wait anyway.
    if (!rnr_waiting_) OnLoss(qp, now);
    return DropReason::kNone;
  }
  send_.Fail(qp, *refused);
  qp.worker->counters.nak_error_rx_packets.Add();
  return DropReason::kNone;
}

void Requester::OnRnr(QpContext& qp, uint8_t timer, TimePoint now) {
  if (qp.attributes.rnr_retry != 7) {
    if (rnr_left_ == 0) {
      send_.Fail(qp, WcStatus::kRnrRetryExceeded);
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
    send_.Fail(qp, WcStatus::kRetryExceeded);
    return;
  }
  SyncWithFlow();
}

// Requests a lost response again, once until there is progress: responses in flight were sent
// before the repeated request arrived and show the same gap. If the repetition is lost as well, the
// timer recovers.
void Requester::OnAnswerLost(QpContext& qp, TimePoint now) {
  if (asked_again_ || qp.state() == verbs::QpState::kError) return;
  asked_again_ = true;
  qp.worker->counters.implied_nak_events.Add();
  OnLoss(qp, now);
}

SendEntry* Requester::MatchAwaited(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                   TimePoint now, DropReason& reason) {
  const Psn psn = packet.headers.bth.psn;
  if (awaited_.empty() || PsnBefore(psn, awaited_.front().next)) {
    reason = DropReason::k_stale_response;
    return nullptr;
  }
  if (psn != awaited_.front().next) {
    // A response in between was lost; the responses before it still acknowledge.
    reason = DropReason::k_response_gap;
    Acknowledge(qp, outbox, awaited_.front().next, now);
    OnAnswerLost(qp, now);
    return nullptr;
  }
  const uint32_t index = awaited_.front().request;
  Acknowledge(qp, outbox, psn, now);
  // Acknowledge() may have moved the queue pair to error or rewound the flow.
  if (qp.state() == verbs::QpState::kError || awaited_.empty()) {
    reason = DropReason::k_stale_response;
    return nullptr;
  }
  reason = DropReason::kNone;
  return &send_.At(index);
}

DropReason Requester::OnReadResponse(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                     TimePoint now) {
  DropReason reason;
  SendEntry* o = MatchAwaited(qp, outbox, packet, now, reason);
  if (o == nullptr) return reason;
  const Psn psn = packet.headers.bth.psn;
  const uint32_t index = awaited_.front().request;
  const uint32_t offset = OffsetOf(qp, *o, psn);
  // The positions First, Middle and Last are not checked: some responders repeat a READ from its
  // middle without a new First.
  const bool reads = o->request.opcode == verbs::SendOpcode::kRead;
  // FLUSH and ATOMIC WRITE are answered like a READ of zero bytes.
  const uint32_t expected = reads ? std::min(qp.mtu(), o->request.length - offset) : 0;
  const bool is_nak = packet.traits->has_aeth && !packet.headers.aeth.is_ack();
  if ((!reads && !o->request.is_placement()) || packet.payload.size() != expected || is_nak) {
    send_.Fail(qp, WcStatus::kBadResponse);
    return DropReason::k_malformed_response;
  }
  qp.CountBytesReceived(expected);
  send_.Place(qp, outbox, index, offset, packet.payload,
              {.purpose = AccessPurpose::kReadPlacement, .psn = psn});
  awaited_.front().next = psn + 1;
  if (awaited_.front().next == awaited_.front().end) awaited_.pop_front();
  Acknowledge(qp, outbox, psn + 1, now);
  return DropReason::kNone;
}

DropReason Requester::OnAtomicAck(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                  TimePoint now) {
  DropReason reason;
  SendEntry* o = MatchAwaited(qp, outbox, packet, now, reason);
  if (o == nullptr) return reason;
  if (!o->request.is_atomic() || !packet.headers.aeth.is_ack()) {
    send_.Fail(qp, WcStatus::kBadResponse);
    return DropReason::k_malformed_response;
  }
  const Psn psn = packet.headers.bth.psn;
  const uint32_t index = awaited_.front().request;
  awaited_.pop_front();
  // The placement refers to the result in the request entry.
  o->request.compare_add = packet.headers.atomic_ack;
  send_.Place(qp, outbox, index, 0, {reinterpret_cast<const uint8_t*>(&o->request.compare_add), 8},
              {.purpose = AccessPurpose::kAtomicPlacement, .psn = psn});
  Acknowledge(qp, outbox, psn + 1, now);
  return DropReason::kNone;
}

void Requester::OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag) {
  qp.worker->counters.memory_fault_operations.Add();
  if (!send_.Holds(tag.request)) return;
  SendEntry& o = send_.At(tag.request);
  // A retransmitted packet is not needed once the original is acknowledged.
  if (tag.purpose == AccessPurpose::kSendPayload && PsnBefore(tag.psn, flow_.una())) return;
  o.failed = WcStatus::kLocalProtection;
  if (qp.state() != verbs::QpState::kError) send_.Retire(qp, outbox);
}

void Requester::Stop() {
  awaited_.clear();
  rnr_waiting_ = false;
}

}  // namespace rocegw::transport
