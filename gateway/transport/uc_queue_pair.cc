// SPDX-License-Identifier: Apache-2.0
// Unreliable connections (IBTA 9.8.2): SENDs and WRITEs in order to one peer. They complete when
// they have left; nothing is acknowledged. A message with a missing or invalid packet is dropped
// silently, and its receive is used for the next message.
#include <algorithm>

#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/native/incoming_write.h"
#include "gateway/transport/native/message_position.h"
#include "gateway/transport/native/native_packet.h"
#include "gateway/transport/queue_pair.h"
#include "gateway/transport/queues/completion.h"
#include "gateway/transport/queues/receive_queue.h"
#include "gateway/transport/queues/send_queue.h"

namespace rocegw::transport {
namespace {

using metrics::DropReason;
using verbs::WcStatus;

class UcQueuePair final : public QueuePair {
 public:
  explicit UcQueuePair(const verbs::QpConfig& config) : QueuePair(config) {
    send_.SetSize(config.sq_entries, config.max_send_sge);
  }

  uint32_t outstanding() const override { return send_.size(); }
  Psns psns() const override { return {next_, next_, expected_}; }
  void GiveBackReceives() override { (void)receives_.Reset(qp_); }

 protected:
  bool DoReset() override {
    const bool sends = send_.Reset(qp_);
    const bool receives = receives_.Reset(qp_);
    cursor_ = send_.head();
    open_ = MessageKind::kNone;
    dropping_ = established_ = false;
    return sends && receives;
  }
  void DoReadyToReceive(TimePoint) override {
    expected_ = qp_.attributes.rq_psn;
    placement_ticket_ = qp_.tickets_issued;
  }
  void DoReadyToSend(TimePoint) override { next_ = qp_.attributes.sq_psn; }
  bool Drained() const override { return send_.drained(); }
  void DoFlush(Outbox& outbox) override {
    send_.Flush(qp_, outbox);
    receives_.Flush(qp_, outbox, qp_.tickets_issued);
  }
  PumpResult DoPump(Outbox& outbox, TimePoint now, PumpBudget& budget) override;
  PumpResult PumpLast(Outbox& outbox, TimePoint now, PumpBudget& budget) override {
    return DoPump(outbox, now, budget);
  }
  DropReason DoPacket(Outbox& outbox, const wire::RxPacket& packet, TimePoint now) override;
  void DoMemoryDone(Outbox& outbox) override {
    receives_.OnMemoryDone(qp_, outbox);
    send_.OnMemoryDone(qp_, outbox);
  }
  void DoMemoryFault(Outbox& outbox, const AccessTag& tag) override;
  void DoHandOver(hand_over::StateStream& state, flow::CarrierNames&) override {
    receives_.HandOver(state, qp_);
    send_.HandOver(state, qp_);
    state(cursor_, next_, expected_);
    state.Enum(open_, MessageKind::kWrite);
    state(dropping_, established_, placement_ticket_);
    write_.HandOver(state);
    if (!state.reading()) return;
    state.Require(
        static_cast<int32_t>(cursor_ - send_.head()) <= static_cast<int32_t>(send_.size()),
        "requests do not match");
    for (uint32_t i = send_.head(); state.ok() && i != send_.tail(); ++i) {
      state.Require(send_.At(i).sent <= send_.At(i).request.length, "request is impossible");
    }
    // A receive stays open after its message broke, for the next one.
    state.Require(open_ != MessageKind::kSend || receives_.IsOpen(receives_.first()),
                  "message has no receive");
  }

 private:
  enum class Sent : uint8_t { kYes, kPortFull, kFailed };
  SendEntry* Current(Outbox& outbox);
  Sent SendOne(Outbox& outbox, SendEntry& entry);
  DropReason Execute(Outbox& outbox, const wire::RxPacket& packet);
  DropReason ExecuteSend(Outbox& outbox, const wire::RxPacket& packet);
  DropReason ExecuteWrite(Outbox& outbox, const wire::RxPacket& packet);
  DropReason TakeReceive(Outbox& outbox, bool into_it);
  void Close(Outbox& outbox, const wire::RxPacket& packet, uint32_t length, bool in_ring);
  void Break(Outbox& outbox);
  // Drops the packet and the rest of its message.
  DropReason Drop(DropReason reason) {
    open_ = MessageKind::kNone;
    dropping_ = true;
    return reason;
  }

  SendQueue send_;
  ReceiveQueue receives_;
  uint32_t cursor_ = 0;  // request that is being sent, or the next one
  Psn next_;
  Psn expected_;
  MessageKind open_ = MessageKind::kNone;  // kind of the message that is being received
  bool dropping_ = false;                  // until the next message begins
  bool established_ = false;
  uint32_t placement_ticket_ = 0;
  IncomingWrite write_;
};

DropReason ReasonOf(IncomingWrite::Refusal refusal) {
  return refusal == IncomingWrite::Refusal::kAccess ? DropReason::k_access_error
                                                    : DropReason::k_invalid_request;
}

// Returns the request to send next; nullptr: none for now.
SendEntry* UcQueuePair::Current(Outbox& outbox) {
  if (static_cast<int32_t>(cursor_ - send_.head()) < 0) cursor_ = send_.head();
  const bool drains = qp_.state() == verbs::QpState::kSqd;
  if (cursor_ == send_.tail() && (drains || !send_.FetchOne(qp_, outbox))) return nullptr;
  SendEntry& entry = send_.At(cursor_);
  if (entry.failed != WcStatus::kSuccess) return nullptr;
  if (!entry.started) {
    const bool local = entry.request.is_local();
    if (drains || (local && cursor_ != send_.head())) return nullptr;
    if (!local && !send_.Check(qp_, cursor_)) return nullptr;
    if (!local) send_.Start(cursor_);
  }
  return &entry;
}

PumpResult UcQueuePair::DoPump(Outbox& outbox, TimePoint, PumpBudget& budget) {
  if (!qp_.sends()) return PumpResult::kIdle;
  while (budget.left()) {
    SendEntry* const entry = Current(outbox);
    if (entry == nullptr) {
      send_.Retire(qp_, outbox);
      return PumpResult::kIdle;
    }
    const uint32_t before = entry->sent;
    const Sent sent = SendOne(outbox, *entry);
    if (sent == Sent::kPortFull) return PumpResult::kMore;
    if (sent == Sent::kFailed) continue;
    budget.Take(entry->sent - before);
    if (!entry->answered) continue;
    ++cursor_;
    send_.Retire(qp_, outbox);
    if (!qp_.sends()) return PumpResult::kIdle;
  }
  return PumpResult::kMore;
}

UcQueuePair::Sent UcQueuePair::SendOne(Outbox& outbox, SendEntry& entry) {
  const verbs::SendRequest& request = entry.request;
  if (request.is_local()) {
    send_.ActLocally(qp_, cursor_);
    return entry.answered ? Sent::kYes : Sent::kFailed;
  }
  const uint32_t bytes = std::min(qp_.mtu(), request.length - entry.sent);
  const bool last = entry.sent + bytes == request.length;
  SendPieces from;
  if (!send_.Find(qp_, cursor_, entry.sent, bytes, from)) return Sent::kFailed;
  port::TxPacket* const packet = outbox.NewPacket(qp_);
  if (packet == nullptr) return Sent::kPortFull;
  wire::Headers headers;
  headers.bth.opcode = DataOpcode(wire::Service::kUc, request, entry.sent == 0, last);
  headers.bth.psn = next_;
  headers.bth.solicited = last && (request.flags & ROCEGW_WQE_SOLICITED) != 0;
  headers.immediate = request.immediate;
  headers.reth = {request.remote_address, request.rkey, request.length};
  uint8_t* const body = BuildPacket(qp_, headers, bytes, *packet);
  send_.Fill(qp_, outbox, cursor_, entry.sent, bytes, from, next_, body, *packet,
             PayloadUse::kCopy);
  outbox.Send(qp_, packet);
  next_ = next_ + 1;
  entry.sent += bytes;
  qp_.CountBytesSent(bytes);
  qp_.worker->counters.request_tx_packets.Add();
  if (last) {
    // The buffers belong to the program again once they were read.
    entry.ticket = qp_.tickets_issued;
    entry.has_ticket = true;
    send_.Answer(qp_, cursor_);
  }
  return Sent::kYes;
}

DropReason UcQueuePair::DoPacket(Outbox& outbox, const wire::RxPacket& packet, TimePoint) {
  if (packet.traits->service != wire::Service::kUc) return DropReason::k_wrong_service;
  if (!qp_.receives()) return DropReason::k_qp_state;
  if (!qp_.IsFromPeer(packet.meta)) return DropReason::k_wrong_address;
  if (!established_) {
    established_ = true;
    if (qp_.state() == verbs::QpState::kRtr) outbox.Event(qp_, verbs::AsyncEvent::kCommEstablished);
  }
  const bool gap = packet.headers.bth.psn != expected_;
  expected_ = packet.headers.bth.psn + 1;
  if (packet.traits->starts_message()) {
    // An open message has lost its last packet.
    open_ = MessageKind::kNone;
    dropping_ = false;
  } else if (gap || dropping_) {
    return Drop(DropReason::k_sequence_gap);
  }
  if (!Continues(*packet.traits, open_) || !HasProperLength(packet, qp_.mtu()))
    return Drop(DropReason::k_invalid_request);
  return Execute(outbox, packet);
}

DropReason UcQueuePair::Execute(Outbox& outbox, const wire::RxPacket& packet) {
  const DropReason reason = KindOf(*packet.traits) == MessageKind::kSend
                                ? ExecuteSend(outbox, packet)
                                : ExecuteWrite(outbox, packet);
  if (reason != DropReason::kNone) return Drop(reason);
  open_ = packet.traits->ends_message() ? MessageKind::kNone : KindOf(*packet.traits);
  return DropReason::kNone;
}

// Opens a receive, unless a dropped message has left one open.
DropReason UcQueuePair::TakeReceive(Outbox& outbox, bool into_it) {
  if (receives_.first() == receives_.next()) {
    switch (receives_.Open(qp_, outbox)) {
      case shm::WorkQueue::Look::kFault:
        return DropReason::k_operation_error;
      case shm::WorkQueue::Look::kEmpty:
        return DropReason::k_ud_no_receive;
      case shm::WorkQueue::Look::kReady:
        break;
    }
  }
  OpenReceive& receive = receives_.At(receives_.first());
  receive.received = 0;
  WcStatus status = receive.status;
  if (status == WcStatus::kSuccess && into_it && !receives_.Writable(qp_, receives_.first()))
    status = WcStatus::kLocalProtection;
  if (status == WcStatus::kSuccess) return DropReason::kNone;
  receives_.CloseFailed(qp_, status, placement_ticket_);
  qp_.worker->counters.wqe_bad_requests.Add();
  Break(outbox);
  return DropReason::k_operation_error;
}

void UcQueuePair::Close(Outbox& outbox, const wire::RxPacket& packet, uint32_t length,
                        bool in_ring) {
  receives_.CloseReceived(qp_, outbox,
                          {.write = packet.traits->operation == wire::Operation::kWrite,
                           .has_immediate = packet.traits->has_immediate,
                           .solicited = packet.headers.bth.solicited,
                           .in_ring = in_ring,
                           .length = length,
                           .immediate = packet.headers.immediate},
                          placement_ticket_);
}

DropReason UcQueuePair::ExecuteSend(Outbox& outbox, const wire::RxPacket& packet) {
  const auto length = static_cast<uint32_t>(packet.payload.size());
  if (packet.traits->starts_message()) {
    const DropReason reason = TakeReceive(outbox, true);
    if (reason != DropReason::kNone) return reason;
  }
  const uint32_t number = receives_.first();
  OpenReceive& receive = receives_.At(number);
  if (uint64_t{receive.received} + length > receive.request.capacity)
    return DropReason::k_invalid_request;
  const bool in_ring =
      packet.traits->position == wire::Position::kOnly && receives_.FitsRing(qp_, number, length);
  if (in_ring) {
    receives_.PlaceInRing(qp_, number, packet.payload);
  } else if (!receives_.Place(qp_, outbox, number, receive.received, packet.payload,
                              {.psn = packet.headers.bth.psn}, placement_ticket_)) {
    receives_.CloseFailed(qp_, WcStatus::kLocalProtection, placement_ticket_);
    Break(outbox);
    return DropReason::k_operation_error;
  }
  receive.received += length;
  qp_.CountBytesReceived(length);
  if (packet.traits->ends_message()) Close(outbox, packet, receive.received, in_ring);
  return DropReason::kNone;
}

DropReason UcQueuePair::ExecuteWrite(Outbox& outbox, const wire::RxPacket& packet) {
  const IncomingWrite::Refusal refusal = write_.Admit(qp_, packet);
  if (refusal != IncomingWrite::Refusal::kNone) return ReasonOf(refusal);
  if (packet.traits->has_immediate) {
    const DropReason reason = TakeReceive(outbox, false);
    if (reason != DropReason::kNone) return reason;
  }
  if (write_.Place(qp_, outbox, packet) != IncomingWrite::Refusal::kNone)
    return DropReason::k_access_error;
  if (!packet.payload.empty()) placement_ticket_ = qp_.tickets_issued;
  if (packet.traits->has_immediate) Close(outbox, packet, write_.length(), false);
  return DropReason::kNone;
}

void UcQueuePair::Break(Outbox& outbox) {
  if (qp_.EnterError()) outbox.Event(qp_, verbs::AsyncEvent::kQpFatal);
}

void UcQueuePair::DoMemoryFault(Outbox& outbox, const AccessTag& tag) {
  qp_.worker->counters.memory_fault_operations.Add();
  if (tag.purpose == AccessPurpose::kSendPayload) {
    if (send_.Holds(tag.request)) send_.At(tag.request).failed = WcStatus::kLocalProtection;
    send_.Retire(qp_, outbox);
    return;
  }
  receives_.OnFault(qp_, tag, placement_ticket_);
  Break(outbox);
}

}  // namespace

std::unique_ptr<QueuePair> MakeUcQueuePair(const verbs::QpConfig& config) {
  return std::make_unique<UcQueuePair>(config);
}

}  // namespace rocegw::transport
