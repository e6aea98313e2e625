// SPDX-License-Identifier: Apache-2.0
// Sending half of an endpoint. Each work request names its peer and becomes a message of its own,
// which the peer answers, refuses for now, or fails, independently of other messages. State exists
// only for messages in flight. The initiator enforces strong order: a message leaves only after all
// earlier messages to the same peer are answered, except those without order. READs and atomics are
// messages of one frame; their response is the reply. Belongs to one worker.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gateway/transport/endpoint/endpoint_answers.h"
#include "gateway/transport/endpoint/peer_marks.h"
#include "gateway/transport/message/peer_channels.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/queues/send_queue.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

class EndpointInitiator {
 public:
  // Limits of READs and atomics in flight, and of the bytes that READs request, because many peers
  // respond at once. A single READ may exceed the byte limit.
  static constexpr uint32_t kMostReading = EndpointAnswers::kMostOfOne;
  static constexpr uint64_t kMostAsked = 16 << 20;

  // `send` and `channels` must outlive this object.
  EndpointInitiator(SendQueue& send, PeerChannels& channels) : send_(send), channels_(channels) {}

  // Returns the most bytes of heap for that size, a power of two.
  static constexpr uint64_t HeapBytes(uint32_t entries) {
    return entries * sizeof(Message) + PeerMarks::HeapBytes(entries);
  }
  void SetSize(uint32_t entries) { messages_.resize(entries); }
  void Reset();
  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  metrics::DropReason OnReply(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                              const wire::ChannelFrame& frame, TimePoint now);
  // Takes a part of a READ response, or an atomic's result.
  metrics::DropReason OnAnswer(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                               const wire::ChannelFrame& frame, std::span<const uint8_t> payload,
                               TimePoint now);
  // Returns true if a request still waits for the outcome of that frame.
  bool Wants(const QpContext& qp, const flow::Carrier& carrier, const flow::FrameRef& frame) const;
  flow::Resend Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  void OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag);
  void OnCarrierLost(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier);
  void OnDeadline(QpContext& qp, Outbox& outbox, TimePoint now);
  // Fails every request that is not answered, also those that have not begun.
  void GiveUp(QpContext& qp, Outbox& outbox);
  TimePoint deadline() const { return look_at_; }
  // Returns the number of requests that began and are not answered and placed. Later requests may
  // have begun before earlier ones, so all of them are looked at.
  uint32_t under_way(const QpContext& qp) const;
  // Returns true while a failed request keeps others from beginning (verbs::QpRareConfig).
  bool in_exception() const { return in_exception_; }
  // Returns true once after the endpoint has gone into exception.
  bool TakeException() { return std::exchange(exception_raised_, false); }
  void EndException() { in_exception_ = exception_raised_ = false; }
  uint64_t failures() const { return failures_; }
  // Writes or reads the state, after that of the send queue and the channels.
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  // State of a request in flight that its SendEntry does not hold.
  struct Message {
    flow::Carrier* carrier = nullptr;
    Qpn endpoint;
    uint32_t key = 0;
    TimePoint again;       // earliest time of the next offer
    TimePoint give_up;     // time at which the request fails
    bool refused = false;  // the last reply said that the peer has no receive
  };
  enum class Sent : uint8_t { kYes, kPortFull, kGateClosed, kFailed };

  Message& MessageOf(uint32_t index) { return messages_[index & (messages_.size() - 1)]; }
  const Message& MessageOf(uint32_t index) const {
    return messages_[index & (messages_.size() - 1)];
  }
  bool Waits(uint32_t index) const;
  bool HasRoomToRead(const verbs::SendRequest& request) const;
  flow::Carrier* Choose(QpContext& qp, Outbox& outbox, const Peer& peer) const;
  bool Begin(QpContext& qp, Outbox& outbox, uint32_t index, TimePoint now);
  // Sends what is left of the message as far as the window allows. Returns false when the quantum
  // is used up.
  bool SendRest(QpContext& qp, Outbox& outbox, uint32_t index, TimePoint now, PumpBudget& budget);
  Sent SendNext(QpContext& qp, Outbox& outbox, uint32_t index, TimePoint now, PumpBudget& budget);
  bool Fill(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset, uint32_t bytes, Psn psn,
            port::TxPacket& packet, PayloadUse use);
  // Returns true if the message has begun and is neither answered nor failed.
  bool Open(uint32_t index) const;
  void End(QpContext& qp, uint32_t index, verbs::WcStatus status);
  // Counts a request that fails, and suspends the endpoint if its program wants that.
  void OnFailure(QpContext& qp);

  SendQueue& send_;
  PeerChannels& channels_;
  std::vector<Message> messages_;  // by send queue index
  // Valid during one Pump: peers with an open message that strong order waits for.
  PeerMarks ordered_;
  // First message that found no window; it is served first at the next Pump. Without this, earlier
  // messages that are offered repeatedly to a peer without receives would use up all of the window.
  std::optional<uint32_t> first_;
  uint32_t reading_ = 0;        // READs and atomics in flight
  uint64_t asked_ = 0;          // bytes that the READs in flight request
  TimePoint look_at_ = kNever;  // not later than the earliest timer of any message
  bool in_exception_ = false;
  bool exception_raised_ = false;  // the event is due
  uint64_t failures_ = 0;
};

}  // namespace rocegw::transport
