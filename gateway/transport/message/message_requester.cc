// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message/message_requester.h"

#include <algorithm>

#include "gateway/flow/flow.h"
#include "gateway/transport/message/frame_packet.h"
#include "gateway/transport/native/rnr_delay.h"
#include "gateway/transport/queues/completion.h"

namespace rocegw::transport {

using metrics::DropReason;
using verbs::WcStatus;
using wire::ChannelFrame;

namespace {

// Messages that a receiver must accept at once before the RNR backoff ends.
constexpr uint8_t kCareful = 4;
// Longest pause between two offers, whatever the receiver's RNR timer says.
constexpr Duration kLongestPause = Milliseconds(10);
// Shortest wait for a refusal after the first frame of an offer, when no round trip is known.
constexpr Duration kLeastPatience = Microseconds(16);

bool TakesReceive(const verbs::SendRequest& request) {
  return request.is_send() || request.opcode == verbs::SendOpcode::kWriteImm;
}

// Returns the order that a message's frames ask for. In mode kByInitiator the initiator keeps
// strong order itself: it sends a message only when the message may take effect at once.
wire::MessageOrder OrderFor(const QpContext& qp, const verbs::SendRequest& request) {
  using enum wire::MessageOrder;
  if (!qp.peer_relaxes) return kStrong;
  // A FLUSH waits in every mode for the writes that it confirms.
  if (request.opcode == verbs::SendOpcode::kFlush) return kAfterAll;
  if (qp.config.service_mode == verbs::ServiceMode::kUnordered) return kNone;
  if (qp.config.service_mode == verbs::ServiceMode::kByInitiator)
    return request.order() == kNone ? kNone : kRelaxed;
  return request.order();
}

}  // namespace

void MessageRequester::Start(QpContext& qp, const SendQueue& send, TimePoint now) {
  qp.request_path = RequestPath::kChannel;
  base_ = cursor_ = send.head();
  ordered_ = 0;
  receives_ = 0;
  attempt_ = 0;
  rnr_waiting_ = not_ready_ = refused_ = heard_ = offering_ = resent_ = paths_open_ = false;
  backoff_.reset();
  progress_ = now;
}

// Returns the request that is being sent or begins next; nullptr: none.
SendEntry* MessageRequester::Current(QpContext& qp, SendQueue& send, Outbox& outbox) {
  if (static_cast<int32_t>(cursor_ - send.head()) < 0) cursor_ = send.head();
  for (;;) {
    // A queue that drains (SQD) finishes begun requests and begins no new ones.
    if (cursor_ == send.tail() &&
        (qp.state() == verbs::QpState::kSqd || !send.FetchOne(qp, outbox))) {
      return nullptr;
    }
    SendEntry& entry = send.At(cursor_);
    if (entry.failed != WcStatus::kSuccess) return nullptr;
    if (!entry.started || !entry.handed_over) return &entry;
    ++cursor_;
  }
}

// Returns true if a fence or the order of the service mode holds the request back. ROCEGW_WQE_FENCE
// waits for earlier READs and atomics (IBTA 10.8.3.3), ROCEGW_WQE_FENCE_ALL for all earlier
// requests.
bool MessageRequester::MustWait(const QpContext& qp, const SendQueue& send,
                                const SendEntry& entry) const {
  const uint16_t flags = entry.request.flags;
  if ((flags & ROCEGW_WQE_FENCE) != 0 && send.reading() != 0) return true;
  const bool here = qp.config.service_mode == verbs::ServiceMode::kByInitiator;
  const bool all = (flags & ROCEGW_WQE_FENCE_ALL) != 0 ||
                   (here && entry.request.order() == wire::MessageOrder::kAfterAll);
  if (all && cursor_ != send.head()) return true;
  return here && ordered_ != 0 && entry.request.order() == wire::MessageOrder::kStrong;
}

PumpResult MessageRequester::Pump(QpContext& qp, SendQueue& send, Outbox& outbox, TimePoint now,
                                  PumpBudget& budget) {
  if (!qp.sends() || !qp.requests_on_channel() || refused_) return PumpResult::kIdle;
  if (rnr_waiting_) {
    if (now < backoff_->until) return PumpResult::kBlocked;
    rnr_waiting_ = false;
    EndBackoff();
    if (!not_ready_) progress_ = now;
  }
  if (offering_) {
    if (now < backoff_->until) return PumpResult::kBlocked;
    offering_ = false;
    EndBackoff();
  }
  while (budget.left()) {
    SendEntry* entry = Current(qp, send, outbox);
    if (entry == nullptr) {
      send.Retire(qp, outbox);
      return PumpResult::kIdle;
    }
    const bool offer = careful() && entry->sent == 0;
    if (offer && cursor_ != send.head()) return PumpResult::kBlocked;
    if (!entry->started) {
      if (qp.state() == verbs::QpState::kSqd) return PumpResult::kIdle;
      if (entry->request.is_local()) {
        if (cursor_ != send.head()) return PumpResult::kBlocked;
        // A local request is no message. Answers to older messages find nothing that waits for
        // them.
        send.ActLocally(qp, cursor_);
        ++base_;
        send.Retire(qp, outbox);
        budget.Take(0);
        continue;
      }
      if ((entry->request.invalidates() && !qp.peer_invalidates) ||
          (entry->request.is_placement() && !qp.peer_places) ||
          (entry->request.is_fetch_operate() && !qp.peer_operates)) {
        entry->failed = WcStatus::kLocalQpOperation;
        continue;
      }
      if (MustWait(qp, send, *entry) || cursor_ - send.head() >= kMaxAhead)
        return PumpResult::kBlocked;
      if (entry->request.reads_remote() && send.reading() >= qp.attributes.max_rd_atomic &&
          qp.attributes.max_rd_atomic != 0) {
        return PumpResult::kBlocked;
      }
      if (!send.Check(qp, cursor_)) continue;
      if (cursor_ == send.head()) progress_ = now;
      send.Start(cursor_);
      if (entry->request.order() != wire::MessageOrder::kNone) ++ordered_;
      entry->receive = receives_;
      receives_ += TakesReceive(entry->request) ? 1 : 0;
    }
    switch (SendNext(qp, send, outbox, now, budget)) {
      case Sent::kYes:
        if (offer) {
          offering_ = true;
          backoff_->until = now + std::max(qp.carrier->round_trip() * 2, kLeastPatience);
          return PumpResult::kBlocked;
        }
        break;
      case Sent::kFailed:
        break;
      case Sent::kPortFull:
        return PumpResult::kMore;
      case Sent::kGateClosed:
        return PumpResult::kBlocked;
    }
  }
  return PumpResult::kMore;
}

// Opens further paths for requests without order, once the first channel works.
void MessageRequester::OpenPaths(QpContext& qp, Outbox& outbox) {
  if (!heard_) return;
  paths_open_ = true;
  for (uint32_t paths = 1;; ++paths) {
    flow::Carrier* const beside = outbox.Beside(qp, *qp.carrier, paths);
    if (beside == nullptr) return;
    if (qp.multipath == nullptr) qp.multipath = std::make_unique<Multipath>();
    qp.multipath->AddForRequests(*beside);
  }
}

flow::Carrier* MessageRequester::CarrierFor(QpContext& qp, Outbox& outbox,
                                            const verbs::SendRequest& request, uint32_t bytes,
                                            TimePoint now) {
  if (!qp.HasRoom(bytes)) return nullptr;
  const bool any = OrderFor(qp, request) == wire::MessageOrder::kNone;
  if (any && !paths_open_) OpenPaths(qp, outbox);
  if (any && qp.multipath != nullptr) {
    const uint32_t asked = request.opcode == verbs::SendOpcode::kRead ? request.length : 0;
    return qp.multipath->Choose(qp.window_waiter(), *qp.carrier, qp.wait_entry, bytes, asked, now);
  }
  return qp.carrier->MaySend(qp.window_waiter(), qp.wait_entry, bytes, now) ? qp.carrier : nullptr;
}

MessageRequester::Sent MessageRequester::SendNext(QpContext& qp, SendQueue& send, Outbox& outbox,
                                                  TimePoint now, PumpBudget& budget) {
  SendEntry& entry = send.At(cursor_);
  const uint32_t offset = entry.sent;
  const uint32_t most = std::min(qp.mtu(), qp.carrier->max_payload());
  const uint32_t bytes = std::min(most, PayloadOf(entry.request) - offset);
  flow::Carrier* const carrier = CarrierFor(qp, outbox, entry.request, bytes, now);
  if (carrier == nullptr) return Sent::kGateClosed;
  SendPieces from;
  if (bytes != 0 && !send.Find(qp, cursor_, offset, bytes, from)) return Sent::kFailed;
  port::TxPacket* packet = outbox.NewFrame(qp, *carrier, bytes);
  if (packet == nullptr) return Sent::kPortFull;
  flow::FrameRef ref =
      MakeFrameRef(qp, FrameKindOf(entry.request.opcode), NumberOf(cursor_), attempt_);
  ref.offset = offset;
  ref.length = static_cast<uint16_t>(bytes);
  const Psn psn = carrier->OnSent(qp.window_waiter(), qp.WaitEntryAt(*carrier), ref, bytes, now);
  qp.OnFrameLeaves(*carrier, bytes);
  entry.attempt = attempt_;
  Fill(qp, send, outbox, carrier->address(), cursor_, offset, bytes, psn, *packet,
       PayloadUse::kMayRefer);
  outbox.SendFrame(qp, *carrier, packet);
  if (!not_ready_) progress_ = now;
  entry.sent += bytes;
  entry.handed_over = entry.sent == PayloadOf(entry.request);
  entry.asked |= entry.handed_over;
  qp.worker->counters.request_tx_packets.Add();
  qp.CountBytesSent(bytes);
  budget.Take(bytes);
  if (entry.request.opcode == verbs::SendOpcode::kRead) {
    budget.bytes -= entry.request.length;
    budget.asked += entry.request.length;
  }
  return Sent::kYes;
}

bool MessageRequester::Fill(QpContext& qp, SendQueue& send, Outbox& outbox,
                            const flow::CarrierAddress& to, uint32_t index, uint32_t offset,
                            uint32_t bytes, Psn psn, port::TxPacket& packet, PayloadUse use) {
  const SendEntry& entry = send.At(index);
  const verbs::SendRequest& request = entry.request;
  SendPieces from{.count = 0};
  if (bytes != 0 && !send.Find(qp, index, offset, bytes, from)) return false;
  ChannelFrame frame{.kind = FrameKindOf(request.opcode),
                     .attempt = entry.attempt,
                     .message = NumberOf(index),
                     .offset = offset,
                     .length = request.is_atomic() ? 0 : request.remote_length(),
                     .receive = TakesReceive(request) ? entry.receive : 0,
                     .address = request.remote_address,
                     .rkey = request.rkey};
  if (request.opcode == verbs::SendOpcode::kFlush) frame.feth = request.feth();
  frame.flags = static_cast<uint8_t>(OrderFor(qp, request));
  const bool last = offset + bytes == PayloadOf(request);
  if (last) frame.flags |= wire::kFrameLast;
  if (qp.asks_ack) frame.flags |= wire::kFrameAckNow;
  if (request.has_immediate()) {
    frame.flags |= wire::kFrameImmediate;
    frame.immediate = request.immediate;
  }
  if (request.invalidates()) {
    frame.flags |= wire::kFrameInvalidate;
    frame.invalidate_rkey = request.immediate;
  }
  if ((request.flags & ROCEGW_WQE_SOLICITED) != 0 && TakesReceive(request))
    frame.flags |= wire::kFrameSolicited;
  if (request.is_atomic()) PutOperands(request, frame);
  uint8_t* body = BuildFrame(qp, to, frame, psn, bytes, packet);
  send.Fill(qp, outbox, index, offset, bytes, from, psn, body, packet, use);
  return true;
}

bool MessageRequester::Wants(const QpContext& qp, const SendQueue& send,
                             const flow::Carrier& carrier, const flow::FrameRef& frame) const {
  const uint32_t index = base_ + frame.message;
  const bool mine = qp.requests_on_channel() && (qp.carrier == &carrier || qp.IsBeside(carrier));
  if (!mine || !qp.sends() || !send.Holds(index)) return false;
  const SendEntry& entry = send.At(index);
  return entry.started && entry.attempt == frame.extra && entry.failed == WcStatus::kSuccess &&
         (!entry.answered || entry.request.reads_remote());
}

flow::Resend MessageRequester::Again(QpContext& qp, SendQueue& send, Outbox& outbox,
                                     const flow::Carrier& carrier, const flow::FrameRef& frame,
                                     Psn psn) {
  if (!Wants(qp, send, carrier, frame)) return flow::Resend::kVoid;
  const uint32_t index = base_ + frame.message;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return flow::Resend::kPortFull;
  if (!Fill(qp, send, outbox, carrier.address(), index, frame.offset, frame.length, psn, *packet,
            PayloadUse::kCopy)) {
    packet->length = 0;
    outbox.Send(qp, packet);
    return flow::Resend::kVoid;
  }
  outbox.Send(qp, packet);
  CountResent(qp);
  return flow::Resend::kDone;
}

SendEntry* MessageRequester::Asked(SendQueue& send, const ChannelFrame& frame,
                                   uint32_t& index) const {
  index = base_ + frame.message;
  if (!send.Holds(index)) return nullptr;
  SendEntry& entry = send.At(index);
  // An answer to a request that was never sent completely is invalid.
  return entry.started && entry.asked ? &entry : nullptr;
}

void MessageRequester::Answer(const QpContext& qp, SendQueue& send, uint32_t index) {
  SendEntry& entry = send.At(index);
  if (entry.answered) return;
  if (entry.request.order() != wire::MessageOrder::kNone) --ordered_;
  send.Answer(qp, index);
  // A retransmission may be in progress: it ends here.
  entry.sent = PayloadOf(entry.request);
  entry.handed_over = true;
  offering_ = false;
  if (careful()) --backoff_->careful;
  EndBackoff();
}

// Marks all messages before `end` as answered; READs and atomics have responses of their own.
void MessageRequester::MarkAnswered(const QpContext& qp, SendQueue& send, uint32_t end) {
  for (uint32_t i = send.head(); i != end && send.Holds(i); ++i)
    if (!send.At(i).request.reads_remote()) Answer(qp, send, i);
}

void MessageRequester::GoBackTo(SendQueue& send, uint32_t index, uint8_t attempt) {
  for (uint32_t i = index; i != send.tail() && send.At(i).started; ++i) {
    if (send.At(i).answered) continue;
    send.At(i).sent = 0;
    send.At(i).handed_over = false;
  }
  cursor_ = index;
  attempt_ = attempt;
}

MessageRequester::RnrBackoff& MessageRequester::BackoffOf(const QpContext& qp) {
  if (backoff_ == nullptr) {
    backoff_ = std::make_unique<RnrBackoff>();
    backoff_->rnr_left = qp.attributes.rnr_retry;
  }
  return *backoff_;
}

// Starts or extends the RNR backoff. Refused frames waste the channel's window, which others share.
// Therefore one message at a time is offered, and of it one frame until a refusal would have
// arrived, at growing intervals.
void MessageRequester::WaitToOffer(const QpContext& qp, uint32_t index, Duration least,
                                   TimePoint now) {
  if (!careful() || backoff_->number != NumberOf(index)) BackoffOf(qp).refused_since = now;
  backoff_->number = NumberOf(index);
  backoff_->careful = kCareful;
  offering_ = false;
  rnr_waiting_ = true;
  const Duration pause = std::min((now - backoff_->refused_since) / 8, kLongestPause);
  backoff_->until = now + std::max(least, pause);
}

DropReason MessageRequester::OnReply(QpContext& qp, SendQueue& send, Outbox& outbox,
                                     const ChannelFrame& frame, TimePoint now) {
  if (!qp.sends() || !qp.requests_on_channel()) return DropReason::k_qp_state;
  // After a refusal, "not ready" answers to later messages mean nothing.
  if (refused_ && frame.not_ready()) return DropReason::k_stale_response;
  if (frame.has(wire::kFrameRelaxed)) return OnReplyAlone(qp, send, outbox, frame, now);
  const wire::Aeth aeth{frame.syndrome, 0};
  uint32_t index = base_ + frame.message;
  // A peer without the queue pair cannot name a message: continue at the first unanswered one.
  const bool not_ready = frame.not_ready();
  if (aeth.is_rnr() || not_ready) {
    // Attempts are refused in sequence: any other number is late.
    if (frame.attempt != static_cast<uint8_t>(attempt_ + 1)) return DropReason::k_stale_response;
    if (not_ready) {
      for (index = send.head(); send.Holds(index) && send.At(index).answered;) ++index;
    }
    if (!send.Holds(index) || !send.At(index).started) return DropReason::k_stale_response;
    // Such replies may arrive so fast that the timer never runs in between.
    if (not_ready && TimeoutOf(qp, send) <= now) {
      OnDeadline(qp, send, now);
      return DropReason::kNone;
    }
    qp.worker->counters.rnr_rx_packets.Add();
    // "Not ready" is no sign of life: a queue pair that stays away ends in a timeout.
    if (!not_ready) {
      heard_ = true;
      MarkAnswered(qp, send, index);
      if (qp.attributes.rnr_retry != 7) {
        if (BackoffOf(qp).rnr_left == 0) {
          send.Fail(qp, WcStatus::kRnrRetryExceeded);
          return DropReason::kNone;
        }
        --backoff_->rnr_left;
      }
      progress_ = now;
    }
    not_ready_ = not_ready;
    GoBackTo(send, index, frame.attempt);
    WaitToOffer(qp, index, RnrDelay(aeth.rnr_timer()), now);
    send.Retire(qp, outbox);
    return DropReason::kNone;
  }
  SendEntry* entry = Asked(send, frame, index);
  if (aeth.is_ack()) {
    if (entry == nullptr) return DropReason::k_stale_response;
    qp.worker->counters.ack_rx_packets.Add();
    heard_ = true;
    progress_ = now;
    not_ready_ = false;
    Configure(qp);
    MarkAnswered(qp, send, index + 1);
    send.Retire(qp, outbox);
    return DropReason::kNone;
  }
  // A message may be refused before all its frames have left.
  const std::optional<WcStatus> refused = StatusOfNak(frame.syndrome);
  if (!refused.has_value() || !send.Holds(index) || !send.At(index).started)
    return DropReason::k_malformed_response;
  // Responses of earlier READs and atomics may arrive after the refusal: the message fails in its
  // turn.
  progress_ = now;
  refused_ = heard_ = true;
  rnr_waiting_ = false;
  MarkAnswered(qp, send, index);
  send.At(index).failed = *refused;
  send.Retire(qp, outbox);
  qp.worker->counters.nak_error_rx_packets.Add();
  return DropReason::kNone;
}

// Handles the reply to a single message that took effect or failed before older ones.
DropReason MessageRequester::OnReplyAlone(QpContext& qp, SendQueue& send, Outbox& outbox,
                                          const ChannelFrame& frame, TimePoint now) {
  const wire::Aeth aeth{frame.syndrome, 0};
  uint32_t index = 0;
  SendEntry* entry = Asked(send, frame, index);
  if (entry == nullptr) return DropReason::k_stale_response;
  if (const std::optional<WcStatus> refused = StatusOfNak(frame.syndrome)) {
    send.Fail(qp, *refused);
    qp.worker->counters.nak_error_rx_packets.Add();
    return DropReason::kNone;
  }
  if (!aeth.is_ack() || entry->request.reads_remote()) return DropReason::k_malformed_response;
  qp.worker->counters.ack_rx_packets.Add();
  heard_ = true;
  progress_ = now;
  not_ready_ = false;
  Answer(qp, send, index);
  send.Retire(qp, outbox);
  return DropReason::kNone;
}

DropReason MessageRequester::OnReadResponse(QpContext& qp, SendQueue& send, Outbox& outbox,
                                            const ChannelFrame& frame,
                                            std::span<const uint8_t> payload, TimePoint now) {
  if (!qp.sends()) return DropReason::k_qp_state;
  uint32_t index;
  SendEntry* entry = Asked(send, frame, index);
  if (entry == nullptr || entry->answered) return DropReason::k_stale_response;
  heard_ = true;
  progress_ = now;
  switch (send.TakeReadPart(qp, outbox, index, frame, payload)) {
    case SendQueue::Taken::kMalformed:
      send.Fail(qp, WcStatus::kBadResponse);
      return DropReason::k_malformed_response;
    case SendQueue::Taken::kWhole:
      Answer(qp, send, index);
      send.Retire(qp, outbox);
      break;
    case SendQueue::Taken::kPart:
      break;
  }
  return DropReason::kNone;
}

DropReason MessageRequester::OnAtomicResult(QpContext& qp, SendQueue& send, Outbox& outbox,
                                            const ChannelFrame& frame, TimePoint now) {
  if (!qp.sends()) return DropReason::k_qp_state;
  uint32_t index;
  SendEntry* entry = Asked(send, frame, index);
  if (entry == nullptr || entry->answered) return DropReason::k_stale_response;
  heard_ = true;
  progress_ = now;
  if (send.TakeAtomicResult(qp, outbox, index, frame.original) == SendQueue::Taken::kMalformed) {
    send.Fail(qp, WcStatus::kBadResponse);
    return DropReason::k_malformed_response;
  }
  Answer(qp, send, index);
  send.Retire(qp, outbox);
  return DropReason::kNone;
}

void MessageRequester::OnMemoryFault(QpContext& qp, SendQueue& send, Outbox& outbox,
                                     const AccessTag& tag) {
  qp.worker->counters.memory_fault_operations.Add();
  if (!send.Holds(tag.request)) return;
  SendEntry& entry = send.At(tag.request);
  // A rebuilt frame is not needed once its message is answered.
  if (tag.purpose == AccessPurpose::kSendPayload && entry.answered) return;
  entry.failed = WcStatus::kLocalProtection;
  if (qp.state() != verbs::QpState::kError) send.Retire(qp, outbox);
}

void MessageRequester::OnCarrierLost(QpContext& qp, SendQueue& send) {
  if (!qp.requests_on_channel()) return;
  qp.request_path = RequestPath::kUndecided;
  if (qp.sends()) send.Fail(qp, WcStatus::kRetryExceeded);
}

// Returns when the requester gives up: after as many timeouts as a native requester would retry
// (IBTA 9.7.6.1.3).
TimePoint MessageRequester::TimeoutOf(const QpContext& qp, const SendQueue& send) const {
  const Duration timeout = flow::TransportTimeout(qp.attributes.timeout);
  if (timeout.ns == 0 || send.drained()) return kNever;
  return progress_ + timeout * (int64_t{qp.attributes.retry_count} + 1);
}

TimePoint MessageRequester::deadline(const QpContext& qp, const SendQueue& send) const {
  if (!qp.requests_on_channel() || !qp.sends()) return kNever;
  // A peer that keeps answering "not ready" does not extend the timeout.
  if (rnr_waiting_)
    return not_ready_ ? Earlier(backoff_->until, TimeoutOf(qp, send)) : backoff_->until;
  return offering_ ? Earlier(backoff_->until, TimeoutOf(qp, send)) : TimeoutOf(qp, send);
}

void MessageRequester::OnDeadline(QpContext& qp, SendQueue& send, TimePoint now) {
  if (!qp.requests_on_channel() || !qp.sends() || (rnr_waiting_ && !not_ready_)) return;
  if (TimeoutOf(qp, send) > now) return;
  // Losses were found by the peer's acknowledgements, so the peer is alive: restart the timeout.
  if (resent_ && !not_ready_) {
    resent_ = false;
    progress_ = now;
    return;
  }
  qp.worker->counters.timeout_events.Add();
  send.Fail(qp, WcStatus::kRetryExceeded);
}

}  // namespace rocegw::transport
