// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/endpoint/endpoint_initiator.h"

#include <algorithm>
#include <utility>

#include "gateway/transport/message/frame_packet.h"
#include "gateway/transport/native/rnr_delay.h"
#include "gateway/transport/queues/completion.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::transport {

using metrics::DropReason;
using verbs::WcStatus;
using wire::ChannelFrame;
using wire::FrameKind;

namespace {

bool IsUnacknowledged(const verbs::SendRequest& request) {
  return (request.flags & ROCEGW_WQE_UNACKNOWLEDGED) != 0;
}

// Returns false for requests that a peer gateway with these options would drop, or that want no
// answer and need one.
bool PeerAnswers(const verbs::SendRequest& request, uint32_t options) {
  if (request.reads_remote() && (options & wire::kOptionEndpointReads) == 0) return false;
  if (request.reads_remote() && IsUnacknowledged(request)) return false;
  return !request.is_fetch_operate() || (options & wire::kOptionFetchOperate) != 0;
}

// Returns the most payload of one frame.
uint32_t MostPayload(const QpContext& qp, const flow::Carrier& carrier) {
  return std::min(verbs::MtuBytes(qp.rare.port_mtu), carrier.max_payload());
}

bool HasNoOrder(const QpContext& qp, const verbs::SendRequest& request) {
  return qp.config.service_mode == verbs::ServiceMode::kUnordered ||
         request.order() == wire::MessageOrder::kNone;
}

}  // namespace

void EndpointInitiator::Reset() {
  std::fill(messages_.begin(), messages_.end(), Message{});
  reading_ = 0;
  asked_ = 0;
  look_at_ = kNever;
  EndException();
}

bool EndpointInitiator::Open(uint32_t index) const {
  const SendEntry& entry = send_.At(index);
  return entry.started && !entry.answered && entry.failed == WcStatus::kSuccess;
}

uint32_t EndpointInitiator::under_way(const QpContext& qp) const {
  uint32_t count = 0;
  for (uint32_t index = send_.head(); index != send_.tail(); ++index) {
    const SendEntry& entry = send_.At(index);
    if (entry.started && (!entry.answered || !send_.IsPlaced(qp, index))) ++count;
  }
  return count;
}

void EndpointInitiator::OnFailure(QpContext& qp) {
  ++failures_;
  if (!qp.rare.suspends_on_failure || in_exception_ || !qp.sends()) return;
  qp.attributes.state = verbs::QpState::kSqd;
  in_exception_ = exception_raised_ = true;
  qp.worker->counters.endpoint_exception_events.Add();
}

void EndpointInitiator::End(QpContext& qp, uint32_t index, WcStatus status) {
  const SendEntry& entry = send_.At(index);
  if (entry.started) channels_.Leave(*MessageOf(index).carrier);
  if (entry.started && entry.request.reads_remote()) {
    --reading_;
    asked_ -= entry.request.length;
  }
  MessageOf(index).carrier = nullptr;
  send_.Conclude(qp, index, status);
  if (status != WcStatus::kSuccess) OnFailure(qp);
}

// Returns true if the message must wait for an earlier one to the same peer.
bool EndpointInitiator::Waits(uint32_t index) const {
  const verbs::SendRequest& request = send_.At(index).request;
  return request.order() == wire::MessageOrder::kStrong && ordered_.Contains(request.peer);
}

bool EndpointInitiator::HasRoomToRead(const verbs::SendRequest& request) const {
  return reading_ < kMostReading && (asked_ == 0 || asked_ + request.length <= kMostAsked);
}

// Returns the channel for a message to the peer. A message without order takes the path with the
// fewest messages in flight, and all its frames use it: a target reassembles a message on one
// channel.
flow::Carrier* EndpointInitiator::Choose(QpContext& qp, Outbox& outbox, const Peer& peer) const {
  flow::Carrier* best = outbox.Reach(qp, peer, 0);
  for (uint32_t beside = 1; best != nullptr && channels_.UsesOf(*best) != 0; ++beside) {
    flow::Carrier* const other = outbox.Reach(qp, peer, beside);
    if (other == nullptr) break;
    if (channels_.UsesOf(*other) < channels_.UsesOf(*best)) best = other;
  }
  return best;
}

// Begins the request. Returns false if it has failed.
bool EndpointInitiator::Begin(QpContext& qp, Outbox& outbox, uint32_t index, TimePoint now) {
  SendEntry& entry = send_.At(index);
  const auto peer =
      qp.peers == nullptr ? PeerTable::const_iterator{} : qp.peers->find(entry.request.peer);
  const bool known =
      qp.peers != nullptr && peer != qp.peers->end() &&
      (qp.rare.peers == nullptr || qp.rare.peers->Allow(peer->second.path.destination));
  const bool answered = known && PeerAnswers(entry.request, peer->second.target.features);
  if (!answered || !send_.Check(qp, index)) {
    End(qp, index, answered ? entry.failed : WcStatus::kLocalQpOperation);
    return false;
  }
  flow::Carrier* carrier = HasNoOrder(qp, entry.request) ? Choose(qp, outbox, peer->second)
                                                         : outbox.Reach(qp, peer->second, 0);
  if (carrier == nullptr) {
    End(qp, index, WcStatus::kRetryExceeded);
    return false;
  }
  if (IsUnacknowledged(entry.request) && entry.request.length > MostPayload(qp, *carrier)) {
    End(qp, index, WcStatus::kLocalLength);
    return false;
  }
  MessageOf(index) = {.carrier = carrier,
                      .endpoint = peer->second.endpoint,
                      .key = peer->second.key,
                      .again = now,
                      .give_up = now + Milliseconds(qp.rare.give_up_ms)};
  channels_.Use(*carrier);
  look_at_ = Earlier(look_at_, MessageOf(index).give_up);
  send_.Start(index);
  if (entry.request.reads_remote()) {
    ++reading_;
    asked_ += entry.request.length;
  }
  return true;
}

PumpResult EndpointInitiator::Pump(QpContext& qp, Outbox& outbox, TimePoint now,
                                   PumpBudget& budget) {
  if (!qp.sends()) return PumpResult::kIdle;
  while (qp.state() != verbs::QpState::kSqd && send_.FetchOne(qp, outbox)) {
  }
  bool waits = false;
  bool reads = false;       // a READ or atomic is incomplete
  bool reads_wait = false;  // a READ or atomic waits until others are answered
  ordered_.Clear();
  const std::optional<uint32_t> first = std::exchange(first_, std::nullopt);
  const uint32_t from = first.has_value() && send_.Holds(*first) ? *first : send_.head();
  for (uint32_t index = send_.head(); index != send_.tail(); ++index) {
    SendEntry& entry = send_.At(index);
    const bool is_read = entry.request.reads_remote();
    const bool fenced = (entry.request.flags & ROCEGW_WQE_FENCE) != 0 && reads;
    if (is_read && (!entry.answered || !send_.IsPlaced(qp, index))) reads = true;
    if (entry.answered) continue;
    if (!entry.started) {
      // Requests behind this one may have begun.
      if (qp.state() == verbs::QpState::kSqd) continue;
      if (entry.failed != WcStatus::kSuccess) {
        End(qp, index, entry.failed);
        continue;
      }
      const uint16_t flags = entry.request.flags;
      const bool all = (flags & (ROCEGW_WQE_FENCE_ALL | ROCEGW_WQE_FENCE_TARGET)) != 0;
      if (fenced || (all && index != send_.head())) {
        waits = true;
        break;
      }
      const bool ordered = !HasNoOrder(qp, entry.request);
      reads_wait |= is_read && !HasRoomToRead(entry.request);
      if ((is_read && reads_wait) || (ordered && Waits(index))) {
        waits = true;
        if (ordered) ordered_.Add(entry.request.peer);
        continue;
      }
      if (!Begin(qp, outbox, index, now)) continue;
    }
    if (index - send_.head() >= from - send_.head() && !SendRest(qp, outbox, index, now, budget))
      return PumpResult::kMore;
    waits |= !entry.answered;
    if (!entry.answered && !HasNoOrder(qp, entry.request)) ordered_.Add(entry.request.peer);
  }
  for (uint32_t index = send_.head(); index != from; ++index) {
    if (Open(index) && !SendRest(qp, outbox, index, now, budget)) return PumpResult::kMore;
  }
  send_.RetireEach(qp, outbox);
  return waits ? PumpResult::kBlocked : PumpResult::kIdle;
}

bool EndpointInitiator::SendRest(QpContext& qp, Outbox& outbox, uint32_t index, TimePoint now,
                                 PumpBudget& budget) {
  const SendEntry& entry = send_.At(index);
  while (!entry.handed_over && entry.failed == WcStatus::kSuccess &&
         MessageOf(index).again <= now) {
    if (!budget.left()) return false;
    const Sent sent = SendNext(qp, outbox, index, now, budget);
    if (sent == Sent::kPortFull) return false;
    if (sent != Sent::kGateClosed) continue;
    if (!first_.has_value()) first_ = index;
    break;
  }
  return true;
}

EndpointInitiator::Sent EndpointInitiator::SendNext(QpContext& qp, Outbox& outbox, uint32_t index,
                                                    TimePoint now, PumpBudget& budget) {
  SendEntry& entry = send_.At(index);
  flow::Carrier& carrier = *MessageOf(index).carrier;
  const uint32_t offset = entry.sent;
  const uint32_t most = MostPayload(qp, carrier);
  const bool unacknowledged = IsUnacknowledged(entry.request);
  const uint32_t payload = PayloadOf(entry.request);
  const uint32_t bytes = std::min(most, payload - offset);
  if (!channels_.MaySend(qp, carrier, bytes, now)) return Sent::kGateClosed;
  SendPieces from;
  if (bytes != 0 && !send_.Find(qp, index, offset, bytes, from)) {
    End(qp, index, WcStatus::kLocalProtection);
    return Sent::kFailed;
  }
  port::TxPacket* packet = outbox.NewFrame(qp, carrier, bytes);
  if (packet == nullptr) return Sent::kPortFull;
  flow::FrameRef ref = MakeFrameRef(qp, FrameKindOf(entry.request.opcode), index, entry.attempt);
  ref.offset = unacknowledged ? kNoReplyOffset : offset;
  ref.length = static_cast<uint16_t>(bytes);
  const Psn psn = channels_.OnSent(qp, carrier, ref, bytes, now);
  // An unacknowledged request completes before its packet has left.
  Fill(qp, outbox, index, offset, bytes, psn, *packet,
       unacknowledged ? PayloadUse::kCopy : PayloadUse::kMayRefer);
  outbox.SendFrame(qp, carrier, packet);
  entry.sent += bytes;
  entry.handed_over = entry.sent == payload;
  entry.asked |= entry.handed_over;
  qp.worker->counters.request_tx_packets.Add();
  qp.CountBytesSent(bytes);
  budget.Take(bytes);
  if (entry.request.opcode == verbs::SendOpcode::kRead) {
    budget.bytes -= entry.request.length;
    budget.asked += entry.request.length;
  }
  if (unacknowledged) {
    // The request completes when its bytes are read.
    entry.ticket = qp.tickets_issued;
    entry.has_ticket = true;
    End(qp, index, WcStatus::kSuccess);
  }
  return Sent::kYes;
}

bool EndpointInitiator::Fill(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset,
                             uint32_t bytes, Psn psn, port::TxPacket& packet, PayloadUse use) {
  const SendEntry& entry = send_.At(index);
  const Message& message = MessageOf(index);
  const verbs::SendRequest& request = entry.request;
  SendPieces from{.count = 0};
  if (bytes != 0 && !send_.Find(qp, index, offset, bytes, from)) return false;
  ChannelFrame frame{.kind = FrameKindOf(request.opcode),
                     .flags = wire::kFrameEndpoint | wire::kFrameRelaxed,
                     .destination = message.endpoint,
                     .attempt = entry.attempt,
                     .message = index,
                     .offset = offset,
                     .length = request.is_atomic() ? 0 : request.length,
                     .receive = message.key,
                     .address = request.remote_address,
                     .rkey = request.rkey};
  if (offset + bytes == PayloadOf(request)) frame.flags |= wire::kFrameLast;
  if (IsUnacknowledged(request)) frame.flags |= wire::kFrameNoReply;
  if (qp.asks_ack) frame.flags |= wire::kFrameAckNow;
  if (request.is_atomic()) PutOperands(request, frame);
  if (request.has_immediate()) {
    frame.flags |= wire::kFrameImmediate;
    frame.immediate = request.immediate;
  }
  if ((request.flags & ROCEGW_WQE_SOLICITED) != 0 && (request.is_send() || request.has_immediate()))
    frame.flags |= wire::kFrameSolicited;
  uint8_t* body = BuildFrame(qp, message.carrier->address(), frame, psn, bytes, packet);
  send_.Fill(qp, outbox, index, offset, bytes, from, psn, body, packet, use);
  return true;
}

bool EndpointInitiator::Wants(const QpContext& qp, const flow::Carrier& carrier,
                              const flow::FrameRef& frame) const {
  const uint32_t index = frame.message;
  return qp.sends() && send_.Holds(index) && Open(index) && MessageOf(index).carrier == &carrier &&
         send_.At(index).attempt == frame.extra;
}

flow::Resend EndpointInitiator::Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                                      const flow::FrameRef& frame, Psn psn) {
  if (!Wants(qp, carrier, frame)) return flow::Resend::kVoid;
  const uint32_t index = frame.message;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return flow::Resend::kPortFull;
  const bool filled =
      Fill(qp, outbox, index, frame.offset, frame.length, psn, *packet, PayloadUse::kCopy);
  if (!filled) packet->length = 0;
  outbox.Send(qp, packet);
  if (!filled) {
    End(qp, index, WcStatus::kLocalProtection);
    send_.RetireEach(qp, outbox);
    return flow::Resend::kVoid;
  }
  qp.worker->counters.retransmit_packets.Add();
  ++qp.retransmits;
  return flow::Resend::kDone;
}

DropReason EndpointInitiator::OnReply(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                                      const ChannelFrame& frame, TimePoint now) {
  if (!qp.sends()) return DropReason::k_qp_state;
  const uint32_t index = frame.message;
  if (!send_.Holds(index) || !Open(index)) return DropReason::k_stale_response;
  SendEntry& entry = send_.At(index);
  Message& message = MessageOf(index);
  if (message.carrier != &carrier || message.endpoint != frame.source)
    return DropReason::k_stale_response;
  const wire::Aeth aeth{frame.syndrome, 0};
  if (aeth.is_rnr() || frame.not_ready()) {
    // Each frame of a message may be refused; only the first refusal counts.
    if (frame.attempt != static_cast<uint8_t>(entry.attempt + 1))
      return DropReason::k_stale_response;
    qp.worker->counters.rnr_rx_packets.Add();
    entry.attempt = frame.attempt;
    entry.sent = 0;
    entry.handed_over = false;
    message.refused = aeth.is_rnr();
    message.again = now + RnrDelay(aeth.rnr_timer());
    look_at_ = Earlier(look_at_, message.again);
    return DropReason::kNone;
  }
  if (aeth.is_ack()) {
    if (!entry.asked || entry.request.reads_remote()) return DropReason::k_malformed_response;
    qp.worker->counters.ack_rx_packets.Add();
    End(qp, index, WcStatus::kSuccess);
  } else if (aeth.is_nak()) {
    qp.worker->counters.nak_error_rx_packets.Add();
    End(qp, index, StatusOfNak(frame.syndrome).value_or(WcStatus::kRemoteOperation));
  } else {
    return DropReason::k_malformed_response;
  }
  send_.RetireEach(qp, outbox);
  return DropReason::kNone;
}

DropReason EndpointInitiator::OnAnswer(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                                       const ChannelFrame& frame, std::span<const uint8_t> payload,
                                       TimePoint now) {
  if (!qp.sends()) return DropReason::k_qp_state;
  const uint32_t index = frame.message;
  if (!send_.Holds(index) || !Open(index)) return DropReason::k_stale_response;
  SendEntry& entry = send_.At(index);
  Message& message = MessageOf(index);
  if (message.carrier != &carrier || message.endpoint != frame.source || !entry.asked)
    return DropReason::k_stale_response;
  const SendQueue::Taken taken = frame.kind == FrameKind::kReadResponse
                                     ? send_.TakeReadPart(qp, outbox, index, frame, payload)
                                     : send_.TakeAtomicResult(qp, outbox, index, frame.original);
  message.give_up = now + Milliseconds(qp.rare.give_up_ms);
  const bool malformed = taken == SendQueue::Taken::kMalformed;
  if (malformed) {
    End(qp, index, WcStatus::kBadResponse);
  } else if (taken == SendQueue::Taken::kWhole || entry.failed != WcStatus::kSuccess) {
    End(qp, index, entry.failed);
  } else {
    return DropReason::kNone;
  }
  send_.RetireEach(qp, outbox);
  return malformed ? DropReason::k_malformed_response : DropReason::kNone;
}

void EndpointInitiator::OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag) {
  qp.worker->counters.memory_fault_operations.Add();
  if (!send_.Holds(tag.request)) return;
  if (Open(tag.request)) {
    End(qp, tag.request, WcStatus::kLocalProtection);
  } else if (tag.purpose != AccessPurpose::kSendPayload ||
             IsUnacknowledged(send_.At(tag.request).request)) {
    // The response has arrived and waited for its placement; or nothing of the message has left.
    SendEntry& entry = send_.At(tag.request);
    if (entry.failed == WcStatus::kSuccess) OnFailure(qp);
    entry.failed = WcStatus::kLocalProtection;
  }
  if (qp.sends()) send_.RetireEach(qp, outbox);
}

void EndpointInitiator::OnCarrierLost(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier) {
  for (uint32_t index = send_.head(); index != send_.tail(); ++index)
    if (Open(index) && MessageOf(index).carrier == &carrier)
      End(qp, index, WcStatus::kRetryExceeded);
  if (qp.sends()) send_.RetireEach(qp, outbox);
}

void EndpointInitiator::GiveUp(QpContext& qp, Outbox& outbox) {
  for (uint32_t index = send_.head(); index != send_.tail(); ++index)
    if (!send_.At(index).answered) End(qp, index, WcStatus::kRetryExceeded);
  send_.RetireEach(qp, outbox);
}

void EndpointInitiator::OnDeadline(QpContext& qp, Outbox& outbox, TimePoint now) {
  look_at_ = kNever;
  for (uint32_t index = send_.head(); index != send_.tail(); ++index) {
    if (!Open(index)) continue;
    const Message& message = MessageOf(index);
    if (message.give_up <= now) {
      qp.worker->counters.timeout_events.Add();
      End(qp, index, message.refused ? WcStatus::kRnrRetryExceeded : WcStatus::kRetryExceeded);
      continue;
    }
    look_at_ = Earlier(look_at_, message.again > now ? message.again : message.give_up);
  }
  if (qp.sends()) send_.RetireEach(qp, outbox);
}

}  // namespace rocegw::transport
