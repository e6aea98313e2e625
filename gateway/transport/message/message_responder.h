// SPDX-License-Identifier: Apache-2.0
// Receiving half of an RC queue pair on a channel. Frames of numbered messages arrive once each, in
// any order. Payload is placed at once, but messages take effect in order: the last bytes of a
// WRITE, completions of receives, READs and atomics wait for the messages before them, except for
// messages that relax order (wire::MessageOrder). IBTA 9.7.4 says what each kind may do.
//
// A message that the receiver is not ready for is dropped, and refused when all earlier ones took
// effect. The requester then offers that message and all later ones as a new attempt. Replies wait
// for memory operations, as the native responder's do. While no message is in flight, an object
// holds no memory beyond itself. Belongs to one worker.
//
// Files: message_responder.cc admits frames, message_execution.cc executes, message_reply.cc
// answers.
#pragma once

#include <cstdint>
#include <memory>

#include "gateway/flow/carrier.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/queues/receive_queue.h"

namespace rocegw::flow {
class CarrierNames;
}

namespace rocegw::transport {

class MessageResponder {
 public:
  // Limit of replies that have not left: one for each message that a peer may have ahead, and some
  // refusals. A peer that waits for refusals before it sends again never exceeds it.
  static constexpr size_t kMostReplies = 8192 + 256;

  // `receives` must outlive the responder.
  explicit MessageResponder(ReceiveQueue& receives) : receives_(receives) {}

  // Resets all state. The caller has reset the receive queue.
  void Reset();
  bool active() const { return carrier_ != nullptr; }
  // Returns true if a request has arrived since the last reset.
  bool established() const { return established_; }

  // Takes a frame of a request that the carrier has delivered. Answers leave by the carrier that
  // delivered last. `refuse`: the session takes no memory operations now, so the message is
  // refused.
  metrics::DropReason OnFrame(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                              const wire::ChannelFrame& frame, std::span<const uint8_t> payload,
                              bool refuse);
  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  // Rebuilds a lost frame under its PSN.
  flow::Resend Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  // Handles newly completed tickets: replies that waited for them may leave with the next Pump.
  void OnMemoryDone(QpContext& qp) { placement_ticket_ = qp.Near(placement_ticket_); }
  void OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag);
  void OnAtomicResult(const AccessTag& tag, uint64_t original);
  // Returns true if answers leave by the channel.
  bool LeavesBy(const flow::Carrier& carrier) const { return carrier_ == &carrier; }
  // Handles the loss of the carrier and of its peer's requests. `beside`: it was one of several.
  void OnCarrierLost(const flow::Carrier& carrier, bool beside);
  // Drops messages in flight, because the queue pair has gone to the error state.
  void Stop();

  // Returns the bytes of memory held while no message is in flight, for READs and atomics that may
  // be requested again.
  size_t idle_bytes() const {
    return work_ == nullptr ? 0 : sizeof(Work) + work_->executed.capacity() * sizeof(Executed);
  }
  // Returns the bytes of heap of the messages that have begun and did not take effect.
  size_t records_bytes() const { return work_ == nullptr ? 0 : work_->messages.heap_bytes(); }
  // Returns the number of the next message to take effect.
  uint32_t expected() const { return expected_; }
  // Writes or reads the state, after that of the receive queue; the reader holds the carrier.
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  using Reply = MessageReply;
  using Executed = ExecutedMessage;
  using Work = MessagesInFlight;

  Work& Working(Outbox& outbox);
  void RestIfDone(Outbox& outbox);
  bool messages_ahead() const { return work_ != nullptr && !work_->messages.empty(); }
  void QueueReply(Outbox& outbox, const Reply& reply) { Working(outbox).replies.push_back(reply); }

  // message_responder.cc
  bool TakenAnyway(const wire::ChannelFrame& frame) const;
  metrics::DropReason Take(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t ahead,
                           const wire::ChannelFrame& frame, std::span<const uint8_t> payload);
  void TakeSend(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number,
                const wire::ChannelFrame& frame, std::span<const uint8_t> payload);
  void BeginWrite(QpContext& qp, IncomingMessage& message);
  void TakeWrite(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t ahead,
                 const wire::ChannelFrame& frame, std::span<const uint8_t> payload);
  void ForgetUnfinished();
  void Advance(QpContext& qp, Outbox& outbox);
  // Returns true if the message may take effect now. `ahead`: number of messages before it.
  bool MayAct(const QpContext& qp, const IncomingMessage& message, uint32_t ahead) const;
  bool ExecuteAhead(QpContext& qp, Outbox& outbox, uint32_t ahead);
  // Source of the bytes of a WRITE to be placed:
  // - kPacket: a packet, without the message's last bytes;
  // - kLastOfPacket: a packet, with the last bytes, because the message takes effect;
  // - kHeldTail: the last bytes that were held back in the message.
  enum class Placing : uint8_t { kPacket, kLastOfPacket, kHeldTail };
  void PlaceWrite(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number,
                  uint32_t offset, std::span<const uint8_t> bytes, Placing placing);
  // Returns true if a later message has placed bytes where this one writes.
  bool PlacedLater(const IncomingMessage& message, uint32_t number) const;
  bool OpenReceiveOf(QpContext& qp, Outbox& outbox, IncomingMessage& message);

  // message_execution.cc
  // Makes the next message take effect. Returns false if the queue pair failed or the message was
  // refused.
  bool Execute(QpContext& qp, Outbox& outbox, IncomingMessage& message);
  // Performs the message's operation, which may end in a refusal or a NAK.
  void Act(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  bool HasReceive(const QpContext& qp, const IncomingMessage& message, uint32_t number) const;
  void ActSend(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  void ActWrite(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  void ActRead(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  void ActAtomic(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  void ActPlacement(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  void CompleteReceive(QpContext& qp, Outbox& outbox, const IncomingMessage& message);
  Executed* Remember(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  void RefuseForNow(QpContext& qp, Outbox& outbox);
  void Refuse(QpContext& qp, Outbox& outbox, uint32_t number, uint8_t nak, uint32_t ticket);

  // message_reply.cc
  uint32_t Placed(const QpContext& qp) const { return qp.Near(placement_ticket_); }
  void QueueAck(QpContext& qp, Outbox& outbox, uint32_t number);
  void QueueAckAlone(QpContext& qp, Outbox& outbox, uint32_t number);
  Executed* Find(uint32_t number);
  enum class Sent : uint8_t { kYes, kPortFull, kGateClosed, kFailed };
  void LeaveBy(QpContext& qp, flow::Carrier& carrier);
  Sent SendReply(QpContext& qp, Outbox& outbox, const Reply& reply, TimePoint now, bool last);
  Sent SendAnswer(QpContext& qp, Outbox& outbox, Executed& executed, TimePoint now,
                  PumpBudget& budget);
  static void FillReply(const QpContext& qp, const Reply& reply, Psn psn,
                        const flow::CarrierAddress& address, port::TxPacket& packet);

  ReceiveQueue& receives_;
  flow::Carrier* carrier_ = nullptr;
  std::unique_ptr<Work> work_;  // nullptr: no message is in flight
  uint32_t expected_ = 0;
  uint32_t placement_ticket_ = 0;  // ticket of the newest placement or atomic
  uint8_t attempt_ = 0;
  bool established_ = false;
  bool refused_ = false;  // permanently: the refusal ended the queue pair
};
static_assert(sizeof(MessageResponder) <= 40);

}  // namespace rocegw::transport
