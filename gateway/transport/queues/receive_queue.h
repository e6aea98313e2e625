// SPDX-License-Identifier: Apache-2.0
// Receive queue of a queue pair as its responder keeps it (IBTA 10.8.3.2): posted receives that
// were fetched and validated and are being filled, and their completions, which wait for the memory
// operations that fill them. Receives are numbered in ring order from 0 at reset: the n-th message
// that takes a receive takes number n. Belongs to one worker.
//
// With kAsTheyCome, messages take receives in the order of their arrival. A receive that is held
// for long must not block the slots behind it: each completion releases the oldest slot of the
// ring, not its own, and numbers are reused. Receives of a shared receive queue have no ring: each
// completion names its own slot.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/transport/outbox.h"
#include "gateway/verbs/work_request.h"

namespace rocegw::transport {

// Message that filled a receive.
struct ReceivedMessage {
  bool write = false;  // a WRITE with immediate, which takes a receive and none of its buffers
  bool has_immediate = false;
  bool solicited = false;
  bool in_ring = false;
  bool has_invalidated = false;
  uint32_t length = 0;
  uint32_t immediate = 0;
  uint32_t invalidated = 0;  // R_Key of a window that the message invalidated
  Qpn source;  // sending endpoint; kInvalidQpn: the queue pair that this one is connected to
};

enum class ReceiveOrder : uint8_t { kOfTheRing, kAsTheyCome };

class ReceiveQueue {
 public:
  // Returns the most bytes of heap that a queue of that size takes: every receive open and every
  // completion pending, in rings that doubled last.
  static uint64_t HeapBytes(uint32_t entries, uint32_t max_sge) {
    return uint64_t{2} * entries *
           (sizeof(OpenReceive) + sizeof(PendingReceive) + Stride(max_sge) * sizeof(rocegw_sge));
  }
  explicit ReceiveQueue(ReceiveOrder order = ReceiveOrder::kOfTheRing) {
    if (order == ReceiveOrder::kAsTheyCome)
      out_of_turn_ = std::make_unique<OutOfTurn>(OutOfTurn{.order = order});
  }
  // Forgets all posted receives without completions and returns those of a shared receive queue to
  // it. Returns false if the client's index is impossible.
  bool Reset(QpContext& qp);

  // Numbers: the oldest open receive, and the next to be opened.
  uint32_t first() const { return first_; }
  uint32_t next() const { return next_; }
  bool IsOpen(uint32_t number) const {
    return number - first_ < next_ - first_ && !in_flight_->open[number - first_].closed;
  }
  OpenReceive& At(uint32_t number) { return in_flight_->open[number - first_]; }
  // kAsTheyCome: the receive that Open opened last, and the slot that the next completion releases.
  uint32_t newest() const { return out_of_turn_->newest; }
  uint32_t NextSlot(const QpContext& qp) const {
    return qp.rq().released() +
           (in_flight_ == nullptr ? 0 : static_cast<uint32_t>(in_flight_->pending.size()));
  }
  // Returns the slot that the completion of the receive will name, if it closes next.
  uint32_t CompletionSlot(const QpContext& qp, uint32_t number) const {
    return in_order() || qp.shares_receives ? in_flight_->open[number - first_].request.ring_slot
                                            : NextSlot(qp);
  }

  // Fetches the next posted receive. kReady: it is open now. kFault: the outbox has reported the
  // fault.
  shm::WorkQueue::Look Open(QpContext& qp, Outbox& outbox);
  // Returns true if a receive is open or waits for its completion. QpContext::receiving is never
  // false then.
  bool in_use() const { return in_flight_ != nullptr; }
  // Returns true if its buffers may be written (IBTA 10.6.3).
  bool Writable(const QpContext& qp, uint32_t number);
  // Returns true if completions wait for memory operations.
  bool waits() const { return in_flight_ != nullptr && !in_flight_->pending.empty(); }
  // Queues the placement of message bytes and sets `ticket` to the newest ticket. Returns false if
  // the buffers are not accessible any more.
  bool Place(QpContext& qp, Outbox& outbox, uint32_t number, uint32_t offset,
             std::span<const uint8_t> bytes, AccessTag tag, uint32_t& ticket);
  // Returns true if a whole message of that size goes into the ring's payload slot instead of the
  // buffers. Slots that a shared receive queue gained by resizing have no payload slot.
  bool FitsRing(const QpContext& qp, uint32_t number, size_t bytes) {
    return bytes != 0 && bytes <= qp.config.rq_payload_stride &&
           (!qp.shares_receives || At(number).request.ring_slot < qp.payload_slots());
  }
  // kAsTheyCome: returns true if the completion will release this receive's own slot, which is
  // where the client looks for the payload.
  bool OwnsNextSlot(const QpContext& qp, uint32_t number) {
    return At(number).request.ring_slot == CompletionSlot(qp, number);
  }
  void PlaceInRing(QpContext& qp, uint32_t number, std::span<const uint8_t> bytes);

  // Closes the oldest open receive: it completes once the ticket is done.
  void CloseReceived(QpContext& qp, Outbox& outbox, const ReceivedMessage& message,
                     uint32_t ticket) {
    CloseReceived(qp, outbox, first_, message, ticket);
  }
  // Closes any open receive, where completions may come in any order.
  void CloseReceived(QpContext& qp, Outbox& outbox, uint32_t number, const ReceivedMessage& message,
                     uint32_t ticket);
  // Closes a receive with the status of its failure.
  void CloseFailed(QpContext& qp, verbs::WcStatus status, uint32_t ticket) {
    CloseFailed(qp, first_, status, ticket);
  }
  void CloseFailed(QpContext& qp, uint32_t number, verbs::WcStatus status, uint32_t ticket);
  // kAsTheyCome: returns an open receive to the shared receive queue, to be taken by the next
  // message of any of its queue pairs. No memory operation on its buffers is outstanding.
  void Return(QpContext& qp, uint32_t number);
  // Completes receives whose tickets are done.
  void OnMemoryDone(QpContext& qp, Outbox& outbox);
  // Fails completions that wait for `ticket` or later: the first with `status`, the rest as
  // flushed. Returns true if there was one to fail.
  bool FailFrom(uint32_t ticket, verbs::WcStatus status);
  // Handles a fault of that access where messages come in order. `ticket`: of the newest placement.
  void OnFault(QpContext& qp, const AccessTag& tag, uint32_t ticket);
  // Fails the pending completion of that ring slot, if there is one.
  void FailOne(uint32_t ring_slot, verbs::WcStatus status);
  // Completes every open or posted receive as flushed, once `ticket` is done. Called in the error
  // state.
  void Flush(QpContext& qp, Outbox& outbox, uint32_t ticket);
  void HandOver(hand_over::StateStream& state, const QpContext& qp);

 private:
  static uint32_t Stride(uint32_t max_sge) { return std::bit_ceil(max_sge == 0 ? 1 : max_sge); }
  void Close(QpContext& qp, uint32_t number, rocegw_cqe cqe, uint32_t ticket);
  // kAsTheyCome: forgets the closed receives if none is open, so that their heap can be returned.
  void ForgetClosed();
  // Releases the ring's slots in order.
  void Release(QpContext& qp, uint32_t slot);
  std::span<rocegw_sge> SgesOf(const QpContext& qp, uint32_t number);
  bool in_order() const {
    return out_of_turn_ == nullptr || out_of_turn_->order == ReceiveOrder::kOfTheRing;
  }
  uint32_t NewNumber(const QpContext& qp, Outbox& outbox);

  // State for receives that do not complete in ring order.
  struct OutOfTurn {
    ReceiveOrder order = ReceiveOrder::kOfTheRing;
    // kAsTheyCome:
    uint32_t newest = 0;
    std::vector<uint32_t> unused;  // numbers below next_ of receives that are closed
    // kOfTheRing: slots that completed before older ones; empty until there are some.
    std::vector<bool> early;
    uint32_t early_count = 0;
  };

  uint32_t first_ = 0;
  uint32_t next_ = 0;
  std::unique_ptr<ReceivesInFlight> in_flight_;  // nullptr: none is open or pending
  std::unique_ptr<OutOfTurn> out_of_turn_;       // nullptr: all complete in ring order
};

}  // namespace rocegw::transport
