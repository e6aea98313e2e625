// SPDX-License-Identifier: Apache-2.0
// The receive queue of a queue pair as its responder keeps it (IBTA 10.8.3.2): posted receives that
// were fetched and validated and are being filled, and their completions, which wait behind the
// memory operations that fill them. Receives are numbered in the order of the ring, from 0 at
// reset: the n-th message that takes one takes number n. Belongs to one worker.
//
// Where messages take receives as they come (kAsTheyCome), one that is held for long must not keep
// the slots behind it: a completion lets go of the oldest slot of the ring, whichever its own was,
// and numbers are used again.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/transport/outbox.h"
#include "gateway/verbs/work_request.h"

namespace rocegw::transport {

// What has filled a receive.
struct ReceivedMessage {
  bool write = false;  // a WRITE with immediate, which takes a receive and none of its buffers
  bool has_immediate = false;
  bool solicited = false;
  bool in_ring = false;
  bool has_invalidated = false;
  uint32_t length = 0;
  uint32_t immediate = 0;
  uint32_t invalidated = 0;  // R_Key of a window that is no more
  Qpn source;                // an endpoint; kInvalidQpn: whoever the queue pair is connected to
};

enum class ReceiveOrder : uint8_t { kOfTheRing, kAsTheyCome };

class ReceiveQueue {
 public:
  explicit ReceiveQueue(ReceiveOrder order = ReceiveOrder::kOfTheRing) {
    if (order == ReceiveOrder::kAsTheyCome)
      out_of_turn_ = std::make_unique<OutOfTurn>(OutOfTurn{.order = order});
  }
  // Forgets everything that is posted, without completions; what was taken from a shared receive
  // queue goes back. False: the client's index is impossible.
  bool Reset(QpContext& qp);

  // Numbers: the oldest that is open, and the next to be opened.
  uint32_t first() const { return first_; }
  uint32_t next() const { return next_; }
  bool IsOpen(uint32_t number) const {
    return number - first_ < next_ - first_ && !under_way_->open[number - first_].closed;
  }
  OpenReceive& At(uint32_t number) { return under_way_->open[number - first_]; }
  // As they come: what Open has opened last; the slot that the next one to be closed lets go of.
  uint32_t newest() const { return out_of_turn_->newest; }
  uint32_t NextSlot(const QpContext& qp) const {
    return qp.rq().released() +
           (under_way_ == nullptr ? 0 : static_cast<uint32_t>(under_way_->pending.size()));
  }

  // Fetches the next posted receive; kReady: it is open now. kFault has told the outbox.
  shm::WorkQueue::Look Open(QpContext& qp, Outbox& outbox);
  // May its buffers be written (IBTA 10.6.3)?
  bool Writable(const QpContext& qp, uint32_t number);
  // Completions that wait for memory operations.
  bool waits() const { return under_way_ != nullptr && !under_way_->pending.empty(); }
  // Queues the placement of message bytes behind what came before; the newest ticket goes to
  // `ticket`. False: the buffers are not there any more.
  bool Place(QpContext& qp, Outbox& outbox, uint32_t number, uint32_t offset,
             std::span<const uint8_t> bytes, AccessTag tag, uint32_t& ticket);
  // A whole message that fits goes into the ring's payload slot instead; slots that a shared
  // receive queue got later have none.
  bool FitsRing(const QpContext& qp, uint32_t number, size_t bytes) {
    return bytes != 0 && bytes <= qp.config.rq_payload_stride &&
           (!qp.shares_receives || At(number).request.ring_slot < qp.payload_slots());
  }
  // As they come: the client looks for it where the completion lets go of a slot.
  bool OwnsNextSlot(const QpContext& qp, uint32_t number) {
    return At(number).request.ring_slot == NextSlot(qp);
  }
  void PlaceInRing(QpContext& qp, uint32_t number, std::span<const uint8_t> bytes);

  // The oldest open receive completes once the ticket is done.
  void CloseReceived(QpContext& qp, Outbox& outbox, const ReceivedMessage& message,
                     uint32_t ticket) {
    CloseReceived(qp, outbox, first_, message, ticket);
  }
  // The same of any that is open and not closed, where completions may come in any order.
  void CloseReceived(QpContext& qp, Outbox& outbox, uint32_t number, const ReceivedMessage& message,
                     uint32_t ticket);
  // The same with a status that says why not.
  void CloseFailed(QpContext& qp, verbs::WcStatus status, uint32_t ticket) {
    CloseFailed(qp, first_, status, ticket);
  }
  void CloseFailed(QpContext& qp, uint32_t number, verbs::WcStatus status, uint32_t ticket);
  // More tickets are done.
  void OnMemoryDone(QpContext& qp, Outbox& outbox);
  // Completions that wait for `ticket` or later fail: the first one with `status`, if there is one,
  // the rest as flushed. True: there was one to fail.
  bool FailFrom(uint32_t ticket, verbs::WcStatus status);
  // Memory of that access could not be reached, where messages come in order. `ticket`: of the
  // newest placement.
  void OnFault(QpContext& qp, const AccessTag& tag, uint32_t ticket);
  // The completion of that ring slot, if it waits, fails.
  void FailOne(uint32_t ring_slot, verbs::WcStatus status);
  // Completes every receive that is open or posted as flushed, behind the ticket. The QP is in the
  // error state.
  void Flush(QpContext& qp, Outbox& outbox, uint32_t ticket);

 private:
  static uint32_t Stride(uint32_t max_sge) { return std::bit_ceil(max_sge == 0 ? 1 : max_sge); }
  void Close(QpContext& qp, uint32_t number, rocegw_cqe cqe, uint32_t ticket);
  // The ring's slots go back in order.
  void Release(QpContext& qp, uint32_t slot);
  std::span<rocegw_sge> SgesOf(const QpContext& qp, uint32_t number);
  bool in_order() const {
    return out_of_turn_ == nullptr || out_of_turn_->order == ReceiveOrder::kOfTheRing;
  }
  uint32_t NewNumber(const QpContext& qp, Outbox& outbox);

  // Where not everything is in the order of the ring.
  struct OutOfTurn {
    ReceiveOrder order = ReceiveOrder::kOfTheRing;
    // As they come.
    uint32_t newest = 0;
    std::vector<uint32_t> unused;  // numbers below next_ of receives that are closed
    // Of the ring: by slot, completed before older ones; empty until there are some.
    std::vector<bool> early;
    uint32_t early_count = 0;
  };

  uint32_t first_ = 0;
  uint32_t next_ = 0;
  std::unique_ptr<ReceivesUnderWay> under_way_;  // nullptr: none is open, and none pending
  std::unique_ptr<OutOfTurn> out_of_turn_;       // nullptr: everything is
};

}  // namespace rocegw::transport
