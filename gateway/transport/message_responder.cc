// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message_responder.h"

#include <algorithm>
#include <cstring>

#include "gateway/transport/completion.h"
#include "gateway/transport/frame_packet.h"

namespace rocegw::transport {

using metrics::DropReason;
using verbs::WcStatus;
using wire::ChannelFrame;
using wire::FrameKind;
using wire::NakCode;
using wire::SyndromeOf;

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
    work_ = outbox.under_way.messages.Take();
    work_->ordered = expected_;
  }
  return *work_;
}

void MessageResponder::RestIfDone(Outbox& outbox) {
  if (!work_->replies.empty() || !work_->messages.empty()) return;
  if (work_->executed.empty() && work_->spare_receives.empty()) {
    outbox.under_way.messages.GiveBack(std::move(work_));
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

// Of an attempt that is over, what is whole, waits for nobody and takes no receive is as good as
// new: one that cannot be received keeps only those waiting that it has to.
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
  const auto newer = static_cast<int8_t>(frame.attempt - attempt_);
  if (newer < 0 && !TakenAnyway(frame)) return DropReason::k_rnr_wait;
  if (newer > 0) {
    // It has gone back before we knew of it.
    attempt_ = frame.attempt;
    ForgetUnfinished();
  }
  const uint32_t ahead = frame.message - expected_;
  if (static_cast<int32_t>(ahead) < 0) return DropReason::k_duplicate_request;
  if (ahead >= kMaxAhead) return DropReason::k_invalid_request;

  DropReason reason = DropReason::kNone;
  const bool alone = ahead == 0 && !messages_ahead();
  if (alone && frame.offset == 0 && frame.has(wire::kFrameLast)) {
    // The usual case, a message of one frame in its turn, leaves no trace.
    IncomingMessage message;
    message.refused = refuse;
    reason = Take(qp, outbox, message, 0, frame, payload);
    if (qp.state() != verbs::QpState::kError && Execute(qp, outbox, message, 0)) ++expected_;
    return reason;
  }
  IncomingMessage& message = Working(outbox).messages.At(ahead);
  if (message.done) return DropReason::k_duplicate_request;
  message.refused |= refuse;
  reason = Take(qp, outbox, message, ahead, frame, payload);
  if (ahead != 0) ExecuteAhead(qp, outbox, ahead);
  Advance(qp, outbox);
  return reason;
}

// What has taken effect stays known, since it is offered again with the others.
void MessageResponder::ForgetUnfinished() {
  if (work_ == nullptr) return;
  work_->messages.ForEachFrom(0, [this](const IncomingMessage& message) {
    if (!message.done && message.has_taken) work_->spare_receives.push_back(message.taken);
  });
  work_->messages.ForgetUnfinished();
  work_->ordered = expected_;
}

// Whatever can take effect now does.
void MessageResponder::Advance(QpContext& qp, Outbox& outbox) {
  Work& work = Working(outbox);
  while (qp.state() != verbs::QpState::kError) {
    IncomingMessage* const first = work.messages.Find(0);
    if (first == nullptr) break;
    if (!first->done) {
      // One that was refused need not be whole to be told so.
      if (!first->whole() && !first->refused && first->nak == 0) break;
      if (!Execute(qp, outbox, *first, 1)) return;
    }
    work.messages.Advance();
    ++expected_;
  }
  // Those of strong order behind others that have none.
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

// Takes effect before its turn, if it may. What fails is told in its turn.
bool MessageResponder::ExecuteAhead(QpContext& qp, Outbox& outbox, uint32_t ahead) {
  IncomingMessage& message = *work_->messages.Find(ahead);
  if (!message.whole() || message.refused || message.nak != 0 || !MayAct(qp, message, ahead))
    return false;
  const uint32_t number = expected_ + ahead;
  Act(qp, outbox, message, number, size_t{ahead} + 1);
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
  } else if (!message.Fits(frame)) {
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
  }
  if (message.nak == 0 && !message.refused) {
    if (message.kind == FrameKind::kSend)
      TakeSend(qp, outbox, message, expected_ + ahead, frame, payload);
    if (message.kind == FrameKind::kWrite) TakeWrite(qp, outbox, message, ahead, frame, payload);
    // One frame has all of it.
    if (message.kind == FrameKind::kAtomicWrite)
      std::memcpy(&message.swap_or_add, payload.data(), sizeof message.swap_or_add);
  }
  message.arrived += static_cast<uint32_t>(payload.size());
  if (message.refused) return DropReason::k_rnr_wait;
  if (message.nak == 0) qp.CountBytesReceived(payload.size());
  return DropReason::kNone;
}

// Receives are taken in the order of messages, whatever the order of arrival: each frame names its
// own. Those of a shared queue have no order among its queue pairs: each message that has begun to
// come takes the next one, and none for messages that have not.
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
             size_t{ahead} + 1, last && completes ? Placing::kLastOfPacket : Placing::kPacket);
  message.AddPlaced(frame.offset, frame.offset + now);
}

bool MessageResponder::PlacedLater(const IncomingMessage& message, size_t first_later) const {
  const ByteRange whole{message.local, message.local + message.length};
  if (!messages_ahead()) return false;
  std::vector<ByteRange> left;
  bool placed = false;
  work_->messages.ForEachFrom(first_later, [&](const IncomingMessage& later) {
    left.assign(1, whole);
    later.Subtract(left);
    placed |= left.size() != 1 || left[0].begin != whole.begin || left[0].end != whole.end;
  });
  return placed;
}

// What later WRITEs have put in the same place already stays: it is what must be there in the end.
void MessageResponder::PlaceWrite(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                                  uint32_t number, uint32_t offset, std::span<const uint8_t> bytes,
                                  size_t first_later, Placing placing) {
  const uint64_t from = message.local + offset;
  const ByteRange whole{from, from + bytes.size()};
  std::span<const ByteRange> left(&whole, 1);
  std::vector<ByteRange> pieces;
  if (messages_ahead() && first_later < work_->messages.reach()) {
    pieces.push_back(whole);
    work_->messages.ForEachFrom(first_later,
                                [&](const IncomingMessage& later) { later.Subtract(pieces); });
    left = pieces;
  }
  for (const ByteRange& piece : left) {
    const uint64_t skipped = piece.begin - from;
    const uint64_t va = message.address + offset + skipped;
    const auto length = static_cast<uint32_t>(piece.end - piece.begin);
    const std::optional<verbs::RemotePlace> place = qp.worker->regions.FindRemote(
        qp.user(), MemoryKey{message.rkey}, verbs::kAccessRemoteWrite, va, length);
    // Deregistered meanwhile: nothing is placed, and the message is refused in its turn.
    if (!place.has_value()) {
      message.nak = SyndromeOf(NakCode::kRemoteAccess);
      return;
    }
    memory::MemoryOp op{.kind = memory::OpKind::kWrite,
                        .publish = placing != Placing::kPacket,
                        .length = length,
                        .address = place->address,
                        .direct = place->direct};
    // A tail that was held back has no packet any more to lie in.
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

// The message whose turn it is must come again, and with it all that follow.
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
    // One that was refused meanwhile comes again.
    IncomingMessage* const message = work_ == nullptr ? nullptr : work_->messages.Find(ahead);
    if (message == nullptr) return;
    if (!message->done) {
      message->nak = nak;
      if (receive) message->receive_status = WcStatus::kLocalProtection;
      return;
    }
  }
  // It has taken effect, and nobody was told yet.
  GrowingRing<Reply>& replies = Working(outbox).replies;
  for (size_t left = replies.size(); left != 0; --left) {
    const Reply reply = replies.front();
    replies.pop_front();
    const auto later = static_cast<int32_t>(reply.message - tag.request);
    if (reply.alone ? later != 0 : later < 0) replies.push_back(reply);
  }
  receives_.FailFrom(tag.ticket, receive ? WcStatus::kLocalProtection : WcStatus::kFlush);
  if (qp.state() == verbs::QpState::kError && !refused_) return;
  // Everything before it is done.
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
