// SPDX-License-Identifier: Apache-2.0
// Receiving half of an RC queue pair towards a native peer (IBTA 9.7.4, 9.7.5.1): request packets
// are admitted, executed on client memory and answered in order. responder.cc admits and executes,
// responder_reply.cc answers.
//
// A request is acknowledged, and a receive completes, only when its memory operations and all
// earlier ones are done: replies and completions wait for a ticket. READ responses and atomic
// results wait as well, because they acknowledge earlier requests. READ responses pass the gate of
// the queue pair's flow. Belongs to one worker.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/flow/flow.h"
#include "gateway/transport/native/incoming_write.h"
#include "gateway/transport/native/message_position.h"
#include "gateway/transport/native/requester.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/queues/receive_queue.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

// Selects the shared receive queue that an XRC request names, and with it the memory and receives
// of the queue's owner.
class SrqSelector {
 public:
  virtual ~SrqSelector() = default;
  // Switches the context to the owner of the shared receive queue and returns its receives.
  // nullptr: the domain has no such queue.
  virtual ReceiveQueue* Enter(uint32_t srq) = 0;
};

class Responder {
 public:
  // `receives` must outlive the responder.
  explicit Responder(ReceiveQueue& receives) : receives_(&receives) {}
  // XRC: `none` is an empty queue, used until a request names a shared receive queue.
  Responder(ReceiveQueue& none, SrqSelector& selector)
      : receives_(&none), is_xrc_(true), selector_(&selector) {}

  // INIT to RTR.
  void Start(QpContext& qp);
  // Called with the first request. Until then the responder need not follow memory operations.
  void Begin(const QpContext& qp) {
    placement_ticket_ = read_ticket_ = qp.leftovers ? qp.tickets_issued : qp.tickets_done;
  }
  // Allocates memory to remember `depth` READs and atomics.
  void Reserve(uint32_t depth) { remembered_.reserve(depth); }
  // Applies a changed number of READs and atomics to remember.
  void SetDepth(QpContext& qp);
  // Resets all state. The caller has reset the receive queue.
  void Reset();

  metrics::DropReason OnRequest(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet);
  // Prefetches the queue of replies.
  void Prefetch() const { replies_.Prefetch(); }
  // Sends replies that are due.
  PumpResult Pump(QpContext& qp, Outbox& outbox, flow::Flow& flow, TimePoint now,
                  PumpBudget& budget);
  // Returns when to ask the flow's gate again after it held back a READ response.
  TimePoint deadline() const { return held_until_; }
  void OnDeadline(TimePoint now) {
    if (held_until_ <= now) held_until_ = kNever;
  }
  // Handles newly completed tickets: replies may leave with the next Pump.
  void OnMemoryDone(QpContext& qp) {
    placement_ticket_ = qp.Near(placement_ticket_);
    if (is_xrc_) read_ticket_ = qp.Near(read_ticket_);
  }
  void OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag);
  void OnAtomicResult(const AccessTag& tag, uint64_t original);
  // Drops the message in progress, because the queue pair has gone to the error state.
  void Stop() { message_ = MessageKind::kNone; }

  // XRC: sets the receives that calls about receives refer to.
  void UseReceives(ReceiveQueue& receives) { receives_ = &receives; }
  // Returns the SRQ that the last request named.
  uint32_t srq() const { return srq_; }
  // Returns the SRQ whose owner's memory the next reply reads; nothing: it reads none.
  std::optional<uint32_t> NextRead() const;

  bool has_replies() const { return !replies_.empty(); }
  Psn expected() const { return Psn(static_cast<uint32_t>(next_)); }
  // Writes or reads the state, after that of the receive queue.
  void HandOver(hand_over::StateStream& state, const QpContext& qp);

 private:
  enum class ReplyKind : uint8_t { kAck, kRead, kAtomic, kAtomicWrite, kFlush };

  // Fits one cache line.
  struct alignas(64) Reply {
    ReplyKind kind = ReplyKind::kAck;
    uint8_t syndrome = wire::kSyndromeAck;  // kAck: also NAKs
    Psn psn;                                // kAck: the PSN answered; otherwise the first
    uint32_t msn = 0;
    uint32_t ticket = 0;    // the reply leaves when it is done
    bool repeated = false;  // answers a request that was answered or queued before
    // kRead
    uint32_t psns = 0;
    uint32_t sent = 0;
    uint32_t srq = 0;  // XRC: SRQ whose owner's memory is read
    uint64_t address = 0;
    uint32_t rkey = 0;
    uint32_t length = 0;
  };
  // Executed request that a repeated READ, atomic or ATOMIC WRITE is compared with (IBTA
  // 9.7.5.1.5).
  struct Remembered {
    bool valid = false;
    wire::Operation operation = wire::Operation::kReadRequest;
    bool result_known = false;
    uint64_t at = 0;  // its first PSN, as Responder::next_ counts
    Psn first;
    uint32_t psns = 0;
    uint32_t ticket = 0;
    uint64_t address = 0;
    uint32_t rkey = 0;
    uint32_t length = 0;
    uint64_t result = 0;
    uint32_t msn = 0;
    uint32_t srq = 0;  // XRC: SRQ whose owner's memory it used
  };
  // responder.cc
  bool EnterSrq(const wire::RxPacket& packet);
  metrics::DropReason CheckSequence(QpContext& qp, const wire::RxPacket& packet);
  metrics::DropReason Execute(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet);
  metrics::DropReason ExecuteSend(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet);
  metrics::DropReason ExecuteWrite(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet);
  metrics::DropReason ExecuteRead(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet);
  metrics::DropReason ExecuteAtomic(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet);
  metrics::DropReason ExecuteAtomicWrite(QpContext& qp, Outbox& outbox,
                                         const wire::RxPacket& packet);
  metrics::DropReason ExecuteFlush(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet);
  // Takes the next posted receive. Returns false if there is none (an RNR NAK was queued), or if
  // the receive was bad and the queue pair has failed.
  bool TakeReceive(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                   metrics::DropReason& reason);
  void CompleteReceive(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet, uint32_t bytes,
                       bool in_ring);
  void Advance(QpContext& qp, const wire::RxPacket& packet, uint32_t psns);
  metrics::DropReason OnDuplicate(QpContext& qp, const wire::RxPacket& packet);
  metrics::DropReason OnDuplicateFlush(QpContext& qp, const wire::RxPacket& packet);
  // Refuses a request: a NAK leaves after the memory operations before it, and the queue pair goes
  // to the error state. FailSilently does the same without a NAK.
  metrics::DropReason FailSilently(QpContext& qp, Outbox& outbox);
  metrics::DropReason Refuse(QpContext& qp, Outbox& outbox, Psn psn, wire::NakCode code);
  metrics::DropReason Refuse(QpContext& qp, Outbox& outbox, Psn psn, wire::NakCode code,
                             uint32_t ticket);
  Remembered& Remember(const wire::RxPacket& packet, uint32_t psns);
  bool TooManyReads(const QpContext& qp, bool repeated) const;
  bool TooManyFlushes() const;

  // responder_reply.cc
  // Returns the ticket of everything placed so far.
  uint32_t Placed(const QpContext& qp) const { return qp.Near(placement_ticket_); }
  void QueueAck(const QpContext& qp, Psn psn, uint32_t msn, uint8_t syndrome, uint32_t ticket);
  void AcknowledgeAgain(const QpContext& qp, Psn psn);
  void QueueRead(QpContext& qp, const Remembered& memory, Psn psn, uint64_t address,
                 uint32_t length, uint32_t psns);
  void QueueAtomic(QpContext& qp, const Remembered& memory);
  void QueueAtomicWrite(const QpContext& qp, const Remembered& memory);
  void QueueFlush(const QpContext& qp, Psn psn);
  void DropRepliesFrom(Psn psn);
  enum class Replied : uint8_t { kDone, kMore, kPortFull, kGateClosed, kRefused };
  // Sends a packet without payload. Returns false if the port is full.
  bool SendBare(QpContext& qp, Outbox& outbox, const Reply& reply, wire::Opcode opcode,
                uint64_t atomic_result = 0);
  Replied SendAck(QpContext& qp, Outbox& outbox, const Reply& reply);
  Replied SendReadPacket(QpContext& qp, Outbox& outbox, flow::Flow& flow, TimePoint now,
                         Reply& reply, uint32_t& sent);
  Replied SendAtomicAck(QpContext& qp, Outbox& outbox, const Reply& reply);
  Replied SendEmptyResponse(QpContext& qp, Outbox& outbox, const Reply& reply);
  Remembered* FindRemembered(Psn psn);
  bool CoveredByNext(const QpContext& qp) const;
  // Returns true if the newest reply is a NAK that ends the connection.
  bool EndsInRefusal() const;

  // Used by every request and its answer; fits one cache line.
  ReceiveQueue* receives_;
  GrowingRing<Reply> replies_;
  TimePoint held_until_ = kNever;
  // Expected PSN in the low 24 bits. PSNs repeat, this number does not.
  uint64_t next_ = 0;
  uint32_t msn_ = 0;
  uint32_t placement_ticket_ = 0;  // ticket of the newest placement or atomic
  // A PSN or RNR NAK was sent for expected(); no further NAK until it arrives.
  bool gap_answered_ = false;
  bool rnr_ = false;
  bool established_ = false;
  MessageKind message_ = MessageKind::kNone;
  const bool is_xrc_ = false;

  // Messages of several packets, READs, atomics, XRC.
  IncomingWrite write_;              // the WRITE in progress
  SrqSelector* selector_ = nullptr;  // XRC only
  uint32_t read_ticket_ = 0;         // XRC: ticket of the newest read for a response
  uint32_t srq_ = 0;                 // SRQ that the last request named
  uint32_t read_srq_ = 0;            // SRQ whose owner's memory was read last for a response
  std::vector<Remembered> remembered_;
  size_t next_remembered_ = 0;
};

}  // namespace rocegw::transport
