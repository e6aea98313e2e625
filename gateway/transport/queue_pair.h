// SPDX-License-Identifier: Apache-2.0
// A queue pair as its worker drives it. Every call is an event with its time; what follows is put
// into the outbox. State changes by modify_qp are checked here against the verbs tables; a QP that
// fails by itself flushes both its queues.
#pragma once

#include <memory>

#include "gateway/flow/congestion.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/requester.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

class QueuePair {
 public:
  virtual ~QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // One that was made ready becomes a program's; its type and sizes fit the shape.
  virtual void Adopt(const verbs::QpConfig&, const flow::CcConfig&) {}

  QpContext& context() { return qp_; }
  const QpContext& context() const { return qp_; }

  // 0 or EINVAL; nothing changes then.
  int Modify(Outbox& outbox, uint32_t mask, const verbs::QpAttributes& wanted, TimePoint now);

  // The client has rung: there may be new requests, or receives to flush.
  void OnDoorbell(Outbox& outbox);
  PumpResult Pump(Outbox& outbox, TimePoint now, PumpBudget& budget);
  metrics::DropReason OnPacket(Outbox& outbox, const wire::RxPacket& packet, TimePoint now);
  // Every ticket up to this one is done.
  void OnMemoryDone(Outbox& outbox, uint32_t ticket);
  // This ticket's memory was not accessible; call OnMemoryDone for it afterwards.
  void OnMemoryFault(Outbox& outbox, const AccessTag& tag);
  virtual void OnAtomicResult(const AccessTag&, uint64_t) {}
  void OnDeadline(Outbox& outbox, TimePoint now);
  virtual TimePoint deadline() const { return kNever; }

  // PSNs for a person: next to send, oldest unacknowledged, expected.
  struct Psns {
    Psn next;
    Psn una;
    Psn expected;
  };
  virtual Psns psns() const { return {}; }
  virtual uint32_t outstanding() const { return 0; }
  // In SQD, and not all that was begun is complete.
  bool draining() const { return qp_.state() == verbs::QpState::kSqd && !Drained(); }

 protected:
  QueuePair() = default;
  explicit QueuePair(const verbs::QpConfig& config) { Bind(config); }
  void Bind(const verbs::QpConfig& config);

  // Per type.
  virtual bool DoReset() = 0;
  virtual void DoReadyToReceive(TimePoint) {}
  virtual void DoReadyToSend(TimePoint) {}
  // Attributes of `mask` changed in a state other than the two above.
  virtual void DoAttributes(uint32_t) {}
  // SQD: everything that was begun is complete.
  virtual bool Drained() const = 0;
  virtual void DoFlush(Outbox& outbox) = 0;
  virtual PumpResult DoPump(Outbox& outbox, TimePoint now, PumpBudget& budget) = 0;
  virtual metrics::DropReason DoPacket(Outbox& outbox, const wire::RxPacket& packet,
                                       TimePoint now) = 0;
  virtual void DoMemoryDone(Outbox& outbox) = 0;
  virtual void DoMemoryFault(Outbox& outbox, const AccessTag& tag) = 0;
  virtual void DoDeadline(Outbox&, TimePoint) {}

  QpContext qp_;

 private:
  void Apply(uint32_t mask, const verbs::QpAttributes& wanted);
  void PublishState();
  void FlushOnError(Outbox& outbox);
  void ReportDrained(Outbox& outbox);

  bool flushed_ = false;
  bool tell_drained_ = false;
};

// RC: requester and responder over one flow.
std::unique_ptr<QueuePair> MakeRcQueuePair(const verbs::QpConfig& config, const flow::CcConfig& cc);
// RC, nobody's: Adopt and what follows until the first request allocate nothing.
std::unique_ptr<QueuePair> MakeReadyQueuePair(const verbs::QpShape& shape);
// UD.
std::unique_ptr<QueuePair> MakeUdQueuePair(const verbs::QpConfig& config);

}  // namespace rocegw::transport
