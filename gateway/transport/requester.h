// SPDX-License-Identifier: Apache-2.0
// The sending half of an RC queue pair: work requests become request packets, responses retire them
// (IBTA 9.7.3, 9.7.5, 9.9). Which PSNs are in flight and when they count as lost is the flow's
// knowledge; which request a PSN belongs to is known here. requester.cc sends, completer.cc takes
// responses; the queue itself is the queue pair's (send_queue.h).
//
// A READ is asked for in pieces of at most kReadChunk bytes, so that the answers in flight stay
// within the flow's window; PSNs are those of one whole READ. Belongs to one worker.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/base/growing_ring.h"
#include "gateway/flow/flow.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/send_queue.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

inline constexpr uint32_t kReadChunk = 128 * 1024;

// Congestion control for packets of that queue pair's size.
flow::CcConfig CcConfigOf(const QpContext& qp, const flow::CcConfig& cc);

class Requester {
 public:
  // The queue outlives the requester.
  explicit Requester(SendQueue& send) : send_(send) {}

  // INIT to RTR: the flow's gate is there for the responder.
  void Open(const QpContext& qp, const flow::CcConfig& cc, TimePoint now);
  // RTR to RTS, with the flow's limits from the attributes.
  void Start(QpContext& qp, const flow::CcConfig& cc, TimePoint now);
  // Takes the limits over anew while it runs.
  void Configure(QpContext& qp, const flow::CcConfig& cc);
  // The queue has forgotten everything that was posted.
  void Reset();

  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  metrics::DropReason OnResponse(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                 TimePoint now);
  void OnCnp(TimePoint now) { flow_.OnCnp(now); }
  // Another algorithm while everything goes on.
  void SwitchCc(const QpContext& qp, const flow::CcConfig& cc, TimePoint now);
  void OnDeadline(QpContext& qp, Outbox& outbox, TimePoint now);
  void OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag);
  // The queue pair has gone to error: nothing is awaited any more.
  void Stop();

  TimePoint deadline() const;
  const flow::Flow& flow() const { return flow_; }
  flow::Flow& flow() { return flow_; }

 private:
  // What has an answer of its own and was sent; answered PSN by PSN.
  struct Awaited {
    Psn next;
    Psn end;
    uint32_t request = 0;
  };

  uint32_t OffsetOf(const QpContext& qp, const SendEntry& o, Psn psn) const {
    return static_cast<uint32_t>(PsnDistance(psn, o.first)) * qp.mtu();
  }

  // requester.cc
  enum class Sent : uint8_t { kYes, kPortFull, kGateClosed, kFailed };
  SendEntry* Current(QpContext& qp, Outbox& outbox);
  void Begin(QpContext& qp, SendEntry& o, uint32_t index);
  bool MustWait(const QpContext& qp, const SendEntry& o) const;
  Sent SendOne(QpContext& qp, Outbox& outbox, SendEntry& o, TimePoint now);
  Sent SendData(QpContext& qp, Outbox& outbox, SendEntry& o, Psn psn, bool probe, TimePoint now);
  Sent SendRead(QpContext& qp, Outbox& outbox, SendEntry& o, TimePoint now);
  Sent SendAtomic(QpContext& qp, Outbox& outbox, SendEntry& o, TimePoint now);
  Sent SendPlacement(QpContext& qp, Outbox& outbox, SendEntry& o, TimePoint now);
  bool WantsAck(QpContext& qp, const SendEntry& o, bool last, uint32_t bytes, TimePoint now);
  void Account(QpContext& qp, uint32_t psns, uint64_t bytes, uint64_t leaves, TimePoint now);
  void SendProbe(QpContext& qp, Outbox& outbox, TimePoint now);

  // completer.cc
  std::optional<Psn> FirstAwaited();
  // True when this is progress.
  bool Acknowledge(QpContext& qp, Outbox& outbox, Psn upto, TimePoint now);
  metrics::DropReason OnAck(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                            TimePoint now);
  metrics::DropReason OnReadResponse(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                     TimePoint now);
  metrics::DropReason OnAtomicAck(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                  TimePoint now);
  void OnRnr(QpContext& qp, uint8_t timer, TimePoint now);
  void OnLoss(QpContext& qp, TimePoint now);
  // A later answer has come without the one that is awaited.
  void OnAnswerLost(QpContext& qp, TimePoint now);
  // The request that the first awaited response belongs to, when `psn` is that response; else
  // counts and recovers.
  SendEntry* MatchAwaited(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                          TimePoint now, metrics::DropReason& reason);
  void MarkAnswered();
  void SyncWithFlow();

  // Every packet and every acknowledgement; a line of memory.
  SendQueue& send_;
  uint32_t cursor_ = 0;    // holds flow_.next(), or is the next to begin
  uint32_t answered_ = 0;  // the first that is not
  uint32_t seen_rewinds_ = 0;
  uint32_t since_ack_request_ = 0;
  TimePoint paced_until_ = kNever;  // the gate has said no, and when to ask again
  GrowingRing<Awaited> awaited_;
  uint32_t rnr_left_ = 0;
  bool asked_again_ = false;  // a lost answer was asked for again, and nothing has come since
  bool rnr_waiting_ = false;

  flow::Flow flow_;

  TimePoint rnr_until_;
};

}  // namespace rocegw::transport
