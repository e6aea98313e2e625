// SPDX-License-Identifier: Apache-2.0
// The sending half of an RC queue pair: work requests become request packets, responses retire them
// (IBTA 9.7.3, 9.7.5, 9.9). Which PSNs are in flight and when they count as lost is the flow's
// knowledge; which request a PSN belongs to is known here. requester.cc sends, completer.cc takes
// responses.
//
// A READ is asked for in pieces of at most kReadChunk bytes, so that the answers in flight stay
// within the flow's window; PSNs are those of one whole READ. Belongs to one worker.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gateway/base/growing_ring.h"
#include "gateway/flow/flow.h"
#include "gateway/transport/outbox.h"
#include "gateway/verbs/work_request.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

enum class PumpResult : uint8_t {
  kIdle,     // nothing to send until a doorbell, a response or a deadline
  kMore,     // the budget is used up or the port is full: pump again
  kBlocked,  // waits for an acknowledgement or a deadline
};

// What a turn may still send. A READ counts with the bytes that it asks for.
struct PumpBudget {
  uint32_t packets = 0;
  int64_t bytes = INT64_MAX;  // a turn ends with the packet that reaches it
  uint64_t asked = 0;         // of what was taken: asked for by READs, so sent by the peer

  bool left() const { return packets != 0 && bytes > 0; }
  void Take(uint64_t sent) {
    --packets;
    bytes -= static_cast<int64_t>(sent);
  }
};

inline constexpr uint32_t kReadChunk = 128 * 1024;

// How long an RNR NAK's timer code asks to wait (IBTA table 46).
Duration RnrDelay(uint8_t code);

class Requester {
 public:
  // Once, before anything else: how many requests it holds at once, each of how many pieces.
  void SetSize(uint32_t entries, uint32_t max_sge);
  // Room for such a size, ahead of it.
  void Reserve(uint32_t entries, uint32_t max_sge);

  // INIT to RTR: the flow's gate is there for the responder.
  void Open(const flow::CcConfig& cc, TimePoint now) { flow_.Open(cc, now); }
  // RTR to RTS, with the flow's limits from the attributes.
  void Start(QpContext& qp, const flow::CcConfig& cc, TimePoint now);
  // Takes the limits over anew while it runs.
  void Configure(QpContext& qp, const flow::CcConfig& cc);
  // Forgets everything that is posted, without completions.
  bool Reset(QpContext& qp);

  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  metrics::DropReason OnResponse(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                                 TimePoint now);
  void OnCnp(TimePoint now) { flow_.OnCnp(now); }
  void OnDeadline(QpContext& qp, Outbox& outbox, TimePoint now);
  // More tickets are done: requests that waited for memory may complete.
  void OnMemoryDone(QpContext& qp, Outbox& outbox);
  void OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag);
  // Completes everything that is posted, now or until the next call: what was answered well, what
  // failed with its status, the rest as flushed. The QP is in the error state. Waits for memory
  // operations, since a program uses its buffers again once they have completed.
  void Flush(QpContext& qp, Outbox& outbox);

  TimePoint deadline() const;
  const flow::Flow& flow() const { return flow_; }
  flow::Flow& flow() { return flow_; }
  uint32_t outstanding() const { return tail_ - head_; }
  // Nothing that was begun is still open.
  bool drained() const { return head_ == tail_ || !ring_[head_ & mask_].started; }

 private:
  struct Outstanding {
    verbs::SendRequest request;
    Psn first;
    uint32_t psns = 0;
    uint32_t ticket = 0;  // of the last placement, when has_ticket
    bool has_ticket = false;
    bool started = false;
    verbs::WcStatus failed = verbs::WcStatus::kSuccess;  // completes with it when it is the oldest

    Psn end() const { return first + psns; }
  };
  // A READ request or atomic that was sent; answered PSN by PSN.
  struct Awaited {
    Psn next;
    Psn end;
    uint32_t request = 0;
  };

  Outstanding& At(uint32_t index) { return ring_[index & mask_]; }
  std::span<rocegw_sge> SgesOf(uint32_t index) {
    return {sges_.data() + static_cast<size_t>(index & mask_) * max_sge_, max_sge_};
  }
  std::span<const rocegw_sge> ListOf(uint32_t index) {
    return SgesOf(index).first(At(index).request.sge_count);
  }
  // Every packet of it is acknowledged; READ data and atomic results have come.
  bool Answered(const Outstanding& o) const {
    return o.started && !PsnBefore(flow_.una(), o.end());
  }
  uint32_t OffsetOf(const QpContext& qp, const Outstanding& o, Psn psn) const {
    return static_cast<uint32_t>(PsnDistance(psn, o.first)) * qp.mtu();
  }

  // requester.cc
  enum class Sent : uint8_t { kYes, kPortFull, kGateClosed, kFailed };
  bool FetchOne(QpContext& qp, Outbox& outbox);
  Outstanding* Current(QpContext& qp, Outbox& outbox);
  void Begin(QpContext& qp, Outstanding& o, uint32_t index);
  bool MustWait(const QpContext& qp, const Outstanding& o) const;
  Sent SendOne(QpContext& qp, Outbox& outbox, Outstanding& o, TimePoint now);
  Sent SendData(QpContext& qp, Outbox& outbox, Outstanding& o, Psn psn, bool probe, TimePoint now);
  Sent SendRead(QpContext& qp, Outbox& outbox, Outstanding& o, TimePoint now);
  Sent SendAtomic(QpContext& qp, Outbox& outbox, Outstanding& o, TimePoint now);
  bool WantsAck(QpContext& qp, const Outstanding& o, bool last, uint32_t bytes, TimePoint now);
  void Account(QpContext& qp, uint32_t psns, uint64_t bytes, TimePoint now);
  void SendProbe(QpContext& qp, Outbox& outbox, TimePoint now);

  // completer.cc
  std::optional<Psn> FirstAwaited();
  // True when this is progress.
  bool Acknowledge(QpContext& qp, Outbox& outbox, Psn upto, const wire::RxPacket& packet,
                   TimePoint now);
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
  Outstanding* MatchAwaited(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet,
                            TimePoint now, metrics::DropReason& reason);
  bool Place(QpContext& qp, Outbox& outbox, Outstanding& o, uint32_t index, uint32_t offset,
             std::span<const uint8_t> bytes, AccessPurpose purpose, Psn psn);
  void SyncWithFlow();
  void Retire(QpContext& qp, Outbox& outbox);
  void Complete(QpContext& qp, Outbox& outbox, verbs::WcStatus status);
  // The oldest request without its answer failed with `status`: the QP goes to error.
  void Fail(QpContext& qp, verbs::WcStatus status);

  std::vector<Outstanding> ring_;  // by SQ index
  std::vector<rocegw_sge> sges_;
  uint32_t mask_ = 0;
  uint32_t max_sge_ = 0;
  uint32_t head_ = 0;    // oldest not retired
  uint32_t tail_ = 0;    // next to fetch
  uint32_t cursor_ = 0;  // holds flow_.next(), or is the next to begin

  flow::Flow flow_;
  uint32_t seen_rewinds_ = 0;
  GrowingRing<Awaited> awaited_;
  uint32_t reading_ = 0;  // READs and atomics begun and not retired
  uint32_t since_ack_request_ = 0;
  bool asked_again_ = false;  // a lost answer was asked for again, and nothing has come since
  bool rnr_waiting_ = false;
  TimePoint rnr_until_;
  uint32_t rnr_left_ = 0;
  bool flushing_ = false;
  uint32_t flush_ticket_ = 0;
};

}  // namespace rocegw::transport
