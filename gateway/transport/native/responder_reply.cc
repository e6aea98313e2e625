// SPDX-License-Identifier: Apache-2.0
// Answers of the responder: one queue in PSN order, so that an acknowledgement never overtakes READ
// responses before it.
#include <algorithm>

#include "gateway/transport/native/native_packet.h"
#include "gateway/transport/native/responder.h"
#include "gateway/transport/queues/completion.h"

namespace rocegw::transport {

// Queues an acknowledgement or NAK and merges it with the last one where possible, which bounds the
// queue. It never makes an acknowledgement wait for a newer ticket; CoveredByNext() merges the
// rest.
void Responder::QueueAck(const QpContext& qp, Psn psn, uint32_t msn, uint8_t syndrome,
                         uint32_t ticket) {
  const Reply reply{
      .kind = ReplyKind::kAck, .syndrome = syndrome, .psn = psn, .msn = msn, .ticket = ticket};
  if (!replies_.empty() && replies_.back().kind == ReplyKind::kAck) {
    Reply& back = replies_.back();
    const bool both = syndrome == wire::kSyndromeAck && back.syndrome == wire::kSyndromeAck;
    if (both && PsnBefore(psn, back.psn)) return;
    if (back.syndrome == wire::kSyndromeAck && (back.ticket == ticket || qp.IsDone(ticket))) {
      back = reply;
      return;
    }
    // A NAK acknowledges everything before its PSN; one is enough.
    const bool covered =
        syndrome == wire::kSyndromeAck ? PsnBefore(psn, back.psn) : back.psn == psn;
    if (back.syndrome != wire::kSyndromeAck && covered &&
        (syndrome == wire::kSyndromeAck || syndrome == back.syndrome)) {
      return;
    }
  }
  replies_.push_back(reply);
}

// Answers a repeated SEND or WRITE: acknowledges everything received in order, but stops before the
// PSN of a READ or atomic that followed. The requester may miss their responses too, and Linux rxe
// would take a plain acknowledgement with such a PSN for the response.
void Responder::AcknowledgeAgain(const QpContext& qp, Psn psn) {
  Psn upto = expected() - 1;
  uint32_t msn = msn_;
  for (const Remembered& memory : remembered_) {
    if (!memory.valid || !PsnBefore(psn, memory.first) || PsnBefore(upto, memory.first)) continue;
    upto = memory.first - 1;
    msn = (memory.msn - 1) & kPsnMask;
  }
  // A response that waits in the queue acknowledges as much. One more reply behind it would break
  // the order of the queue, and DropRepliesFrom would miss the response.
  if (!replies_.empty() && replies_.back().kind != ReplyKind::kAck &&
      PsnAfter(replies_.back().psn, upto)) {
    return;
  }
  QueueAck(qp, upto, msn, wire::kSyndromeAck, Placed(qp));
}

void Responder::QueueRead(QpContext& qp, const Remembered& memory, Psn psn, uint64_t address,
                          uint32_t length, uint32_t psns) {
  replies_.push_back({.kind = ReplyKind::kRead,
                      .psn = psn,
                      .msn = memory.msn,
                      .ticket = Placed(qp),
                      .psns = psns,
                      .srq = memory.srq,
                      .address = address,
                      .rkey = memory.rkey,
                      .length = length});
}

void Responder::QueueAtomic(QpContext& qp, const Remembered& memory) {
  replies_.push_back({.kind = ReplyKind::kAtomic,
                      .psn = memory.first,
                      .msn = memory.msn,
                      .ticket = memory.result_known ? qp.tickets_done : memory.ticket});
}

void Responder::DropRepliesFrom(Psn psn) {
  while (!replies_.empty() && !PsnBefore(replies_.back().psn, psn)) replies_.pop_back();
  if (replies_.empty() || replies_.back().kind != ReplyKind::kRead) return;
  Reply& read = replies_.back();
  const auto before = static_cast<uint32_t>(PsnDistance(psn, read.psn));
  if (before >= read.psns) return;
  read.psns = before;
  if (read.sent >= read.psns) replies_.pop_back();
}

// Returns the remembered request that used the PSN last, at most half the PSN space ago (IBTA
// 9.7.1). The 64-bit number excludes requests of an earlier round of PSNs.
Responder::Remembered* Responder::FindRemembered(Psn psn) {
  const auto ago = static_cast<uint64_t>(PsnDistance(expected(), psn) & kPsnMask);
  for (Remembered& memory : remembered_)
    if (memory.valid && next_ - ago - memory.at < memory.psns) return &memory;
  return nullptr;
}

// Returns true if the next reply acknowledges the first one as well, as ACKs and NAKs do.
bool Responder::CoveredByNext(const QpContext& qp) const {
  const Reply& first = replies_.front();
  if (first.kind != ReplyKind::kAck || first.syndrome != wire::kSyndromeAck) return false;
  return replies_.size() > 1 && replies_[1].kind == ReplyKind::kAck &&
         qp.IsDone(replies_[1].ticket);
}

bool Responder::EndsInRefusal() const {
  const Reply& last = replies_.back();
  return last.kind == ReplyKind::kAck &&
         last.syndrome > wire::SyndromeOf(wire::NakCode::kPsnSequence);
}

std::optional<uint32_t> Responder::NextRead() const {
  if (replies_.empty() || replies_.front().kind != ReplyKind::kRead) return std::nullopt;
  return replies_.front().srq;
}

PumpResult Responder::Pump(QpContext& qp, Outbox& outbox, flow::Flow& flow, TimePoint now,
                           PumpBudget& budget) {
  held_until_ = kNever;
  // Replies that were queued before an error still leave; a reset has discarded them.
  while (budget.left() && !replies_.empty()) {
    Reply& reply = replies_.front();
    if (!qp.IsDone(reply.ticket)) return PumpResult::kBlocked;
    if (CoveredByNext(qp)) {
      replies_.pop_front();
      continue;
    }
    // XRC: the reads of one session complete in order, so its packets leave in order. Packets of
    // another session must not overtake them.
    const bool may_pass = !is_xrc_ || (reply.kind == ReplyKind::kRead && reply.srq == read_srq_) ||
                          qp.IsDone(read_ticket_);
    if (!may_pass) return PumpResult::kBlocked;
    uint32_t bytes = 0;
    Replied result = Replied::kDone;
    switch (reply.kind) {
      case ReplyKind::kAck:
        result = SendAck(qp, outbox, reply);
        break;
      case ReplyKind::kRead:
        result = SendReadPacket(qp, outbox, flow, now, reply, bytes);
        break;
      case ReplyKind::kAtomic:
        result = SendAtomicAck(qp, outbox, reply);
        break;
      case ReplyKind::kAtomicWrite:
      case ReplyKind::kFlush:
        result = SendEmptyResponse(qp, outbox, reply);
        break;
    }
    if (result == Replied::kPortFull) return PumpResult::kMore;
    if (result == Replied::kGateClosed) {
      held_until_ = flow.NextAnswer(now);
      return PumpResult::kBlocked;
    }
    // The reply was replaced by a refusal.
    if (result == Replied::kRefused) continue;
    budget.Take(bytes);
    if (result == Replied::kDone) replies_.pop_front();
  }
  return replies_.empty() ? PumpResult::kIdle : PumpResult::kMore;
}

bool Responder::SendBare(QpContext& qp, Outbox& outbox, const Reply& reply, wire::Opcode opcode,
                         uint64_t atomic_result) {
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return false;
  wire::Headers headers;
  headers.bth.opcode = opcode;
  headers.bth.psn = reply.psn;
  headers.aeth = {reply.syndrome, reply.msn};
  headers.atomic_ack = atomic_result;
  BuildPacket(qp, headers, 0, *packet);
  outbox.Send(qp, packet);
  return true;
}

Responder::Replied Responder::SendAck(QpContext& qp, Outbox& outbox, const Reply& reply) {
  if (!SendBare(qp, outbox, reply, wire::Opcode::kRcAck)) return Replied::kPortFull;
  qp.worker->counters.ack_tx_packets.Add();
  return Replied::kDone;
}

Responder::Replied Responder::SendReadPacket(QpContext& qp, Outbox& outbox, flow::Flow& flow,
                                             TimePoint now, Reply& reply, uint32_t& sent) {
  const bool failed = qp.state() == verbs::QpState::kError;
  // READs before a refused request are still answered; after any other error, none is.
  if (failed && !EndsInRefusal()) return Replied::kDone;
  const uint32_t offset = reply.sent * qp.mtu();
  const uint32_t bytes = std::min(qp.mtu(), reply.length - offset);
  const Psn psn = reply.psn + reply.sent;
  if (!flow.MayAnswer(bytes, now)) return Replied::kGateClosed;
  const bool there = !is_xrc_ || selector_->Enter(reply.srq) != nullptr;
  std::optional<verbs::RemotePlace> place;
  if (bytes != 0 || !there) {
    if (there)
      place =
          qp.worker->regions.FindRemote(qp.user(), MemoryKey{reply.rkey}, verbs::kAccessRemoteRead,
                                        reply.address + offset, bytes);
    if (!place.has_value()) {
      // The region was deregistered while the READ was in progress, or the session closed (XRC).
      if (failed) return Replied::kDone;
      DropRepliesFrom(psn);
      Refuse(qp, outbox, psn, wire::NakCode::kRemoteAccess);
      return Replied::kRefused;
    }
  }
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return Replied::kPortFull;
  const bool first = reply.sent == 0;
  const bool last = offset + bytes == reply.length;
  wire::Headers headers;
  headers.bth.opcode =
      first  ? last ? wire::Opcode::kRcReadResponseOnly : wire::Opcode::kRcReadResponseFirst
      : last ? wire::Opcode::kRcReadResponseLast
             : wire::Opcode::kRcReadResponseMiddle;
  headers.bth.psn = psn;
  headers.aeth = {wire::kSyndromeAck, reply.msn};
  uint8_t* body = BuildPacket(qp, headers, bytes, *packet);
  if (place.has_value()) {
    const memory::MemoryOp op{.kind = memory::OpKind::kRead,
                              .want_crc = true,
                              .length = bytes,
                              .address = place->address,
                              .direct = place->direct,
                              .buffer = body};
    outbox.Access(qp, op, {qp.handle, ++qp.tickets_issued, AccessPurpose::kReadResponse, psn, 0},
                  packet);
    read_srq_ = reply.srq;
    read_ticket_ = qp.tickets_issued;
  }
  outbox.Send(qp, packet);
  qp.worker->counters.read_response_tx_packets.Add();
  qp.CountBytesSent(bytes);
  sent = bytes;
  // Pacing of answers may give the flow a deadline.
  qp.EndRest();
  flow.OnAnswered(bytes, now);
  ++reply.sent;
  return reply.sent == reply.psns ? Replied::kDone : Replied::kMore;
}

Responder::Replied Responder::SendAtomicAck(QpContext& qp, Outbox& outbox, const Reply& reply) {
  const Remembered* memory = FindRemembered(reply.psn);
  if (memory == nullptr || !memory->result_known) return Replied::kDone;
  const bool sent = SendBare(qp, outbox, reply, wire::Opcode::kRcAtomicAck, memory->result);
  return sent ? Replied::kDone : Replied::kPortFull;
}

}  // namespace rocegw::transport
