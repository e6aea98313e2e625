// SPDX-License-Identifier: Apache-2.0
// Sending half of an RC queue pair towards a native peer: work requests become request packets, and
// responses complete them (IBTA 9.7.3, 9.7.5, 9.9). The flow knows which PSNs are in flight and
// when they count as lost; the requester knows which request a PSN belongs to. requester.cc sends,
// completer.cc takes responses; the queue itself belongs to the queue pair (send_queue.h).
//
// A READ is requested in pieces of at most kReadChunk bytes, so that the responses in flight stay
// within the flow's window. The pieces use the PSNs of one whole READ. Belongs to one worker.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/flow/flow.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/queues/send_queue.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

inline constexpr uint32_t kReadChunk = 128 * 1024;

// Returns the congestion control configuration for the queue pair's packet size.
flow::CcConfig CcConfigOf(const QpContext& qp, const flow::CcConfig& cc);

class Requester {
 public:
  // `send` must outlive the requester.
  explicit Requester(SendQueue& send) : send_(send) {}

  // INIT to RTR: opens the flow's gate, which the responder uses as well.
  void Open(const QpContext& qp, const flow::CcConfig& cc, TimePoint now);
  // RTR to RTS: takes the flow's limits from the attributes.
  void Start(QpContext& qp, const flow::CcConfig& cc, TimePoint now);
  // Applies changed limits of the attributes while the requester runs.
  void Configure(QpContext& qp, const flow::CcConfig& cc);
  // Resets all state. The caller has discarded the send queue's requests.
  void Reset();

  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  metrics::DropReason OnResponse(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                 TimePoint now);
  void OnCnp(TimePoint now) { flow_.OnCnp(now); }
  // Switches the congestion control algorithm without disturbing what is in flight.
  void SwitchCc(const QpContext& qp, const flow::CcConfig& cc, TimePoint now);
  void OnDeadline(QpContext& qp, Outbox& outbox, TimePoint now);
  void OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag);
  // Stops waiting for responses, because the queue pair has gone to the error state.
  void Stop();

  TimePoint deadline() const;
  const flow::Flow& flow() const { return flow_; }
  flow::Flow& flow() { return flow_; }
  // Writes or reads the state, after that of the send queue. `in_use`: requests leave by this
  // requester, not by a channel.
  void HandOver(hand_over::StateStream& state, const QpContext& qp, const flow::CcConfig& cc,
                bool in_use);

 private:
  // Request that was sent and has responses of its own, matched PSN by PSN.
  struct Awaited {
    Psn next;
    Psn end;
    uint32_t request = 0;
  };

  uint32_t OffsetOf(const QpContext& qp, const SendEntry& o, Psn psn) const {
    return static_cast<uint32_t>(PsnDistance(psn, o.first)) * qp.mtu();
  }

  bool IsPossible(const QpContext& qp) const;

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
  // Acknowledges all PSNs before `upto`. Returns true if that is progress.
  bool Acknowledge(QpContext& qp, Outbox& outbox, Psn upto, TimePoint now);
  metrics::DropReason OnAck(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                            TimePoint now);
  metrics::DropReason OnReadResponse(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                     TimePoint now);
  metrics::DropReason OnAtomicAck(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                  TimePoint now);
  void OnRnr(QpContext& qp, uint8_t timer, TimePoint now);
  void OnLoss(QpContext& qp, TimePoint now);
  // Recovers a response that is missing although a later one has arrived.
  void OnAnswerLost(QpContext& qp, TimePoint now);
  // Returns the request of the oldest awaited response if `psn` is that response. Otherwise it sets
  // `reason`, counts and recovers, and returns nullptr.
  SendEntry* MatchAwaited(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                          TimePoint now, metrics::DropReason& reason);
  void MarkAnswered();
  void SyncWithFlow();

  // Used by every packet and every acknowledgement.
  SendQueue& send_;
  uint32_t cursor_ = 0;    // holds flow_.next(), or is the next to begin
  uint32_t answered_ = 0;  // the first unanswered request
  uint32_t seen_rewinds_ = 0;
  uint32_t since_ack_request_ = 0;
  TimePoint paced_until_ = kNever;  // the gate is closed until then
  uint32_t rnr_left_ = 0;
  bool asked_again_ = false;  // a lost response was requested again, and nothing has arrived since
  bool rnr_waiting_ = false;

  flow::Flow flow_;

  // Used by few messages.
  GrowingRing<Awaited> awaited_;
  TimePoint rnr_until_;
};

}  // namespace rocegw::transport
