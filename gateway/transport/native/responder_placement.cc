// SPDX-License-Identifier: Apache-2.0
// Memory placement extensions (IBTA annex A19) of the responder. FLUSH and ATOMIC WRITE are
// answered with a READ response without data, after everything that was placed before.
#include <cstring>

#include "gateway/transport/native/responder.h"
#include "gateway/transport/placement.h"

namespace rocegw::transport {

using metrics::DropReason;
using wire::NakCode;

namespace {

// Limit of queued answers to FLUSH. The protocol does not announce a number of outstanding FLUSHes.
// Linux rxe does not count them as READs, and has at most 128 packets in flight.
constexpr size_t kMostFlushes = 128;

PlacementRequest RequestOf(const wire::RxPacket& packet) {
  const wire::Reth& reth = packet.headers.reth;
  return {reth.address, reth.rkey, reth.length, packet.headers.feth};
}

}  // namespace

DropReason Responder::ExecuteAtomicWrite(QpContext& qp, Outbox& outbox,
                                         const wire::RxPacket& packet) {
  const Psn psn = packet.headers.bth.psn;
  if (TooManyReads(qp, false)) return Refuse(qp, outbox, psn, NakCode::kInvalidRequest);
  verbs::RemotePlace place;
  if (const auto refused = CheckAtomicWrite(qp, RequestOf(packet), place))
    return Refuse(qp, outbox, psn, *refused);
  uint64_t value;
  std::memcpy(&value, packet.payload.data(), sizeof value);
  StoreAtomically(qp, outbox, place, value, {.purpose = AccessPurpose::kWrite, .psn = psn});
  placement_ticket_ = qp.tickets_issued;
  qp.CountBytesReceived(sizeof value);
  Remembered& memory = Remember(packet, 1);
  Advance(qp, packet, 1);
  memory.msn = msn_;
  QueueAtomicWrite(qp, memory);
  return DropReason::kNone;
}

DropReason Responder::ExecuteFlush(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet) {
  const Psn psn = packet.headers.bth.psn;
  if (TooManyFlushes()) return Refuse(qp, outbox, psn, NakCode::kInvalidRequest);
  if (const auto refused = CheckFlush(qp, RequestOf(packet)))
    return Refuse(qp, outbox, psn, *refused);
  Advance(qp, packet, 1);
  QueueFlush(qp, psn);
  return DropReason::kNone;
}

// Answers a repeated FLUSH without checks: the first one was allowed, and the answer waits for at
// least the same writes.
DropReason Responder::OnDuplicateFlush(QpContext& qp, const wire::RxPacket& packet) {
  if (!qp.config.placement) return DropReason::k_duplicate_invalid;
  DropRepliesFrom(packet.headers.bth.psn);
  if (TooManyFlushes()) return DropReason::k_duplicate_invalid;
  QueueFlush(qp, packet.headers.bth.psn);
  return DropReason::k_duplicate_request;
}

bool Responder::TooManyFlushes() const {
  size_t count = 0;
  for (size_t i = 0; i < replies_.size(); ++i) count += replies_[i].kind == ReplyKind::kFlush;
  return count >= kMostFlushes;
}

void Responder::QueueAtomicWrite(const QpContext& qp, const Remembered& memory) {
  replies_.push_back({.kind = ReplyKind::kAtomicWrite,
                      .psn = memory.first,
                      .msn = memory.msn,
                      .ticket = Placed(qp)});
}

void Responder::QueueFlush(const QpContext& qp, Psn psn) {
  replies_.push_back({.kind = ReplyKind::kFlush, .psn = psn, .msn = msn_, .ticket = Placed(qp)});
}

Responder::Replied Responder::SendEmptyResponse(QpContext& qp, Outbox& outbox, const Reply& reply) {
  if (!SendBare(qp, outbox, reply, wire::Opcode::kRcReadResponseOnly)) return Replied::kPortFull;
  qp.worker->counters.read_response_tx_packets.Add();
  return Replied::kDone;
}

}  // namespace rocegw::transport
