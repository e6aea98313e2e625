// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/endpoint_initiator.h"

#include <algorithm>

#include "gateway/transport/completion.h"
#include "gateway/transport/frame_packet.h"
#include "gateway/transport/rnr_delay.h"

namespace rocegw::transport {

using metrics::DropReason;
using verbs::WcStatus;
using wire::ChannelFrame;

namespace {

bool HasNoOrder(const QpContext& qp, const verbs::SendRequest& request) {
  return qp.config.service_mode == verbs::ServiceMode::kUnordered ||
         request.order() == wire::MessageOrder::kNone;
}

}  // namespace

void EndpointInitiator::Reset() {
  std::fill(messages_.begin(), messages_.end(), Message{});
  look_at_ = kNever;
}

bool EndpointInitiator::Open(uint32_t index) const {
  const SendEntry& entry = send_.At(index);
  return entry.started && !entry.answered && entry.failed == WcStatus::kSuccess;
}

void EndpointInitiator::End(QpContext& qp, uint32_t index, WcStatus status) {
  if (send_.At(index).started) lanes_.Leave(*MessageOf(index).carrier);
  MessageOf(index).carrier = nullptr;
  send_.Conclude(qp, index, status);
}

// Must it stay behind earlier ones? `peers`: those with an earlier message that is not answered.
bool EndpointInitiator::Waits(uint32_t index, const std::vector<uint32_t>& peers) const {
  const verbs::SendRequest& request = send_.At(index).request;
  return request.order() == wire::MessageOrder::kStrong &&
         std::find(peers.begin(), peers.end(), request.peer) != peers.end();
}

// A message without order takes the path on which least is under way: a target puts it together on
// one.
flow::Carrier* EndpointInitiator::Choose(Outbox& outbox, const Peer& peer) const {
  flow::Carrier* best = outbox.Reach(peer, 0);
  for (uint32_t beside = 1; best != nullptr && lanes_.UsesOf(*best) != 0; ++beside) {
    flow::Carrier* const other = outbox.Reach(peer, beside);
    if (other == nullptr) break;
    if (lanes_.UsesOf(*other) < lanes_.UsesOf(*best)) best = other;
  }
  return best;
}

// False: it has failed.
bool EndpointInitiator::Begin(QpContext& qp, Outbox& outbox, uint32_t index, TimePoint now) {
  SendEntry& entry = send_.At(index);
  const auto peer =
      qp.peers == nullptr ? PeerTable::const_iterator{} : qp.peers->find(entry.request.peer);
  const bool known = qp.peers != nullptr && peer != qp.peers->end();
  if (!known || !send_.Check(qp, index)) {
    End(qp, index, known ? entry.failed : WcStatus::kLocalQpOperation);
    return false;
  }
  flow::Carrier* carrier =
      HasNoOrder(qp, entry.request) ? Choose(outbox, peer->second) : outbox.Reach(peer->second, 0);
  if (carrier == nullptr) {
    End(qp, index, WcStatus::kRetryExceeded);
    return false;
  }
  MessageOf(index) = {.carrier = carrier,
                      .endpoint = peer->second.endpoint,
                      .key = peer->second.key,
                      .again = now,
                      .give_up = now + Milliseconds(qp.rare.give_up_ms)};
  lanes_.Use(*carrier);
  look_at_ = Earlier(look_at_, MessageOf(index).give_up);
  send_.Start(index);
  return true;
}

PumpResult EndpointInitiator::Pump(QpContext& qp, Outbox& outbox, TimePoint now,
                                   PumpBudget& budget) {
  if (!qp.sends()) return PumpResult::kIdle;
  while (qp.state() != verbs::QpState::kSqd && send_.FetchOne(qp, outbox)) {
  }
  bool waits = false;
  ordered_.clear();
  for (uint32_t index = send_.head(); index != send_.tail(); ++index) {
    SendEntry& entry = send_.At(index);
    if (entry.answered) continue;
    if (!entry.started) {
      if (entry.failed != WcStatus::kSuccess) {
        End(qp, index, entry.failed);
        continue;
      }
      const uint16_t flags = entry.request.flags;
      const bool all = (flags & (ROCEGW_WQE_FENCE_ALL | ROCEGW_WQE_FENCE_TARGET)) != 0;
      if (qp.state() == verbs::QpState::kSqd) break;
      if (all && index != send_.head()) {
        waits = true;
        break;
      }
      if (!HasNoOrder(qp, entry.request) && Waits(index, ordered_)) {
        waits = true;
        ordered_.push_back(entry.request.peer);
        continue;
      }
      if (!Begin(qp, outbox, index, now)) continue;
    }
    while (!entry.handed_over && entry.failed == WcStatus::kSuccess &&
           MessageOf(index).again <= now) {
      if (!budget.left()) return PumpResult::kMore;
      const Sent sent = SendNext(qp, outbox, index, now, budget);
      if (sent == Sent::kPortFull) return PumpResult::kMore;
      if (sent == Sent::kGateClosed) break;
    }
    waits |= !entry.answered;
    if (!entry.answered && !HasNoOrder(qp, entry.request)) ordered_.push_back(entry.request.peer);
  }
  send_.RetireEach(qp, outbox);
  return waits ? PumpResult::kBlocked : PumpResult::kIdle;
}

EndpointInitiator::Sent EndpointInitiator::SendNext(QpContext& qp, Outbox& outbox, uint32_t index,
                                                    TimePoint now, PumpBudget& budget) {
  SendEntry& entry = send_.At(index);
  flow::Carrier& carrier = *MessageOf(index).carrier;
  const uint32_t offset = entry.sent;
  const uint32_t most = std::min(verbs::MtuBytes(qp.rare.port_mtu), carrier.max_payload());
  const uint32_t bytes = std::min(most, entry.request.length - offset);
  if (!lanes_.MaySend(qp.line_member(), carrier, bytes, now)) return Sent::kGateClosed;
  SendPieces from;
  if (bytes != 0 && !send_.Find(qp, index, offset, bytes, from)) {
    End(qp, index, WcStatus::kLocalProtection);
    return Sent::kFailed;
  }
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return Sent::kPortFull;
  flow::FrameRef ref = MakeFrameRef(qp, FrameKindOf(entry.request.opcode), index, entry.attempt);
  ref.offset = offset;
  ref.length = static_cast<uint16_t>(bytes);
  const Psn psn = lanes_.OnSent(qp.line_member(), carrier, ref, bytes, now);
  Fill(qp, outbox, index, offset, bytes, psn, *packet);
  outbox.Send(qp, packet);
  entry.sent += bytes;
  entry.handed_over = entry.sent == entry.request.length;
  entry.asked |= entry.handed_over;
  qp.counters->request_tx_packets.Add();
  qp.bytes_sent += bytes;
  budget.Take(bytes);
  return Sent::kYes;
}

bool EndpointInitiator::Fill(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset,
                             uint32_t bytes, Psn psn, port::TxPacket& packet) {
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
                     .length = request.length,
                     .receive = message.key,
                     .address = request.remote_address,
                     .rkey = request.rkey};
  if (offset + bytes == request.length) frame.flags |= wire::kFrameLast;
  if (request.has_immediate()) {
    frame.flags |= wire::kFrameImmediate;
    frame.immediate = request.immediate;
  }
  if ((request.flags & ROCEGW_WQE_SOLICITED) != 0 && (request.is_send() || request.has_immediate()))
    frame.flags |= wire::kFrameSolicited;
  uint8_t* body = BuildFrame(qp, message.carrier->address(), frame, psn, bytes, packet);
  send_.Fill(qp, outbox, index, offset, bytes, from, psn, body, packet);
  return true;
}

flow::Resend EndpointInitiator::Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                                      const flow::FrameRef& frame, Psn psn) {
  const uint32_t index = frame.message;
  if (!qp.sends() || !send_.Holds(index) || !Open(index) || MessageOf(index).carrier != &carrier ||
      send_.At(index).attempt != frame.extra) {
    return flow::Resend::kVoid;
  }
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return flow::Resend::kPortFull;
  const bool filled = Fill(qp, outbox, index, frame.offset, frame.length, psn, *packet);
  if (!filled) packet->length = 0;
  outbox.Send(qp, packet);
  if (!filled) {
    End(qp, index, WcStatus::kLocalProtection);
    send_.RetireEach(qp, outbox);
    return flow::Resend::kVoid;
  }
  qp.counters->retransmit_packets.Add();
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
    // Each frame of a message may be refused: the first refusal counts.
    if (frame.attempt != static_cast<uint8_t>(entry.attempt + 1))
      return DropReason::k_stale_response;
    qp.counters->rnr_rx_packets.Add();
    entry.attempt = frame.attempt;
    entry.sent = 0;
    entry.handed_over = false;
    message.refused = aeth.is_rnr();
    message.again = now + RnrDelay(aeth.rnr_timer());
    look_at_ = Earlier(look_at_, message.again);
    return DropReason::kNone;
  }
  if (aeth.is_ack()) {
    if (!entry.asked) return DropReason::k_malformed_response;
    qp.counters->ack_rx_packets.Add();
    End(qp, index, WcStatus::kSuccess);
  } else if (aeth.is_nak()) {
    qp.counters->nak_error_rx_packets.Add();
    End(qp, index, StatusOfNak(frame.syndrome).value_or(WcStatus::kRemoteOperation));
  } else {
    return DropReason::k_malformed_response;
  }
  send_.RetireEach(qp, outbox);
  return DropReason::kNone;
}

void EndpointInitiator::OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag) {
  qp.counters->memory_fault_operations.Add();
  if (!send_.Holds(tag.request) || !Open(tag.request)) return;
  End(qp, tag.request, WcStatus::kLocalProtection);
  send_.RetireEach(qp, outbox);
}

void EndpointInitiator::OnCarrierLost(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier) {
  for (uint32_t index = send_.head(); index != send_.tail(); ++index)
    if (Open(index) && MessageOf(index).carrier == &carrier)
      End(qp, index, WcStatus::kRetryExceeded);
  if (qp.sends()) send_.RetireEach(qp, outbox);
}

void EndpointInitiator::OnDeadline(QpContext& qp, Outbox& outbox, TimePoint now) {
  look_at_ = kNever;
  for (uint32_t index = send_.head(); index != send_.tail(); ++index) {
    if (!Open(index)) continue;
    const Message& message = MessageOf(index);
    if (message.give_up <= now) {
      qp.counters->timeout_events.Add();
      End(qp, index, message.refused ? WcStatus::kRnrRetryExceeded : WcStatus::kRetryExceeded);
      continue;
    }
    look_at_ = Earlier(look_at_, message.again > now ? message.again : message.give_up);
  }
  if (qp.sends()) send_.RetireEach(qp, outbox);
}

}  // namespace rocegw::transport
