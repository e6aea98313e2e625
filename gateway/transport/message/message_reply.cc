// SPDX-License-Identifier: Apache-2.0
// Answers of a responder on a channel. Replies leave in message order, after the memory operations
// that they confirm. READ responses and atomic results confirm nothing else.
#include <algorithm>

#include "gateway/transport/message/frame_packet.h"
#include "gateway/transport/message/message_responder.h"
#include "gateway/transport/message/remote_read.h"

namespace rocegw::transport {

using wire::ChannelFrame;
using wire::FrameKind;

namespace {
// Bit in a reply's FrameRef::offset, which holds the syndrome: the reply answers one message alone.
constexpr uint32_t kAloneBit = 0x100;
}  // namespace

// Queues an acknowledgement. It covers all messages before it, so one per ticket suffices.
void MessageResponder::QueueAck(QpContext& qp, Outbox& outbox, uint32_t number) {
  const Reply reply{wire::kSyndromeAck, attempt_, number, Placed(qp)};
  GrowingRing<Reply>& replies = Working(outbox).replies;
  if (!replies.empty() && replies.back().syndrome == wire::kSyndromeAck && !replies.back().alone &&
      (replies.back().ticket == reply.ticket || qp.IsDone(reply.ticket))) {
    replies.back() = reply;
    return;
  }
  replies.push_back(reply);
}

void MessageResponder::QueueAckAlone(QpContext& qp, Outbox& outbox, uint32_t number) {
  QueueReply(outbox, {wire::kSyndromeAck, attempt_, number, Placed(qp), true});
}

// Sets the channel that answers leave by. If the peer sends requests on several channels, answers
// use all of these, up to a bound that no gateway reaches; beyond it they keep the one before.
void MessageResponder::LeaveBy(QpContext& qp, flow::Carrier& carrier) {
  if (carrier_ != nullptr) {
    for (flow::Carrier* const used : {carrier_, &carrier}) {
      if (used == qp.carrier) continue;
      if (qp.multipath == nullptr) qp.multipath = std::make_unique<Multipath>();
      if (!qp.multipath->AddForAnswers(*used)) return;
    }
    carrier_->Release();
  }
  carrier_ = &carrier;
  carrier_->Hold();
}

MessageResponder::Executed* MessageResponder::Find(uint32_t number) {
  if (work_ == nullptr) return nullptr;
  for (Executed& executed : work_->executed)
    if (executed.asked && executed.message == number) return &executed;
  return nullptr;
}

PumpResult MessageResponder::Pump(QpContext& qp, Outbox& outbox, TimePoint now,
                                  PumpBudget& budget) {
  if (carrier_ == nullptr || work_ == nullptr) return PumpResult::kIdle;
  GrowingRing<Reply>& replies = work_->replies;
  RestingRing<uint32_t>& answering = work_->answering;
  bool waits = false;
  // Replies that were queued before an error still leave; a reset has discarded them.
  while (budget.left() && !replies.empty()) {
    if (!qp.IsDone(replies.front().ticket)) {
      waits = true;
      break;
    }
    const bool covered = replies.size() > 1 && qp.IsDone(replies[1].ticket) &&
                         replies.front().syndrome == wire::kSyndromeAck && !replies.front().alone &&
                         !replies[1].alone;
    if (!covered) {
      const Sent sent = SendReply(qp, outbox, replies.front(), now, budget.last);
      if (sent == Sent::kPortFull) return PumpResult::kMore;
      if (sent == Sent::kGateClosed) return PumpResult::kBlocked;
      budget.Take(0);
    }
    replies.pop_front();
  }
  while (budget.left() && !answering.empty()) {
    Executed& executed = work_->executed[answering.front()];
    if (executed.atomic && !executed.known) {
      waits = true;
      break;
    }
    const Sent sent = SendAnswer(qp, outbox, executed, now, budget);
    if (sent == Sent::kPortFull) return PumpResult::kMore;
    if (sent == Sent::kGateClosed) return PumpResult::kBlocked;
    if (executed.answered) answering.pop_front();
  }
  if (waits) return PumpResult::kBlocked;
  if (!replies.empty() || !answering.empty()) return PumpResult::kMore;
  RestIfDone(outbox);
  return PumpResult::kIdle;
}

void MessageResponder::FillReply(const QpContext& qp, const Reply& reply, Psn psn,
                                 const flow::CarrierAddress& address, port::TxPacket& packet) {
  ChannelFrame frame{.kind = FrameKind::kReply,
                     .syndrome = reply.syndrome,
                     .attempt = reply.attempt,
                     .message = reply.message};
  if (reply.alone) frame.flags = wire::kFrameRelaxed;
  BuildFrame(qp, address, frame, psn, 0, packet);
}

MessageResponder::Sent MessageResponder::SendReply(QpContext& qp, Outbox& outbox,
                                                   const Reply& reply, TimePoint now, bool last) {
  flow::WaitEntry& entry = qp.WaitEntryAt(*carrier_);
  const bool may =
      last ? carrier_->MaySendLast(now) : carrier_->MaySend(qp.window_waiter(), entry, 0, now);
  if (!may) return Sent::kGateClosed;
  port::TxPacket* packet = outbox.NewFrame(qp, *carrier_, 0);
  if (packet == nullptr) return Sent::kPortFull;
  flow::FrameRef ref = MakeFrameRef(qp, FrameKind::kReply, reply.message, reply.attempt);
  ref.offset = reply.syndrome | (reply.alone ? kAloneBit : 0);
  const Psn psn = carrier_->OnSent(qp.window_waiter(), entry, ref, 0, now);
  FillReply(qp, reply, psn, carrier_->address(), *packet);
  outbox.SendFrame(qp, *carrier_, packet);
  qp.worker->counters.ack_tx_packets.Add();
  return Sent::kYes;
}

MessageResponder::Sent MessageResponder::SendAnswer(QpContext& qp, Outbox& outbox,
                                                    Executed& executed, TimePoint now,
                                                    PumpBudget& budget) {
  // READs before a refused message are still answered; after any other error, none is.
  if (qp.state() == verbs::QpState::kError && !refused_) {
    executed.answered = true;
    return Sent::kFailed;
  }
  const uint32_t offset = executed.sent;
  const uint32_t bytes = NextBytes(executed, std::min(qp.mtu(), carrier_->max_payload()));
  if (!qp.HasRoom(bytes)) return Sent::kGateClosed;
  flow::Carrier* carrier = carrier_;
  if (qp.multipath != nullptr && qp.carrier != nullptr) {
    carrier = qp.multipath->Choose(qp.window_waiter(), *qp.carrier, qp.wait_entry, bytes, 0, now);
  } else if (!carrier->MaySend(qp.window_waiter(), qp.WaitEntryAt(*carrier), bytes, now)) {
    carrier = nullptr;
  }
  if (carrier == nullptr) return Sent::kGateClosed;
  port::TxPacket* packet = outbox.NewFrame(qp, *carrier, bytes);
  if (packet == nullptr) return Sent::kPortFull;
  flow::FrameRef ref = MakeFrameRef(qp, AnswerKindOf(executed), executed.message, 0);
  ref.offset = offset;
  ref.length = static_cast<uint16_t>(bytes);
  const Psn psn = carrier->OnSent(qp.window_waiter(), qp.WaitEntryAt(*carrier), ref, bytes, now);
  qp.OnFrameLeaves(*carrier, bytes);
  const bool filled =
      FillAnswer(qp, outbox, executed,
                 {.offset = offset, .bytes = bytes, .psn = psn, .request = executed.message},
                 carrier->address(), *packet);
  // The PSN is used already. An empty frame keeps it; retransmission sends a void frame.
  if (!filled) packet->length = 0;
  outbox.SendFrame(qp, *carrier, packet);
  executed.sent += bytes;
  executed.answered = executed.atomic || executed.sent == executed.length;
  if (!filled) {
    executed.answered = true;
    Refuse(qp, outbox, executed.message, wire::SyndromeOf(wire::NakCode::kRemoteAccess),
           qp.tickets_done);
    return Sent::kFailed;
  }
  if (!executed.atomic) qp.worker->counters.read_response_tx_packets.Add();
  qp.CountBytesSent(bytes);
  budget.Take(bytes);
  return Sent::kYes;
}

flow::Resend MessageResponder::Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                                     const flow::FrameRef& frame, Psn psn) {
  const bool mine = carrier_ == &carrier || qp.carrier == &carrier || qp.IsBeside(carrier);
  if (carrier_ == nullptr || !mine) return flow::Resend::kVoid;
  const FrameKind kind = FrameKindOf(frame);
  Executed* executed = kind == FrameKind::kReply ? nullptr : Find(frame.message);
  const bool data = kind != FrameKind::kReply;
  if (data && (executed == nullptr || (qp.state() == verbs::QpState::kError && !refused_)))
    return flow::Resend::kVoid;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return flow::Resend::kPortFull;
  bool filled = true;
  if (data) {
    filled = FillAnswer(
        qp, outbox, *executed,
        {.offset = frame.offset, .bytes = frame.length, .psn = psn, .request = frame.message},
        carrier.address(), *packet);
  } else {
    FillReply(qp,
              {static_cast<uint8_t>(frame.offset), frame.extra, frame.message, 0,
               (frame.offset & kAloneBit) != 0},
              psn, carrier.address(), *packet);
  }
  if (!filled) packet->length = 0;
  outbox.Send(qp, packet);
  if (!filled) return flow::Resend::kVoid;
  qp.worker->counters.retransmit_packets.Add();
  ++qp.retransmits;
  return flow::Resend::kDone;
}

}  // namespace rocegw::transport
