// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/requester.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "gateway/transport/completion.h"
#include "gateway/transport/native_packet.h"
#include "gateway/wire/icrc.h"

namespace rocegw::transport {
namespace {

// A long message asks for acknowledgements on its way, so that the window opens before it is used
// up.
constexpr uint32_t kAckEvery = 16;

wire::Opcode DataOpcode(const verbs::SendRequest& request, bool first, bool last) {
  using wire::Opcode;
  const bool immediate = request.opcode == verbs::SendOpcode::kSendImm ||
                         request.opcode == verbs::SendOpcode::kWriteImm;
  if (request.is_send()) {
    if (first)
      return !last       ? Opcode::kRcSendFirst
             : immediate ? Opcode::kRcSendOnlyImm
                         : Opcode::kRcSendOnly;
    return !last ? Opcode::kRcSendMiddle : immediate ? Opcode::kRcSendLastImm : Opcode::kRcSendLast;
  }
  if (first)
    return !last       ? Opcode::kRcWriteFirst
           : immediate ? Opcode::kRcWriteOnlyImm
                       : Opcode::kRcWriteOnly;
  return !last       ? Opcode::kRcWriteMiddle
         : immediate ? Opcode::kRcWriteLastImm
                     : Opcode::kRcWriteLast;
}

flow::FlowConfig FlowConfigOf(const QpContext& qp, const flow::CcConfig& cc) {
  return {
      .cc = cc,
      .timeout = flow::TransportTimeout(qp.attributes.timeout),
      .retry_count = qp.attributes.retry_count,
  };
}

}  // namespace

void Requester::SetSize(uint32_t entries, uint32_t max_sge) {
  ring_.resize(entries);
  sges_.resize(static_cast<size_t>(entries) * max_sge);
  mask_ = entries - 1;
  max_sge_ = max_sge;
}

void Requester::Reserve(uint32_t entries, uint32_t max_sge) {
  ring_.reserve(entries);
  sges_.reserve(static_cast<size_t>(entries) * max_sge);
}

void Requester::Start(QpContext& qp, const flow::CcConfig& cc, TimePoint now) {
  flow_.Start(FlowConfigOf(qp, cc), qp.attributes.sq_psn, now);
  seen_rewinds_ = flow_.rewinds();
  rnr_left_ = qp.attributes.rnr_retry;
}

void Requester::Configure(QpContext& qp, const flow::CcConfig& cc) {
  flow_.Configure(FlowConfigOf(qp, cc));
  rnr_left_ = qp.attributes.rnr_retry;
}

bool Requester::Reset(QpContext& qp) {
  const bool possible = qp.sq.Discard();
  head_ = tail_ = cursor_ = qp.sq.fetched();
  awaited_.clear();
  reading_ = 0;
  since_ack_request_ = 0;
  asked_again_ = false;
  rnr_waiting_ = false;
  flushing_ = false;
  flow_ = flow::Flow();
  seen_rewinds_ = 0;
  return possible;
}

bool Requester::FetchOne(QpContext& qp, Outbox& outbox) {
  switch (qp.sq.Check()) {
    case shm::WorkQueue::Look::kEmpty:
      return false;
    case shm::WorkQueue::Look::kFault:
      outbox.Fault(qp, "send queue producer index out of range");
      return false;
    case shm::WorkQueue::Look::kReady:
      break;
  }
  const uint8_t* slot = qp.sq.Slot();
  tail_ = qp.sq.Fetch() + 1;
  Outstanding& o = At(tail_ - 1);
  std::construct_at(&o);
  o.failed = verbs::ParseSend(qp.config, slot, tail_ - 1, o.request, SgesOf(tail_ - 1));
  qp.counters->wqe_send_requests.Add();
  if (o.failed != verbs::WcStatus::kSuccess) qp.counters->wqe_bad_requests.Add();
  return true;
}

// The request that holds the flow's next PSN, or the next one to begin; nullptr when there is none
// to send.
Requester::Outstanding* Requester::Current(QpContext& qp, Outbox& outbox) {
  for (;;) {
    // A queue that drains finishes what it has begun and takes nothing new.
    if (cursor_ == tail_ && (qp.state() == verbs::QpState::kSqd || !FetchOne(qp, outbox)))
      return nullptr;
    Outstanding& o = At(cursor_);
    if (o.failed != verbs::WcStatus::kSuccess) return nullptr;
    if (!o.started || PsnBefore(flow_.next(), o.end())) return &o;
    ++cursor_;
  }
}

void Requester::Begin(QpContext& qp, Outstanding& o, uint32_t index) {
  const verbs::SendRequest& request = o.request;
  if (request.ring_payload == nullptr || (request.flags & ROCEGW_WQE_COPIED) != 0) {
    const uint32_t access = request.reads_remote() ? uint32_t{verbs::kAccessLocalWrite} : 0;
    if (!verbs::CheckKeys(*qp.regions, qp.config, ListOf(index), access)) {
      o.failed = verbs::WcStatus::kLocalProtection;
      return;
    }
  }
  const uint32_t psns =
      request.is_atomic() ? 1 : std::max<uint32_t>(1, (request.length + qp.mtu() - 1) / qp.mtu());
  if (psns >= kPsnWindow || (request.reads_remote() && qp.attributes.max_rd_atomic == 0)) {
    o.failed =
        psns >= kPsnWindow ? verbs::WcStatus::kLocalLength : verbs::WcStatus::kLocalQpOperation;
    return;
  }
  // PSNs in doubt must not come to lie half the space apart: wait for acknowledgements.
  if (static_cast<uint32_t>(PsnDistance(flow_.max(), flow_.una())) + psns >= kPsnWindow) return;
  o.first = flow_.next();
  o.psns = psns;
  o.started = true;
  if (request.reads_remote()) ++reading_;
}

bool Requester::MustWait(const QpContext& qp, const Outstanding& o) const {
  const bool starts = flow_.next() == o.first;
  if (starts && (o.request.flags & ROCEGW_WQE_FENCE) != 0 && !awaited_.empty()) return true;
  return o.request.reads_remote() && awaited_.size() >= qp.attributes.max_rd_atomic;
}

PumpResult Requester::Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget) {
  if (!qp.sends()) return PumpResult::kIdle;
  if (rnr_waiting_) {
    if (now < rnr_until_) return PumpResult::kBlocked;
    rnr_waiting_ = false;
    flow_.RestartTimer(now);
  }
  while (budget.left()) {
    Outstanding* o = Current(qp, outbox);
    if (o == nullptr) {
      Retire(qp, outbox);
      return PumpResult::kIdle;
    }
    if (!o->started) {
      if (qp.state() == verbs::QpState::kSqd) return PumpResult::kIdle;
      Begin(qp, *o, cursor_);
      if (o->failed != verbs::WcStatus::kSuccess) continue;
      if (!o->started) return PumpResult::kBlocked;
    }
    if (MustWait(qp, *o)) return PumpResult::kBlocked;
    const uint64_t before = flow_.in_flight();
    switch (SendOne(qp, outbox, *o, now)) {
      case Sent::kYes:
        budget.Take(flow_.in_flight() - before);
        if (o->request.opcode == verbs::SendOpcode::kRead)
          budget.asked += flow_.in_flight() - before;
        break;
      case Sent::kPortFull:
        return PumpResult::kMore;
      case Sent::kGateClosed:
        return PumpResult::kBlocked;
      case Sent::kFailed:
        break;
    }
  }
  return PumpResult::kMore;
}

Requester::Sent Requester::SendOne(QpContext& qp, Outbox& outbox, Outstanding& o, TimePoint now) {
  if (o.request.opcode == verbs::SendOpcode::kRead) return SendRead(qp, outbox, o, now);
  if (o.request.is_atomic()) return SendAtomic(qp, outbox, o, now);
  return SendData(qp, outbox, o, flow_.next(), false, now);
}

bool Requester::WantsAck(QpContext& qp, const Outstanding& o, bool last, uint32_t bytes,
                         TimePoint now) {
  ++since_ack_request_;
  const bool signaled =
      qp.config.signal_all || (o.request.flags & (ROCEGW_WQE_SIGNALED | ROCEGW_WQE_SOLICITED)) != 0;
  // Behind the end of a message the next to send may be a whole piece of a READ.
  const uint64_t next = last ? kReadChunk : bytes;
  const bool wants = (last && (signaled || qp.sq.Check() == shm::WorkQueue::Look::kEmpty)) ||
                     since_ack_request_ >= kAckEvery || !flow_.HasRoom(bytes + next, now) ||
                     PsnBefore(flow_.next(), flow_.max());
  if (wants) since_ack_request_ = 0;
  return wants;
}

void Requester::Account(QpContext& qp, uint32_t psns, uint64_t bytes, TimePoint now) {
  if (flow_.OnSent(psns, bytes, now)) {
    qp.counters->retransmit_packets.Add();
    ++qp.retransmits;
  } else {
    qp.counters->request_tx_packets.Add();
    qp.bytes_sent += bytes;
  }
}

Requester::Sent Requester::SendData(QpContext& qp, Outbox& outbox, Outstanding& o, Psn psn,
                                    bool probe, TimePoint now) {
  const verbs::SendRequest& request = o.request;
  const uint32_t offset = OffsetOf(qp, o, psn);
  const uint32_t bytes = std::min(qp.mtu(), request.length - offset);
  const bool last = psn + 1 == o.end();
  if (!probe && !flow_.MaySend(bytes, now)) return Sent::kGateClosed;

  verbs::Piece pieces[verbs::kMaxSge];
  size_t count = 0;
  const auto index = request.ring_slot;
  if (request.ring_payload == nullptr && bytes != 0 &&
      !verbs::WalkPieces(*qp.regions, qp.config, ListOf(index), 0, offset, bytes,
                         [&](const verbs::Piece& piece) { pieces[count++] = piece; })) {
    o.failed = verbs::WcStatus::kLocalProtection;
    return Sent::kFailed;
  }
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return Sent::kPortFull;

  wire::Headers headers;
  headers.bth.opcode = DataOpcode(request, psn == o.first, last);
  headers.bth.psn = psn;
  headers.bth.solicited = last && (request.flags & ROCEGW_WQE_SOLICITED) != 0;
  headers.bth.ack_request = probe || WantsAck(qp, o, last, bytes, now);
  headers.immediate = request.immediate;
  headers.reth = {request.remote_address, request.rkey, request.length};
  uint8_t* body = BuildPacket(qp, headers, bytes, *packet);
  if (request.ring_payload != nullptr) {
    const uint32_t crc = wire::CrcCopy(0, body, request.ring_payload + offset, bytes);
    packet->known_crc = {static_cast<size_t>(body - packet->data), bytes, crc};
    qp.counters->memory_ring_operations.Add();
  }
  for (size_t i = 0; i < count; ++i) {
    const memory::MemoryOp op{.kind = memory::OpKind::kRead,
                              .want_crc = count == 1,
                              .length = pieces[i].length,
                              .address = pieces[i].address,
                              .direct = pieces[i].direct,
                              .buffer = body + pieces[i].offset};
    outbox.Access(qp, op, {qp.handle, ++qp.tickets_issued, AccessPurpose::kSendPayload, psn, index},
                  packet);
  }
  outbox.Send(qp, packet);
  if (!probe) Account(qp, 1, bytes, now);
  return Sent::kYes;
}

Requester::Sent Requester::SendRead(QpContext& qp, Outbox& outbox, Outstanding& o, TimePoint now) {
  const uint32_t offset = OffsetOf(qp, o, flow_.next());
  // Pieces begin at the same places when a part is asked for again: a responder answers for what
  // it remembers, and that is one piece.
  const uint32_t bytes = std::min(kReadChunk - offset % kReadChunk, o.request.length - offset);
  const uint32_t psns = std::max<uint32_t>(1, (bytes + qp.mtu() - 1) / qp.mtu());
  if (!flow_.MaySend(bytes, now)) return Sent::kGateClosed;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return Sent::kPortFull;
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kRcReadRequest;
  headers.bth.psn = flow_.next();
  headers.bth.ack_request = true;
  headers.reth = {o.request.remote_address + offset, o.request.rkey, bytes};
  BuildPacket(qp, headers, 0, *packet);
  outbox.Send(qp, packet);
  awaited_.push_back({flow_.next(), flow_.next() + psns, o.request.ring_slot});
  Account(qp, psns, bytes, now);
  return Sent::kYes;
}

Requester::Sent Requester::SendAtomic(QpContext& qp, Outbox& outbox, Outstanding& o,
                                      TimePoint now) {
  if (!flow_.MaySend(8, now)) return Sent::kGateClosed;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return Sent::kPortFull;
  const bool swap = o.request.opcode == verbs::SendOpcode::kCompareSwap;
  wire::Headers headers;
  headers.bth.opcode = swap ? wire::Opcode::kRcCompareSwap : wire::Opcode::kRcFetchAdd;
  headers.bth.psn = flow_.next();
  headers.bth.ack_request = true;
  headers.atomic = {o.request.remote_address, o.request.rkey,
                    swap ? o.request.swap : o.request.compare_add,
                    swap ? o.request.compare_add : 0};
  BuildPacket(qp, headers, 0, *packet);
  outbox.Send(qp, packet);
  awaited_.push_back({flow_.next(), flow_.next() + 1, o.request.ring_slot});
  Account(qp, 1, 8, now);
  return Sent::kYes;
}

void Requester::SendProbe(QpContext& qp, Outbox& outbox, TimePoint now) {
  for (uint32_t i = head_; i != tail_ && At(i).started; ++i) {
    Outstanding& o = At(i);
    if (Answered(o)) continue;
    if (o.request.reads_remote() || o.failed != verbs::WcStatus::kSuccess) break;
    qp.counters->tail_probe_events.Add();
    SendData(qp, outbox, o, flow_.una(), true, now);
    return;
  }
  // An unanswered READ or atomic is asked for again, with what follows it.
  flow_.Rewind();
  SyncWithFlow();
}

void Requester::OnDeadline(QpContext& qp, Outbox& outbox, TimePoint now) {
  if (rnr_waiting_ || !qp.sends()) return;
  switch (flow_.OnDeadline(now)) {
    case flow::LossVerdict::kNothing:
      return;
    case flow::LossVerdict::kProbe:
      SendProbe(qp, outbox, now);
      return;
    case flow::LossVerdict::kRewind:
      qp.counters->timeout_events.Add();
      SyncWithFlow();
      return;
    case flow::LossVerdict::kRetriesSpent:
      qp.counters->timeout_events.Add();
      Fail(qp, verbs::WcStatus::kRetryExceeded);
      return;
  }
}

TimePoint Requester::deadline() const { return rnr_waiting_ ? rnr_until_ : flow_.deadline(); }

}  // namespace rocegw::transport
