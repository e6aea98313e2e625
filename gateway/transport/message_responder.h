// SPDX-License-Identifier: Apache-2.0
// The receiving half of an RC queue pair on a channel: frames of numbered messages arrive once
// each, in any order. Payload is placed at once; messages take effect in order: the last bytes of a
// WRITE, completions of receives, READs and atomics wait for the messages before them (IBTA 9.7.4
// for what each kind may do), unless they say that they need not (wire::MessageOrder).
// message_responder.cc admits, message_execution.cc executes, message_reply.cc answers.
//
// What a receiver is not ready for is thrown away and refused when its turn comes; the requester
// then offers it, and all after it, as a new attempt. Answers wait behind memory operations as the
// native responder's do. While nothing is under way there is no more of it than where it stands.
// Belongs to one worker.
#pragma once

#include <cstdint>
#include <memory>

#include "gateway/flow/carrier.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/receive_queue.h"

namespace rocegw::transport {

class MessageResponder {
 public:
  // The queue outlives the responder.
  explicit MessageResponder(ReceiveQueue& receives) : receives_(receives) {}

  // Forgets everything, as the queue has.
  void Reset();
  bool active() const { return carrier_ != nullptr; }

  // A request's frame, delivered by the carrier; answers leave by the one that has brought
  // something last. `refuse`: the memory it is for takes nothing now.
  metrics::DropReason OnFrame(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                              const wire::ChannelFrame& frame, std::span<const uint8_t> payload,
                              bool refuse);
  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  // Builds a lost frame again under its PSN.
  flow::Resend Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  // More tickets are done: replies may leave (with the next Pump).
  void OnMemoryDone(QpContext& qp) { placement_ticket_ = qp.Near(placement_ticket_); }
  void OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag);
  void OnAtomicResult(const AccessTag& tag, uint64_t original);
  // The carrier is gone; its peer's requests are, too. `beside`: it was one of several.
  void OnCarrierLost(const flow::Carrier& carrier, bool beside);
  // The queue pair has gone to error: messages under way go no further.
  void Stop();

  // Of memory that it holds while nothing is under way: READs and atomics may be asked for again.
  size_t idle_bytes() const {
    return work_ == nullptr ? 0 : sizeof(Work) + work_->executed.capacity() * sizeof(Executed);
  }
  // Number of the next message to take effect.
  uint32_t expected() const { return expected_; }

 private:
  using Reply = MessageReply;
  using Executed = ExecutedMessage;
  using Work = MessagesUnderWay;

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
  // `ahead`: how many messages lie before it. May it take effect now?
  bool MayAct(const QpContext& qp, const IncomingMessage& message, uint32_t ahead) const;
  bool ExecuteAhead(QpContext& qp, Outbox& outbox, uint32_t ahead);
  // What is placed of a WRITE: bytes of a packet, without or with the last of a message whose turn
  // it is, or those that were held back, which lie in the message.
  enum class Placing : uint8_t { kPacket, kLastOfPacket, kHeldTail };
  // first_later: index of the first message behind it.
  void PlaceWrite(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number,
                  uint32_t offset, std::span<const uint8_t> bytes, size_t first_later,
                  Placing placing);
  // Has one of those put something where this one writes?
  bool PlacedLater(const IncomingMessage& message, size_t first_later) const;
  bool OpenReceiveOf(QpContext& qp, Outbox& outbox, IncomingMessage& message);

  // message_execution.cc
  // The message whose turn it is takes effect; `first_later` as above. False: the queue pair has
  // failed, or the message was refused.
  bool Execute(QpContext& qp, Outbox& outbox, IncomingMessage& message, size_t first_later);
  // What it does. It may be refused or get a nak instead.
  void Act(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number,
           size_t first_later);
  bool HasReceive(const QpContext& qp, const IncomingMessage& message, uint32_t number) const;
  void ActSend(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  void ActWrite(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number,
                size_t first_later);
  void ActRead(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  void ActAtomic(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number);
  void ActPlacement(QpContext& qp, Outbox& outbox, IncomingMessage& message, uint32_t number,
                    size_t first_later);
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
  std::unique_ptr<Work> work_;  // nullptr: nothing is under way
  uint32_t expected_ = 0;
  uint32_t placement_ticket_ = 0;  // of the newest placement or atomic
  uint8_t attempt_ = 0;
  bool established_ = false;
  bool refused_ = false;  // for good: it has ended the queue pair
};
static_assert(sizeof(MessageResponder) <= 40);

}  // namespace rocegw::transport
