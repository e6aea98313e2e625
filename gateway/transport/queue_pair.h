// SPDX-License-Identifier: Apache-2.0
// A queue pair as its worker drives it. Every call is an event with its time; what follows is put
// into the outbox. State changes by modify_qp are checked here against the verbs tables; a QP that
// fails by itself flushes both its queues.
#pragma once

#include <memory>
#include <vector>

#include "gateway/flow/carrier.h"
#include "gateway/flow/congestion.h"
#include "gateway/flow/rtt.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/pump.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

class DepartedEndpoint;
class XrcDomain;

// A message of an endpoint, as its target knows it.
struct MessageName {
  const flow::Carrier* carrier = nullptr;
  uint32_t source = 0;  // number of the endpoint that sends it
  uint32_t message = 0;
  uint8_t attempt = 0;
  bool operator==(const MessageName&) const = default;
};

// From a line of memory on, as QpContext counts on.
class alignas(64) QueuePair {
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
  // Between RTR and RTS: its requests will leave by this channel.
  virtual void BindCarrier(flow::Carrier&) {}
  // A frame for this queue pair that its channel has delivered, once. `refuse`: its session takes
  // no memory operations now.
  virtual metrics::DropReason OnFrame(Outbox&, flow::Carrier&, const wire::ChannelFrame&,
                                      std::span<const uint8_t> /*payload*/, bool /*refuse*/,
                                      TimePoint) {
    return metrics::DropReason::k_wrong_service;
  }
  // A frame of this queue pair was lost on the way.
  virtual flow::Resend Again(Outbox&, const flow::Carrier&, const flow::FrameRef&, Psn) {
    return flow::Resend::kVoid;
  }
  // Somebody waits for that frame, one of a request.
  virtual bool Wants(const flow::Carrier&, const flow::FrameRef&) const { return false; }
  // A lost frame of it was sent again by who has kept its bytes.
  virtual void OnSentAgain(const flow::FrameRef&) { CountSentAgain(); }
  // A frame of it is not under way any more: it has arrived, or never left. True: it had no room of
  // its own, and has some now.
  virtual bool OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame);
  // It stood in line there, and may send now.
  virtual void OnTurn(const flow::Carrier&) { qp_.line.waiting = false; }
  // That channel is no more. Who was to send by it and cannot have been heard by the peer goes on
  // as plain RoCEv2; what else was under way is lost. `opened`: something may have left by it.
  virtual void OnCarrierLost(Outbox&, const flow::Carrier&, bool /*opened*/, wire::ChannelReason,
                             TimePoint) {}
  // Every ticket up to this one is done.
  void OnMemoryDone(Outbox& outbox, uint32_t ticket);
  // This ticket's memory was not accessible; call OnMemoryDone for it afterwards.
  void OnMemoryFault(Outbox& outbox, const AccessTag& tag);
  virtual void OnAtomicResult(const AccessTag&, uint64_t) {}
  void OnDeadline(Outbox& outbox, TimePoint now);
  virtual TimePoint deadline() const { return kNever; }
  // Of its flow, where it has one.
  virtual const flow::RttEstimator* rtt() const { return nullptr; }
  // Another congestion control algorithm, or other parameters, while everything goes on.
  virtual void SwitchCc(const flow::CcConfig&, TimePoint) {}

  // Of an endpoint in a group (endpoint_group.h): messages that could take a receive now; has it
  // begun to receive that one, in whichever attempt; which of the group's it has begun.
  virtual uint32_t receives_left() const { return 0; }
  virtual bool HasBegun(const MessageName&) const { return false; }
  virtual void ListBegun(std::vector<MessageName>&) const {}
  // Of an endpoint that is about to go: what remains of it; nullptr: nothing, of any other.
  virtual std::unique_ptr<DepartedEndpoint> Depart() const;

  // PSNs for a person: next to send, oldest unacknowledged, expected.
  struct Psns {
    Psn next;
    Psn una;
    Psn expected;
  };
  virtual Psns psns() const { return {}; }
  virtual uint32_t outstanding() const { return 0; }
  // Memory of what an idle queue pair needs for being connected by a channel.
  virtual size_t channel_bytes() const { return 0; }
  // It is about to go or to be reset: what waits for its turn to be answered, and may be, is
  // answered now (of READs not everything). The program has seen such messages complete, and may
  // have told its peer that this is the end.
  void SendPromised(Outbox& outbox, TimePoint now);
  // It is about to go, its program has taken it down: also what was posted for services without
  // answers leaves, as far as a turn suffices. Devices have sent that by then, so programs do not
  // wait for it (rdma-core's mckey).
  void SendLast(Outbox& outbox, TimePoint now);
  // It is about to go: receives of a shared receive queue that it has taken are others'.
  virtual void GiveBackReceives() {}
  // In SQD, and not all that was begun is complete.
  bool draining() const { return qp_.state() == verbs::QpState::kSqd && !Drained(); }

 protected:
  QueuePair() = default;
  explicit QueuePair(const verbs::QpConfig& config) { Bind(config); }
  void Bind(const verbs::QpConfig& config);
  // A ticket was reported done: up to which all are.
  virtual uint32_t DoneUpTo(uint32_t ticket) { return ticket; }
  void CountSentAgain() {
    qp_.worker->counters.retransmit_packets.Add();
    ++qp_.retransmits;
  }
  // To be called after every event: a queue pair that has gone to error flushes.
  void FlushOnError(Outbox& outbox);
  bool flushed() const { return qp_.flushed; }

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
  // The part of that which tells the peer how its messages went.
  virtual PumpResult PumpAnswers(Outbox&, TimePoint, PumpBudget&) { return PumpResult::kIdle; }
  // What SendLast wants of it.
  virtual PumpResult PumpLast(Outbox& outbox, TimePoint now, PumpBudget& budget) {
    return PumpAnswers(outbox, now, budget);
  }
  virtual metrics::DropReason DoPacket(Outbox& outbox, const wire::RxPacket& packet,
                                       TimePoint now) = 0;
  virtual void DoMemoryDone(Outbox& outbox) = 0;
  virtual void DoMemoryFault(Outbox& outbox, const AccessTag& tag) = 0;
  virtual void DoDeadline(Outbox&, TimePoint) {}

  QpContext qp_;

 private:
  void PublishState();
  void ReportDrained(Outbox& outbox);
};

// RC: requester and responder over one flow.
std::unique_ptr<QueuePair> MakeRcQueuePair(const verbs::QpConfig& config, const flow::CcConfig& cc);
// RC, nobody's: Adopt and what follows until the first request allocate nothing.
std::unique_ptr<QueuePair> MakeReadyQueuePair(const verbs::QpShape& shape);
// The receiving end of XRC (xrc_target.h); the domain outlives it. The sending end is an RC queue
// pair without a responder.
std::unique_ptr<QueuePair> MakeXrcTarget(const verbs::QpConfig& config, const flow::CcConfig& cc,
                                         XrcDomain& domain);
// Messages to and from any endpoint, by channels.
std::unique_ptr<QueuePair> MakeEndpoint(const verbs::QpConfig& config);
// UC.
std::unique_ptr<QueuePair> MakeUcQueuePair(const verbs::QpConfig& config);
// UD.
std::unique_ptr<QueuePair> MakeUdQueuePair(const verbs::QpConfig& config);

}  // namespace rocegw::transport
