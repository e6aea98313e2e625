// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/native/requester.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "gateway/transport/native/native_packet.h"
#include "gateway/transport/queues/completion.h"

namespace rocegw::transport {
namespace {

// Packets between two acknowledgement requests of a long message, so that acknowledgements open the
// window before it is used up.
constexpr uint32_t kAckEvery = 16;

flow::FlowConfig FlowConfigOf(const QpContext& qp, const flow::CcConfig& cc) {
  return {
      .cc = CcConfigOf(qp, cc),
      .timeout = flow::TransportTimeout(qp.attributes.timeout),
      .retry_count = qp.attributes.retry_count,
  };
}

}  // namespace

flow::CcConfig CcConfigOf(const QpContext& qp, const flow::CcConfig& cc) {
  flow::CcConfig config = cc;
  config.packet_bytes = qp.mtu();
  return config;
}

void Requester::Open(const QpContext& qp, const flow::CcConfig& cc, TimePoint now) {
  flow_.Open(CcConfigOf(qp, cc), now);
}

void Requester::SwitchCc(const QpContext& qp, const flow::CcConfig& cc, TimePoint now) {
  flow_.SwitchCc(CcConfigOf(qp, cc), now);
  paced_until_ = kNever;
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

void Requester::Reset() {
  cursor_ = answered_ = send_.head();
  awaited_.clear();
  since_ack_request_ = 0;
  asked_again_ = false;
  rnr_waiting_ = false;
  paced_until_ = kNever;
  flow_ = flow::Flow();
  seen_rewinds_ = 0;
}

// Returns the request that holds the flow's next PSN, or the next one to begin; nullptr: none to
// send.
SendEntry* Requester::Current(QpContext& qp, Outbox& outbox) {
  // Requests before the head have completed.
  if (static_cast<int32_t>(cursor_ - send_.head()) < 0) cursor_ = send_.head();
  for (;;) {
    // A queue that drains (SQD) finishes begun requests and begins no new ones.
    if (cursor_ == send_.tail() &&
        (qp.state() == verbs::QpState::kSqd || !send_.FetchOne(qp, outbox))) {
      return nullptr;
    }
    SendEntry& o = send_.At(cursor_);
    if (o.failed != verbs::WcStatus::kSuccess) return nullptr;
    const bool whole = o.request.is_local() || !PsnBefore(flow_.next(), o.end());
    if (!o.started || !whole) return &o;
    ++cursor_;
  }
}

void Requester::Begin(QpContext& qp, SendEntry& o, uint32_t index) {
  if (!send_.Check(qp, index)) return;
  const verbs::SendRequest& request = o.request;
  // RoCEv2 has no opcodes for these.
  if (request.is_fetch_operate()) {
    o.failed = verbs::WcStatus::kLocalQpOperation;
    return;
  }
  const uint32_t psns =
      request.is_atomic() ? 1 : std::max<uint32_t>(1, (request.length + qp.mtu() - 1) / qp.mtu());
  if (psns >= kPsnWindow) {
    o.failed = verbs::WcStatus::kLocalLength;
    return;
  }
  // PSNs in flight must span less than half the PSN space, else comparisons are ambiguous: wait.
  if (static_cast<uint32_t>(PsnDistance(flow_.max(), flow_.una())) + psns >= kPsnWindow) return;
  o.first = flow_.next();
  o.psns = psns;
  send_.Start(index);
}

bool Requester::MustWait(const QpContext& qp, const SendEntry& o) const {
  const bool starts = flow_.next() == o.first;
  if (starts && (o.request.flags & ROCEGW_WQE_FENCE) != 0 && !awaited_.empty()) return true;
  if (starts && (o.request.flags & ROCEGW_WQE_FENCE_ALL) != 0 && &o != &send_.At(send_.head()))
    return true;
  return o.request.has_own_answer() && awaited_.size() >= qp.attributes.max_rd_atomic;
}

PumpResult Requester::Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget) {
  paced_until_ = kNever;
  if (!qp.sends()) return PumpResult::kIdle;
  if (rnr_waiting_) {
    if (now < rnr_until_) return PumpResult::kBlocked;
    rnr_waiting_ = false;
    flow_.RestartTimer(now);
  }
  while (budget.left()) {
    SendEntry* o = Current(qp, outbox);
    if (o == nullptr) {
      send_.Retire(qp, outbox);
      return PumpResult::kIdle;
    }
    if (!o->started) {
      if (qp.state() == verbs::QpState::kSqd) return PumpResult::kIdle;
      if (o->request.is_local()) {
        if (cursor_ == send_.head()) {
          send_.ActLocally(qp, cursor_);
          send_.Retire(qp, outbox);
          budget.Take(0);
          continue;
        }
        // No acknowledgement is requested yet: ask for one.
        if (since_ack_request_ != 0 && awaited_.empty()) {
          since_ack_request_ = 0;
          SendProbe(qp, outbox, now);
        }
        return PumpResult::kBlocked;
      }
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
        if (const TimePoint again = flow_.earliest(); again > now) paced_until_ = again;
        return PumpResult::kBlocked;
      case Sent::kFailed:
        break;
    }
  }
  return PumpResult::kMore;
}

Requester::Sent Requester::SendOne(QpContext& qp, Outbox& outbox, SendEntry& o, TimePoint now) {
  if (o.request.opcode == verbs::SendOpcode::kRead) return SendRead(qp, outbox, o, now);
  if (o.request.is_atomic()) return SendAtomic(qp, outbox, o, now);
  if (o.request.is_placement()) return SendPlacement(qp, outbox, o, now);
  return SendData(qp, outbox, o, flow_.next(), false, now);
}

bool Requester::WantsAck(QpContext& qp, const SendEntry& o, bool last, uint32_t bytes,
                         TimePoint now) {
  ++since_ack_request_;
  const bool signaled =
      qp.config.signal_all || (o.request.flags & (ROCEGW_WQE_SIGNALED | ROCEGW_WQE_SOLICITED)) != 0;
  // After the last packet, the next to send may be a whole piece of a READ.
  const uint64_t next = last ? kReadChunk : bytes;
  const bool wants = (last && (signaled || qp.sq().Check() == shm::WorkQueue::Look::kEmpty)) ||
                     since_ack_request_ >= kAckEvery || !flow_.HasRoom(bytes + next, now) ||
                     PsnBefore(flow_.next(), flow_.max());
  if (wants) since_ack_request_ = 0;
  return wants;
}

void Requester::Account(QpContext& qp, uint32_t psns, uint64_t bytes, uint64_t leaves,
                        TimePoint now) {
  if (flow_.OnSent(psns, bytes, leaves, now)) {
    qp.worker->counters.retransmit_packets.Add();
    ++qp.retransmits;
  } else {
    qp.worker->counters.request_tx_packets.Add();
    qp.CountBytesSent(bytes);
  }
}

Requester::Sent Requester::SendData(QpContext& qp, Outbox& outbox, SendEntry& o, Psn psn,
                                    bool probe, TimePoint now) {
  const verbs::SendRequest& request = o.request;
  const uint32_t offset = OffsetOf(qp, o, psn);
  const uint32_t bytes = std::min(qp.mtu(), request.length - offset);
  const bool last = psn + 1 == o.end();
  if (!probe && !flow_.MaySend(bytes, now)) return Sent::kGateClosed;

  SendPieces from;
  if (!send_.Find(qp, request.ring_slot, offset, bytes, from)) return Sent::kFailed;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return Sent::kPortFull;

  wire::Headers headers;
  headers.bth.opcode = DataOpcode(wire::Service::kRc, request, psn == o.first, last);
  headers.bth.psn = psn;
  headers.xrc_srq = request.peer;
  headers.bth.solicited = last && (request.flags & ROCEGW_WQE_SOLICITED) != 0;
  headers.bth.ack_request = probe || WantsAck(qp, o, last, bytes, now);
  headers.immediate = request.immediate;
  headers.invalidate_rkey = request.immediate;
  headers.reth = {request.remote_address, request.rkey, request.length};
  uint8_t* body = BuildPacket(qp, headers, bytes, *packet);
  const bool again = probe || PsnBefore(psn, flow_.max());
  send_.Fill(qp, outbox, request.ring_slot, offset, bytes, from, psn, body, *packet,
             again ? PayloadUse::kCopy : PayloadUse::kMayRefer);
  outbox.Send(qp, packet);
  if (!probe) Account(qp, 1, bytes, bytes, now);
  return Sent::kYes;
}

Requester::Sent Requester::SendRead(QpContext& qp, Outbox& outbox, SendEntry& o, TimePoint now) {
  const uint32_t offset = OffsetOf(qp, o, flow_.next());
  // A repeated READ keeps the piece boundaries: a responder answers repetitions of what it
  // remembers, and that is one piece.
  const uint32_t bytes = std::min(kReadChunk - offset % kReadChunk, o.request.length - offset);
  const uint32_t psns = std::max<uint32_t>(1, (bytes + qp.mtu() - 1) / qp.mtu());
  if (!flow_.MaySend(bytes, now)) return Sent::kGateClosed;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return Sent::kPortFull;
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kRcReadRequest;
  headers.xrc_srq = o.request.peer;
  headers.bth.psn = flow_.next();
  headers.bth.ack_request = true;
  headers.reth = {o.request.remote_address + offset, o.request.rkey, bytes};
  BuildPacket(qp, headers, 0, *packet);
  outbox.Send(qp, packet);
  awaited_.push_back({flow_.next(), flow_.next() + psns, o.request.ring_slot});
  Account(qp, psns, bytes, 0, now);
  return Sent::kYes;
}

Requester::Sent Requester::SendAtomic(QpContext& qp, Outbox& outbox, SendEntry& o, TimePoint now) {
  if (!flow_.MaySend(8, now)) return Sent::kGateClosed;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return Sent::kPortFull;
  const bool swap = o.request.opcode == verbs::SendOpcode::kCompareSwap;
  wire::Headers headers;
  headers.bth.opcode = swap ? wire::Opcode::kRcCompareSwap : wire::Opcode::kRcFetchAdd;
  headers.xrc_srq = o.request.peer;
  headers.bth.psn = flow_.next();
  headers.bth.ack_request = true;
  headers.atomic = {o.request.remote_address, o.request.rkey,
                    swap ? o.request.swap : o.request.compare_add,
                    swap ? o.request.compare_add : 0};
  BuildPacket(qp, headers, 0, *packet);
  outbox.Send(qp, packet);
  awaited_.push_back({flow_.next(), flow_.next() + 1, o.request.ring_slot});
  Account(qp, 1, 8, 8, now);
  return Sent::kYes;
}

// Sends FLUSH or ATOMIC WRITE: one packet, answered by a READ response without data (IBTA annex
// A19).
Requester::Sent Requester::SendPlacement(QpContext& qp, Outbox& outbox, SendEntry& o,
                                         TimePoint now) {
  const verbs::SendRequest& request = o.request;
  const uint32_t bytes = request.length;
  if (!flow_.MaySend(bytes, now)) return Sent::kGateClosed;
  SendPieces from;
  if (!send_.Find(qp, request.ring_slot, 0, bytes, from)) return Sent::kFailed;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return Sent::kPortFull;
  const bool flush = request.opcode == verbs::SendOpcode::kFlush;
  const Psn psn = flow_.next();
  wire::Headers headers;
  headers.bth.opcode = flush ? wire::Opcode::kRcFlush : wire::Opcode::kRcAtomicWrite;
  headers.bth.psn = psn;
  headers.bth.ack_request = true;
  headers.feth = request.feth();
  headers.reth = {request.remote_address, request.rkey, request.remote_length()};
  uint8_t* body = BuildPacket(qp, headers, bytes, *packet);
  send_.Fill(qp, outbox, request.ring_slot, 0, bytes, from, psn, body, *packet, PayloadUse::kCopy);
  outbox.Send(qp, packet);
  awaited_.push_back({psn, psn + 1, request.ring_slot});
  Account(qp, 1, bytes, bytes, now);
  return Sent::kYes;
}

void Requester::SendProbe(QpContext& qp, Outbox& outbox, TimePoint now) {
  for (uint32_t i = send_.head(); i != send_.tail() && send_.At(i).started; ++i) {
    SendEntry& o = send_.At(i);
    if (o.answered || o.request.is_local()) continue;
    if (o.request.has_own_answer() || o.failed != verbs::WcStatus::kSuccess) break;
    qp.worker->counters.tail_probe_events.Add();
    SendData(qp, outbox, o, flow_.una(), true, now);
    return;
  }
  // A lost READ, atomic or placement response is requested again, with all requests behind it.
  flow_.Rewind();
  SyncWithFlow();
}

void Requester::OnDeadline(QpContext& qp, Outbox& outbox, TimePoint now) {
  if (paced_until_ <= now) paced_until_ = kNever;
  if (rnr_waiting_ || !qp.sends()) return;
  switch (flow_.OnDeadline(now)) {
    case flow::LossVerdict::kNothing:
      return;
    case flow::LossVerdict::kProbe:
      SendProbe(qp, outbox, now);
      return;
    case flow::LossVerdict::kRewind:
      qp.worker->counters.timeout_events.Add();
      SyncWithFlow();
      return;
    case flow::LossVerdict::kRetriesSpent:
      qp.worker->counters.timeout_events.Add();
      send_.Fail(qp, verbs::WcStatus::kRetryExceeded);
      return;
  }
}

TimePoint Requester::deadline() const {
  return rnr_waiting_ ? rnr_until_ : Earlier(flow_.deadline(), paced_until_);
}

}  // namespace rocegw::transport
