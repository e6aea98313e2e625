// SPDX-License-Identifier: Apache-2.0
// A queue pair as its worker drives it. Every call is an event with its time; the consequences go
// to the outbox. modify_qp is checked here against the state tables of the verbs. A queue pair that
// fails by itself flushes both its queues. Belongs to one worker.
#pragma once

#include <memory>

#include "gateway/flow/carrier.h"
#include "gateway/flow/congestion.h"
#include "gateway/flow/rtt.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/pump.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"

namespace rocegw::flow {
class CarrierNames;
}

namespace rocegw::transport {

class EndpointQueuePair;
class XrcDomain;

// Aligned to a cache line, because QpContext orders its fields by cache line.
class alignas(64) QueuePair {
 public:
  virtual ~QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // Turns a queue pair of the pool's reserve into a program's. Type and sizes must fit its shape.
  virtual void Adopt(const verbs::QpConfig&, const flow::CcConfig&) {}

  QpContext& context() { return qp_; }
  const QpContext& context() const { return qp_; }

  // Changes state and attributes. Returns 0, or EINVAL without any change.
  int Modify(Outbox& outbox, uint32_t mask, const verbs::QpAttributes& wanted, TimePoint now);

  // Prefetch the cache lines of the object that the event touches, then those that they point to,
  // then those that these point to. Each reads what the one before has fetched, and Prefetch the
  // first line of the object.
  virtual void Prefetch(NextEvent) const {}
  virtual void PrefetchLinks(NextEvent) const {}
  virtual void PrefetchFar(NextEvent) const {}

  // Handles the client's doorbell: there may be new requests, or receives to flush.
  void OnDoorbell(Outbox& outbox);
  PumpResult Pump(Outbox& outbox, TimePoint now, PumpBudget& budget);
  metrics::DropReason OnPacket(Outbox& outbox, const wire::RxPacket& packet, TimePoint now);
  // Binds the channel that its requests will leave by. Called between RTR and RTS.
  virtual void BindCarrier(flow::Carrier&) {}
  // Handles a frame that the channel has delivered, once. `refuse`: the session takes no memory
  // operations now.
  virtual metrics::DropReason OnFrame(Outbox&, flow::Carrier&, const wire::ChannelFrame&,
                                      std::span<const uint8_t> /*payload*/, bool /*refuse*/,
                                      TimePoint) {
    return metrics::DropReason::k_wrong_service;
  }
  // Rebuilds a frame of this queue pair that was lost.
  virtual flow::Resend Again(Outbox&, const flow::Carrier&, const flow::FrameRef&, Psn) {
    return flow::Resend::kVoid;
  }
  // Returns true if a request still waits for the outcome of this frame of it.
  virtual bool Wants(const flow::Carrier&, const flow::FrameRef&) const { return false; }
  // Counts a lost frame that its staged carrier, which keeps the bytes, has sent again.
  virtual void OnSentAgain(const flow::FrameRef&) { CountSentAgain(); }
  // Takes a frame off the pool's window, since it arrived or never left. Returns true if the queue
  // pair lacked window before and has some now.
  virtual bool OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame);
  // Handles its turn in the channel's wait queue: it may send now.
  virtual void OnTurn(const flow::Carrier&) { qp_.wait_entry.waiting = false; }
  // Returns true if requests or answers of the queue pair use the channel.
  virtual bool Uses(const flow::Carrier&) const { return false; }
  // Handles the loss of a channel that it uses. If the peer cannot have received anything by it,
  // the queue pair goes on as plain RoCEv2; otherwise its requests in flight are lost. `opened`:
  // frames may have left by it.
  virtual void OnCarrierLost(Outbox&, const flow::Carrier&, bool /*opened*/, wire::ChannelReason,
                             TimePoint) {}
  // Handles the report that every ticket up to this one is done.
  void OnMemoryDone(Outbox& outbox, uint32_t ticket);
  // Handles a ticket whose memory was not accessible. The caller calls OnMemoryDone for it
  // afterwards.
  void OnMemoryFault(Outbox& outbox, const AccessTag& tag);
  virtual void OnAtomicResult(const AccessTag&, uint64_t) {}
  void OnDeadline(Outbox& outbox, TimePoint now);
  virtual TimePoint deadline() const { return kNever; }
  // Returns the round-trip estimator of its flow; nullptr: it has no flow.
  virtual const flow::RttEstimator* rtt() const { return nullptr; }
  // Switches the congestion control algorithm or its parameters without disturbing what is in
  // flight.
  virtual void SwitchCc(const flow::CcConfig&, TimePoint) {}

  // Returns the queue pair as an endpoint (endpoint/endpoint_queue_pair.h); nullptr: another type.
  virtual EndpointQueuePair* endpoint() { return nullptr; }

  // Diagnostic PSNs: next to send, oldest unacknowledged, expected.
  struct Psns {
    Psn next;
    Psn una;
    Psn expected;
  };
  virtual Psns psns() const { return {}; }
  virtual uint32_t outstanding() const { return 0; }
  // Returns the bytes of memory that an idle queue pair uses for channels.
  virtual size_t channel_bytes() const { return 0; }
  // Returns the bytes of heap of the records that peers' messages make and that only messages in
  // progress need.
  virtual size_t records_bytes() const { return 0; }
  // Sends pending responses without waiting for their turn (READ data only in part). Called before
  // the queue pair is destroyed or reset: the program has seen these messages complete, and may
  // have told its peer that the connection ends.
  void SendPendingResponses(Outbox& outbox, TimePoint now);
  // Sends pending responses, and also posted requests of unacknowledged services (UC, UD) as far as
  // one quantum suffices. Called before the program destroys the queue pair: devices have sent such
  // requests by then, so programs do not wait for them (rdma-core's mckey).
  void SendLast(Outbox& outbox, TimePoint now);
  // Returns receives that it took from a shared receive queue to that queue. Called before
  // destruction.
  virtual void GiveBackReceives() {}
  // Writes the state, or reads it into a queue pair that was made and linked with the same
  // configuration (hand_over/state_stream.h). All memory operations are done then.
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);
  // Returns true in SQD while requests that began are incomplete.
  bool draining() const { return qp_.state() == verbs::QpState::kSqd && !Drained(); }

 protected:
  QueuePair() = default;
  explicit QueuePair(const verbs::QpConfig& config) { Bind(config); }
  void Bind(const verbs::QpConfig& config);
  // Returns the ticket up to which all are done, after `ticket` was reported done.
  virtual uint32_t DoneUpTo(uint32_t ticket) { return ticket; }
  void CountSentAgain() {
    qp_.worker->counters.retransmit_packets.Add();
    ++qp_.retransmits;
  }
  // Flushes the queues if the queue pair has gone to the error state. Called after every event.
  void FlushOnError(Outbox& outbox);
  bool flushed() const { return qp_.flushed; }
  // Shows the state to the client, after a change by the queue pair itself.
  void PublishState();

  // Implementation of each type.
  virtual bool DoReset() = 0;
  virtual void DoReadyToReceive(TimePoint) {}
  virtual void DoReadyToSend(TimePoint) {}
  // Applies changed attributes of `mask` in all states except the transitions above.
  virtual void DoAttributes(uint32_t) {}
  // SQD: returns true if all requests that began are complete.
  virtual bool Drained() const = 0;
  virtual void DoFlush(Outbox& outbox) = 0;
  virtual PumpResult DoPump(Outbox& outbox, TimePoint now, PumpBudget& budget) = 0;
  // Sends only the replies that tell the peer the outcome of its messages.
  virtual PumpResult PumpAnswers(Outbox&, TimePoint, PumpBudget&) { return PumpResult::kIdle; }
  // Sends what SendLast must send.
  virtual PumpResult PumpLast(Outbox& outbox, TimePoint now, PumpBudget& budget) {
    return PumpAnswers(outbox, now, budget);
  }
  virtual metrics::DropReason DoPacket(Outbox& outbox, const wire::RxPacket& packet,
                                       TimePoint now) = 0;
  virtual void DoMemoryDone(Outbox& outbox) = 0;
  virtual void DoMemoryFault(Outbox& outbox, const AccessTag& tag) = 0;
  virtual void DoDeadline(Outbox&, TimePoint) {}
  virtual void DoHandOver(hand_over::StateStream& state, flow::CarrierNames& names);

  QpContext qp_;

 private:
  void ReportDrained(Outbox& outbox);
};

// Makes an RC queue pair: requester and responder over one flow.
std::unique_ptr<QueuePair> MakeRcQueuePair(const verbs::QpConfig& config, const flow::CcConfig& cc);
// Makes an RC queue pair for a pool's reserve. Neither Adopt nor later calls up to the first
// request allocate memory.
std::unique_ptr<QueuePair> MakeReadyQueuePair(const verbs::QpShape& shape);
// Makes the receiving end of XRC (xrc_target.h); the domain outlives it. The sending end is an RC
// queue pair without a responder.
std::unique_ptr<QueuePair> MakeXrcTarget(const verbs::QpConfig& config, const flow::CcConfig& cc,
                                         XrcDomain& domain);
// Makes a UC queue pair.
std::unique_ptr<QueuePair> MakeUcQueuePair(const verbs::QpConfig& config);
// Makes a UD queue pair.
std::unique_ptr<QueuePair> MakeUdQueuePair(const verbs::QpConfig& config);

}  // namespace rocegw::transport
