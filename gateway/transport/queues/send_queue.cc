// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/queues/send_queue.h"

#include <memory>

#include "gateway/transport/queues/completion.h"
#include "gateway/wire/crc/icrc.h"

namespace rocegw::transport {

using verbs::WcStatus;

void SendQueue::SetSize(uint32_t entries, uint32_t max_sge) {
  Reserve(entries, max_sge);
  mask_ = static_cast<uint16_t>(entries - 1);
  stride_ = static_cast<uint8_t>(LinesOf(max_sge));
  max_sge_ = static_cast<uint8_t>(max_sge);
}

void SendQueue::Reserve(uint32_t entries, uint32_t max_sge) {
  const uint32_t lines = entries * LinesOf(max_sge);
  if (lines <= room_) return;
  // Entries are constructed when they are fetched.
  ring_ = std::make_unique_for_overwrite<Line[]>(lines);
  room_ = lines;
}

bool SendQueue::Reset(QpContext& qp) {
  const bool possible = qp.sq().Discard();
  head_ = tail_ = qp.sq().fetched();
  reading_ = 0;
  flushing_ = false;
  early_.clear();
  return possible;
}

bool SendQueue::FetchOne(QpContext& qp, Outbox& outbox) {
  switch (qp.sq().Check()) {
    case shm::WorkQueue::Look::kEmpty:
      return false;
    case shm::WorkQueue::Look::kFault:
      outbox.Fault(qp, "send queue producer index out of range");
      return false;
    case shm::WorkQueue::Look::kReady:
      break;
  }
  const uint8_t* slot = qp.sq().Slot();
  tail_ = qp.sq().Fetch() + 1;
  SendEntry& entry = At(tail_ - 1);
  std::construct_at(&entry);
  entry.taken = SendEntry::TicksAt(outbox.now());
  entry.failed =
      verbs::ParseSend(qp.config, qp.payload, slot, tail_ - 1, entry.request, SgesOf(tail_ - 1));
  qp.worker->counters.wqe_send_requests.Add();
  if (entry.failed != WcStatus::kSuccess) qp.worker->counters.wqe_bad_requests.Add();
  return true;
}

bool SendQueue::Check(QpContext& qp, uint32_t index) {
  SendEntry& entry = At(index);
  const verbs::SendRequest& request = entry.request;
  if (request.ring_payload == nullptr || (request.flags & ROCEGW_WQE_COPIED) != 0) {
    const uint32_t access = request.reads_remote() ? uint32_t{verbs::kAccessLocalWrite} : 0;
    if (!verbs::CheckKeys(qp.worker->regions, qp.config.send_keys(), ListOf(index), access))
      entry.failed = WcStatus::kLocalProtection;
  }
  if (entry.failed == WcStatus::kSuccess && request.has_own_answer() &&
      qp.attributes.max_rd_atomic == 0 && qp.config.type != verbs::QpType::kEndpoint) {
    entry.failed = WcStatus::kLocalQpOperation;
  }
  return entry.failed == WcStatus::kSuccess;
}

// Executes a bind or invalidation. Remote accesses by the old key are done before this one
// completes.
void SendQueue::ActLocally(QpContext& qp, uint32_t index) {
  SendEntry& entry = At(index);
  const verbs::SendRequest& request = entry.request;
  const bool binds = request.opcode == verbs::SendOpcode::kBindMw;
  const bool done = binds ? qp.worker->regions.Bind(qp.user(), request.bind())
                          : qp.worker->regions.Invalidate(qp.user(), MemoryKey{request.immediate});
  entry.started = entry.handed_over = true;
  entry.ticket = qp.tickets_issued;
  entry.has_ticket = true;
  if (done) {
    Answer(qp, index);
  } else {
    entry.failed = binds ? WcStatus::kMwBind : WcStatus::kLocalQpOperation;
  }
}

void SendQueue::TakeBackBegun() {
  for (uint32_t i = head_; i != tail_; ++i) {
    SendEntry& entry = At(i);
    // A local request does not depend on the transport.
    if (entry.request.is_local()) continue;
    entry.started = entry.handed_over = false;
    entry.sent = 0;
  }
  reading_ = 0;
}

bool SendQueue::Find(QpContext& qp, uint32_t index, uint32_t offset, uint32_t length,
                     SendPieces& from) {
  from.count = 0;
  SendEntry& entry = At(index);
  if (entry.request.ring_payload != nullptr || length == 0) return true;
  const bool whole =
      verbs::WalkPieces(qp.worker->regions, qp.config.send_keys(), ListOf(index), 0, offset, length,
                        [&](const verbs::Piece& piece) { from.pieces[from.count++] = piece; });
  if (!whole) entry.failed = WcStatus::kLocalProtection;
  return whole;
}

void SendQueue::Fill(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset,
                     uint32_t length, const SendPieces& from, Psn psn, uint8_t* body,
                     port::TxPacket& packet, PayloadUse use) {
  const verbs::SendRequest& request = At(index).request;
  if (request.ring_payload != nullptr) {
    const uint32_t crc = wire::CrcCopy(0, body, request.ring_payload + offset, length);
    packet.known_crc = {static_cast<size_t>(body - packet.data), length, crc};
    qp.worker->counters.memory_ring_operations.Add();
  }
  if (use == PayloadUse::kMayRefer && from.count == 1 && length >= packet.outside_from &&
      from.pieces[0].direct != nullptr) {
    packet.outside = {from.pieces[0].direct, static_cast<uint32_t>(body - packet.data), length};
    return;
  }
  for (size_t i = 0; i < from.count; ++i) {
    const verbs::Piece& piece = from.pieces[i];
    const memory::MemoryOp op{.kind = memory::OpKind::kRead,
                              .want_crc = from.count == 1,
                              .length = piece.length,
                              .address = piece.address,
                              .direct = piece.direct,
                              .buffer = body + piece.offset};
    outbox.Access(qp, op, {qp.handle, ++qp.tickets_issued, AccessPurpose::kSendPayload, psn, index},
                  &packet);
  }
}

bool SendQueue::Place(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset,
                      std::span<const uint8_t> bytes, AccessTag tag) {
  if (bytes.empty()) return true;
  SendEntry& entry = At(index);
  tag.qp = qp.handle;
  tag.request = index;
  const bool whole = verbs::WalkPieces(
      qp.worker->regions, qp.config.send_keys(), ListOf(index), verbs::kAccessLocalWrite, offset,
      static_cast<uint32_t>(bytes.size()), [&](const verbs::Piece& piece) {
        const memory::MemoryOp op{.kind = memory::OpKind::kWrite,
                                  .length = piece.length,
                                  .address = piece.address,
                                  .direct = piece.direct,
                                  .buffer = const_cast<uint8_t*>(bytes.data()) + piece.offset};
        tag.ticket = ++qp.tickets_issued;
        outbox.Access(qp, op, tag, nullptr);
        entry.ticket = qp.tickets_issued;
        entry.has_ticket = true;
      });
  if (!whole) entry.failed = WcStatus::kLocalProtection;
  return whole;
}

SendQueue::Taken SendQueue::TakeReadPart(QpContext& qp, Outbox& outbox, uint32_t index,
                                         const wire::ChannelFrame& frame,
                                         std::span<const uint8_t> payload) {
  SendEntry& entry = At(index);
  const auto bytes = static_cast<uint32_t>(payload.size());
  if (entry.request.opcode != verbs::SendOpcode::kRead || frame.length != entry.request.length ||
      bytes > frame.length - entry.received || (bytes == 0 && frame.length != 0)) {
    return Taken::kMalformed;
  }
  qp.CountBytesReceived(bytes);
  Place(qp, outbox, index, frame.offset, payload, {.purpose = AccessPurpose::kReadPlacement});
  entry.received += bytes;
  return entry.received == frame.length ? Taken::kWhole : Taken::kPart;
}

SendQueue::Taken SendQueue::TakeAtomicResult(QpContext& qp, Outbox& outbox, uint32_t index,
                                             uint64_t original) {
  SendEntry& entry = At(index);
  if (!entry.request.is_atomic()) return Taken::kMalformed;
  // The placement refers to the result in the request entry.
  entry.request.compare_add = original;
  Place(qp, outbox, index, 0, {reinterpret_cast<const uint8_t*>(&entry.request.compare_add), 8},
        {.purpose = AccessPurpose::kAtomicPlacement});
  return Taken::kWhole;
}

void SendQueue::Answer(const QpContext& qp, uint32_t index) {
  At(index).answered = true;
  if (!qp.config.any_completion_order) return;
  early_.push_back(index);
}

// Completes the oldest request.
void SendQueue::Complete(QpContext& qp, Outbox& outbox, WcStatus status) {
  const SendEntry& entry = At(head_);
  if (entry.started && entry.request.has_own_answer()) --reading_;
  ++head_;
  qp.sq().Release(head_);
  if (!entry.completed) WriteCompletion(qp, outbox, entry, status);
}

void SendQueue::WriteCompletion(QpContext& qp, Outbox& outbox, const SendEntry& entry,
                                WcStatus status) {
  if (status == WcStatus::kSuccess) {
    const uint32_t ticks = SendEntry::TicksAt(outbox.now()) - entry.taken;
    outbox.Completed(qp, SendEntry::kTick * ticks);
  }
  // Nothing has confirmed that the packets of a request without success have left.
  if (status != WcStatus::kSuccess) outbox.CopyPayloads();
  const bool signaled = qp.config.signal_all || (entry.request.flags & ROCEGW_WQE_SIGNALED) != 0;
  if (status == WcStatus::kSuccess && !signaled) {
    qp.CountSendCompleted();
    return;
  }
  rocegw_cqe cqe = MakeCompletion(qp, status, entry.request.wr_id, entry.request.ring_slot);
  cqe.opcode = static_cast<uint8_t>(CompletionOpcode(entry.request.opcode));
  if (status == WcStatus::kSuccess) cqe.byte_length = entry.request.length;
  if (!PushSend(qp, outbox, cqe)) Fail(qp, WcStatus::kGeneral);
}

void SendQueue::Conclude(const QpContext& qp, uint32_t index, WcStatus status) {
  At(index).failed = status;
  Answer(qp, index);
}

void SendQueue::RetireEach(QpContext& qp, Outbox& outbox) {
  CompleteEarly(qp, outbox, true);
  while (head_ != tail_ && qp.state() != verbs::QpState::kError) {
    const WcStatus status = At(head_).failed;
    if (status == WcStatus::kSuccess && !At(head_).answered) return;
    if (!IsPlaced(qp, head_)) return;
    Complete(qp, outbox, status);
  }
}

void SendQueue::CompleteEarly(QpContext& qp, Outbox& outbox, bool failed_ones) {
  if (!qp.config.any_completion_order) return;
  while (!early_.empty() && qp.state() != verbs::QpState::kError) {
    const uint32_t index = early_.front();
    if (Holds(index) && (failed_ones || At(index).failed == WcStatus::kSuccess)) {
      SendEntry& entry = At(index);
      if (!IsPlaced(qp, index)) return;
      entry.completed = true;
      WriteCompletion(qp, outbox, entry, entry.failed);
    }
    early_.pop_front();
  }
}

void SendQueue::Retire(QpContext& qp, Outbox& outbox) {
  CompleteEarly(qp, outbox, false);
  while (head_ != tail_ && qp.state() != verbs::QpState::kError) {
    const SendEntry& entry = At(head_);
    if (entry.failed != WcStatus::kSuccess) {
      Fail(qp, entry.failed);
      return;
    }
    if (!entry.answered || !IsPlaced(qp, head_)) return;
    Complete(qp, outbox, WcStatus::kSuccess);
  }
}

void SendQueue::Fail(QpContext& qp, WcStatus status) {
  if (!qp.EnterError()) return;
  uint32_t i = head_;
  while (i != tail_ && At(i).answered && At(i).failed == WcStatus::kSuccess) ++i;
  if (i != tail_) At(i).failed = status;
}

void SendQueue::Flush(QpContext& qp, Outbox& outbox) {
  if (!flushing_) {
    flushing_ = true;
    flush_ticket_ = qp.tickets_issued;
  }
  if (!qp.IsDone(flush_ticket_)) return;
  flush_ticket_ = qp.tickets_done;
  // Requests fetched earlier: at most one reports the cause, the others are flushed.
  for (bool told = false; head_ != tail_;) {
    const SendEntry& entry = At(head_);
    WcStatus status = WcStatus::kFlush;
    const bool answered = entry.answered && entry.failed == WcStatus::kSuccess;
    if (answered && qp.config.any_completion_order) {
      status = WcStatus::kSuccess;
    } else if (!told) {
      if (entry.failed != WcStatus::kSuccess) {
        status = entry.failed;
      } else if (entry.answered) {
        status = WcStatus::kSuccess;
      }
      told = status != WcStatus::kSuccess;
    }
    Complete(qp, outbox, status);
  }
  // Posted requests: one that is posted while this loop runs has its own doorbell.
  for (uint32_t i = 0; i < qp.sq().entries() && FetchOne(qp, outbox); ++i)
    Complete(qp, outbox, WcStatus::kFlush);
}

void SendQueue::OnMemoryDone(QpContext& qp, Outbox& outbox) {
  if (qp.state() != verbs::QpState::kError) {
    Retire(qp, outbox);
  } else if (flushing_) {
    Flush(qp, outbox);
  }
}

}  // namespace rocegw::transport
