// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message/message_responder.h"

#include <algorithm>
#include <cstring>

#include "gateway/transport/message/frame_packet.h"
#include "gateway/transport/queues/completion.h"

namespace rocegw::transport {

using metrics::DropReason;
using verbs::WcStatus;
using wire::ChannelFrame;
using wire::FrameKind;
using wire::NakCode;
using wire::SyndromeOf;

static_assert(MessageResponder::kMostReplies > kMaxAhead && PlacedRanges::kMost > kMaxAhead);

void MessageResponder::Reset() {
  if (carrier_ != nullptr) carrier_->Release();
  carrier_ = nullptr;
  expected_ = 0;
  attempt_ = 0;
  established_ = refused_ = false;
  work_.reset();
}

MessageResponder::Work& MessageResponder::Working(Outbox& outbox) {
  if (work_ == nullptr) {
    work_ = outbox.in_flight.messages.Take();
    work_->ordered = expected_;
  }
  return *work_;
}

void MessageResponder::RestIfDone(Outbox& outbox) {
  if (!work_->replies.empty() || !work_->messages.empty()) return;
  if (work_->executed.empty() && work_->spare_receives.empty()) {
    outbox.in_flight.messages.GiveBack(std::move(work_));
  } else {
    work_->replies = {};
  }
}

void MessageResponder::Stop() {
  if (work_ == nullptr) return;
  work_->messages.clear();
  work_->spare_receives.clear();
  work_->ordered = expected_;
}

// Returns true if a frame of an older attempt is accepted all the same: it is a whole message,
// relaxes order, takes no receive and is still to come. A refusal then delays only messages that
// depend on it.
bool MessageResponder::TakenAnyway(const ChannelFrame& frame) const {
  const bool receives = frame.kind == FrameKind::kSend || frame.has(wire::kFrameImmediate);
  return frame.has(wire::kFrameRelaxed) && frame.offset == 0 && frame.has(wire::kFrameLast) &&
         !receives && static_cast<int32_t>(frame.message - expected_) > 0;
}

DropReason MessageResponder::OnFrame(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                                     const ChannelFrame& frame, std::span<const uint8_t> payload,
                                     bool refuse) {
  if (carrier_ != &carrier) LeaveBy(qp, carrier);
  if (!established_) {
    established_ = true;
    placement_ticket_ = qp.tickets_issued;
    if (qp.state() == verbs::QpState::kRtr) outbox.Event(qp, verbs::AsyncEvent::kCommEstablished);
  }
  if (work_ != nullptr && work_->replies.size() >= kMostReplies) return DropReason::k_replies_full;
  const auto newer = static_cast<int8_t>(frame.attempt - attempt_);
  if (newer < 0 && !TakenAnyway(frame)) return DropReason::k_rnr_wait;
  if (newer > 0) {
    // The requester began a new attempt without this side's refusal.
    attempt_ = frame.attempt;
    ForgetUnfinished();
  }
  const uint32_t ahead = frame.message - expected_;
  if (static_cast<int32_t>(ahead) < 0) return DropReason::k_duplicate_request;
  if (ahead >= kMaxAhead) return DropReason::k_invalid_request;

  DropReason reason = DropReason::kNone;
  const bool alone = ahead == 0 && !messages_ahead();
  if (alone && frame.offset == 0 && frame.has(wire::kFrameLast)) {
    // The common case, a message of one frame in order, needs no state.
    IncomingMessage message;
    message.refused = refuse;
    reason = Take(qp, outbox, message, 0, frame, payload);
    if (qp.state() != verbs::QpState::kError && Execute(qp, outbox, message)) ++expected_;
    return reason;
  }
  if (!outbox.MayRecord(qp) && (work_ == nullptr || work_->messages.Find(ahead) == nullptr)) {
    RefuseForNow(qp, outbox);
    return DropReason::k_rnr_wait;
  }
  IncomingMessage& message = Working(outbox).messages.At(ahead);
  if (message.done) return DropReason::k_duplicate_request;
  message.refused |= refuse;
  reason = Take(qp, outbox, message, ahead, frame, payload);
  if (ahead != 0) ExecuteAhead(qp, outbox, ahead);
  Advance(qp, outbox);
  return reason;
}

// Forgets messages that have not taken effect. The others must stay known: they are offered again
// too.
void MessageResponder::ForgetUnfinished() {
  if (work_ == nullptr) return;
  work_->messages.ForEachFrom(0, [this](const IncomingMessage& message) {
    if (!message.done && message.has_taken) work_->spare_receives.push_back(message.taken);
  });
  work_->messages.ForgetUnfinished();
  work_->ordered = expected_;
}

// Makes all messages take effect that can.
void MessageResponder::Advance(QpContext& qp, Outbox& outbox) {
  Work& work = Working(outbox);
  while (qp.state() != verbs::QpState::kError) {
    IncomingMessage* const first = work.messages.Find(0);
    if (first == nullptr) break;
    if (!first->done) {
      // A refused message need not be whole: its refusal leaves now.
      if (!first->whole() && !first->refused && first->nak == 0) break;
      if (!Execute(qp, outbox, *first)) return;
    }
    work.messages.Advance();
    ++expected_;
  }
  // Messages of strong order may run ahead of messages without order.
  if (static_cast<int32_t>(work.ordered - expected_) < 0) work.ordered = expected_;
  for (; qp.state() != verbs::QpState::kError; ++work.ordered) {
    const uint32_t ahead = work.ordered - expected_;
    const IncomingMessage* const next = work.messages.Find(ahead);
    if (next == nullptr) return;
    if (!next->done && next->order() != wire::MessageOrder::kNone &&
        !ExecuteAhead(qp, outbox, ahead)) {
      return;
    }
  }
}

bool MessageResponder::MayAct(const QpContext& qp, const IncomingMessage& message,
                              uint32_t ahead) const {
  using enum wire::MessageOrder;
  if (ahead == 0) return true;
  if (message.takes_receive() && !qp.config.any_completion_order) return false;
  if (message.order() == kStrong) {
    return work_ != nullptr && static_cast<int32_t>(work_->ordered - expected_ - ahead) >= 0;
  }
  return message.order() != kAfterAll;
}

// Makes the message take effect before older ones, if its order allows. Failures are reported in
// order.
bool MessageResponder::ExecuteAhead(QpContext& qp, Outbox& outbox, uint32_t ahead) {
  IncomingMessage& message = *work_->messages.Find(ahead);
  if (!message.whole() || message.refused || message.nak != 0 || !MayAct(qp, message, ahead))
    return false;
  const uint32_t number = expected_ + ahead;
  Act(qp, outbox, message, number);
  if (message.refused || message.nak != 0) return false;
  message.done = true;
  if (message.has_reply()) QueueAckAlone(qp, outbox, number);
  return true;
}

DropReason MessageResponder::Take(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                                  uint32_t ahead, const ChannelFrame& frame,
                                  std::span<const uint8_t> payload) {
  if (!message.seen()) {
    message.Begin(frame);
    if (message.kind == FrameKind::kWrite) BeginWrite(qp, message);
  } else if (!message.Fits(frame) ||
             (!message.refused && payload.size() > message.length - message.arrived)) {
    // Also frames that overlap: more bytes have arrived than the message has. A refused message is
    // offered again beside frames of it that were on their way.
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
  }
  if (message.nak == 0 && !message.refused) {
    if (message.kind == FrameKind::kSend)
      TakeSend(qp, outbox, message, expected_ + ahead, frame, payload);
    if (message.kind == FrameKind::kWrite) TakeWrite(qp, outbox, message, ahead, frame, payload);
    // An ATOMIC WRITE is one frame with all its payload.
    if (message.kind == FrameKind::kAtomicWrite)
      std::memcpy(&message.swap_or_add, payload.data(), sizeof message.swap_or_add);
  }
  message.arrived +=
      std::min(static_cast<uint32_t>(payload.size()), message.length - message.arrived);
  if (message.refused) return DropReason::k_rnr_wait;
  if (message.nak == 0) qp.CountBytesReceived(payload.size());
  return DropReason::kNone;
}

// Opens the message's receive. A queue pair's own receives are taken in message order, whatever the
// order of arrival: frames name the receive. From a shared receive queue, each message that has
// begun to arrive takes the next one; messages of which no frame has arrived take none.
bool MessageResponder::OpenReceiveOf(QpContext& qp, Outbox& outbox, IncomingMessage& message) {
  if (!qp.shares_receives) {
    while (!receives_.IsOpen(message.receive)) {
      if (receives_.Open(qp, outbox) != shm::WorkQueue::Look::kReady) return false;
    }
    return true;
  }
  if (message.has_taken) return true;
  if (work_ != nullptr && !work_->spare_receives.empty()) {
    message.taken = work_->spare_receives.back();
    work_->spare_receives.pop_back();
  } else if (receives_.Open(qp, outbox) == shm::WorkQueue::Look::kReady) {
    message.taken = receives_.next() - 1;
  } else {
    return false;
  }
  message.has_taken = true;
  return true;
}

void MessageResponder::TakeSend(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                                uint32_t number, const ChannelFrame& frame,
                                std::span<const uint8_t> payload) {
  if (!HasReceive(qp, message, number)) {
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
    return;
  }
  if (!OpenReceiveOf(qp, outbox, message)) {
    message.refused = true;
    return;
  }
  OpenReceive& receive = receives_.At(message.taken);
  if (receive.received == 0 && receive.status == WcStatus::kSuccess &&
      !receives_.Writable(qp, message.taken)) {
    receive.status = WcStatus::kLocalProtection;
  }
  if (receive.status != WcStatus::kSuccess) {
    message.nak = SyndromeOf(NakCode::kRemoteOperation);
    message.receive_status = receive.status;
    qp.worker->counters.wqe_bad_requests.Add();
    return;
  }
  if (message.length > receive.request.capacity) {
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
    message.receive_status = WcStatus::kLocalLength;
    return;
  }
  if (payload.size() == message.length && receives_.FitsRing(qp, message.taken, payload.size())) {
    receives_.PlaceInRing(qp, message.taken, payload);
    message.in_ring = true;
    return;
  }
  receive.received += static_cast<uint32_t>(payload.size());
  if (!receives_.Place(qp, outbox, message.taken, frame.offset, payload,
                       {.request = number, .on_channel = true}, placement_ticket_)) {
    message.nak = SyndromeOf(NakCode::kRemoteOperation);
    message.receive_status = WcStatus::kLocalProtection;
  }
}

void MessageResponder::BeginWrite(QpContext& qp, IncomingMessage& message) {
  if ((qp.attributes.access & verbs::kAccessRemoteWrite) == 0 ||
      message.length > verbs::kMaxMessage) {
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
    return;
  }
  if (message.length == 0) return;
  const std::optional<verbs::RemotePlace> place =
      qp.worker->regions.FindRemote(qp.user(), MemoryKey{message.rkey}, verbs::kAccessRemoteWrite,
                                    message.address, message.length);
  if (!place.has_value()) {
    message.nak = SyndromeOf(NakCode::kRemoteAccess);
    return;
  }
  message.local = place->address;
}

void MessageResponder::TakeWrite(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                                 uint32_t ahead, const ChannelFrame& frame,
                                 std::span<const uint8_t> payload) {
  const auto bytes = static_cast<uint32_t>(payload.size());
  if (bytes == 0) return;
  const bool last = frame.has(wire::kFrameLast);
  const bool completes = message.arrived + bytes == message.length && MayAct(qp, message, ahead);
  uint32_t now = bytes;
  if (last && !completes) {
    message.tail_length = static_cast<uint8_t>(std::min(bytes, IncomingMessage::kTail));
    now = bytes - message.tail_length;
    std::memcpy(&message.tail, payload.data() + now, message.tail_length);
  }
  if (now == 0) return;
  PlaceWrite(qp, outbox, message, expected_ + ahead, frame.offset, payload.first(now),
             last && completes ? Placing::kLastOfPacket : Placing::kPacket);
}

bool MessageResponder::PlacedLater(const IncomingMessage& message, uint32_t number) const {
  return messages_ahead() &&
         work_->messages.PlacedAfter(number - expected_,
                                     {message.local, message.local + message.length});
}

// Places bytes of a WRITE, except where a later WRITE has already placed bytes: those are newer. If
// the record of what is placed is full, the message is refused.
void MessageResponder::PlaceWrite(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                                  uint32_t number, uint32_t offset, std::span<const uint8_t> bytes,
                                  Placing placing) {
  const uint64_t from = message.local + offset;
  const ByteRange whole{from, from + bytes.size()};
  std::span<const ByteRange> left(&whole, 1);
  std::vector<ByteRange> pieces;
  const uint32_t ahead = number - expected_;
  if (ahead != 0 || (messages_ahead() && work_->messages.has_placed())) {
    if (!work_->messages.Place(ahead, whole, pieces)) {
      message.refused = true;
      return;
    }
    left = pieces;
  }
  for (const ByteRange& piece : left) {
    const uint64_t skipped = piece.begin - from;
    const uint64_t va = message.address + offset + skipped;
    const auto length = static_cast<uint32_t>(piece.end - piece.begin);
    const std::optional<verbs::RemotePlace> place = qp.worker->regions.FindRemote(
        qp.user(), MemoryKey{message.rkey}, verbs::kAccessRemoteWrite, va, length);
    // The region was deregistered meanwhile: nothing is placed, and the message is refused in its
    // turn.
    if (!place.has_value()) {
      message.nak = SyndromeOf(NakCode::kRemoteAccess);
      return;
    }
    memory::MemoryOp op{.kind = memory::OpKind::kWrite,
                        .publish = placing != Placing::kPacket,
                        .length = length,
                        .address = place->address,
                        .direct = place->direct};
    // Held-back bytes have no packet to lie in, so they travel in the operation itself.
    if (placing == Placing::kHeldTail) {
      std::memcpy(&op.compare, bytes.data() + skipped, length);
    } else {
      op.buffer = const_cast<uint8_t*>(bytes.data()) + skipped;
    }
    outbox.Access(qp, op,
                  {.qp = qp.handle,
                   .ticket = ++qp.tickets_issued,
                   .purpose = AccessPurpose::kWrite,
                   .request = number,
                   .on_channel = true},
                  nullptr);
    placement_ticket_ = qp.tickets_issued;
  }
}

// Refuses the next message, which the requester must offer again with all later ones.
void MessageResponder::RefuseForNow(QpContext& qp, Outbox& outbox) {
  qp.worker->counters.rnr_tx_packets.Add();
  ++attempt_;
  ForgetUnfinished();
  QueueReply(outbox, {static_cast<uint8_t>(wire::kSyndromeRnr | (qp.attributes.min_rnr_timer & 31)),
                      attempt_, expected_, Placed(qp)});
}

void MessageResponder::Refuse(QpContext& qp, Outbox& outbox, uint32_t number, uint8_t nak,
                              uint32_t ticket) {
  qp.worker->counters.nak_error_tx_packets.Add();
  const bool alone = static_cast<int32_t>(number - expected_) > 0;
  QueueReply(outbox, {nak, attempt_, number, ticket, alone});
  refused_ = true;
  if (!qp.EnterError()) return;
  outbox.Event(qp, EventOfNak(static_cast<NakCode>(nak)));
}

void MessageResponder::OnAtomicResult(const AccessTag& tag, uint64_t original) {
  Executed* executed = Find(tag.request);
  if (executed == nullptr || executed->ticket != tag.ticket) return;
  executed->result = original;
  executed->known = true;
}

void MessageResponder::OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag) {
  qp.worker->counters.memory_fault_operations.Add();
  const bool receive = tag.purpose == AccessPurpose::kReceive;
  const uint8_t nak = SyndromeOf(receive ? NakCode::kRemoteOperation : NakCode::kRemoteAccess);
  const uint32_t ahead = tag.request - expected_;
  if (static_cast<int32_t>(ahead) >= 0) {
    // A message that was refused meanwhile is offered again.
    IncomingMessage* const message = work_ == nullptr ? nullptr : work_->messages.Find(ahead);
    if (message == nullptr) return;
    if (!message->done) {
      message->nak = nak;
      if (receive) message->receive_status = WcStatus::kLocalProtection;
      return;
    }
  }
  // The message took effect, and its reply has not left: withdraw the replies from it on.
  GrowingRing<Reply>& replies = Working(outbox).replies;
  for (size_t left = replies.size(); left != 0; --left) {
    const Reply reply = replies.front();
    replies.pop_front();
    const auto later = static_cast<int32_t>(reply.message - tag.request);
    if (reply.alone ? later != 0 : later < 0) replies.push_back(reply);
  }
  receives_.FailFrom(tag.ticket, receive ? WcStatus::kLocalProtection : WcStatus::kFlush);
  if (qp.state() == verbs::QpState::kError && !refused_) return;
  // All tickets before the fault are done.
  Refuse(qp, outbox, tag.request, nak, qp.tickets_done);
}

void MessageResponder::OnCarrierLost(const flow::Carrier& carrier, bool beside) {
  if (carrier_ == nullptr || (carrier_ != &carrier && !beside)) return;
  carrier_->Release();
  carrier_ = nullptr;
  ForgetUnfinished();
  if (work_ == nullptr) return;
  work_->messages.clear();
  work_->replies.clear();
}

}  // namespace rocegw::transport
