// SPDX-License-Identifier: Apache-2.0
// The sending half of an endpoint: each work request names its peer and becomes a message of its
// own, which is answered, refused for now, or fails by itself. State is kept for messages under way
// only. Strong order is kept here: a message leaves when those before it to the same peer, but for
// those of no order, are answered. READs and atomics are messages of one frame, answered by what
// they asked for. Belongs to one worker.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gateway/transport/endpoint_answers.h"
#include "gateway/transport/lanes.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/send_queue.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

class EndpointInitiator {
 public:
  // READs and atomics under way, and bytes that READs ask for unless it is one alone: what they
  // bring comes from many at once.
  static constexpr uint32_t kMostReading = EndpointAnswers::kMostOfOne;
  static constexpr uint64_t kMostAsked = 16 << 20;

  // Both outlive it.
  EndpointInitiator(SendQueue& send, Lanes& lanes) : send_(send), lanes_(lanes) {}

  void SetSize(uint32_t entries) { messages_.resize(entries); }
  void Reset();
  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  metrics::DropReason OnReply(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                              const wire::ChannelFrame& frame, TimePoint now);
  // A part of a READ's data, or an atomic's result.
  metrics::DropReason OnAnswer(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                               const wire::ChannelFrame& frame, std::span<const uint8_t> payload,
                               TimePoint now);
  // Somebody waits for that frame.
  bool Wants(const QpContext& qp, const flow::Carrier& carrier, const flow::FrameRef& frame) const;
  flow::Resend Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  void OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag);
  void OnCarrierLost(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier);
  void OnDeadline(QpContext& qp, Outbox& outbox, TimePoint now);
  TimePoint deadline() const { return look_at_; }

 private:
  // What a request under way needs beside what its entry in the send queue has.
  struct Message {
    flow::Carrier* carrier = nullptr;
    Qpn endpoint;
    uint32_t key = 0;
    TimePoint again;       // not offered before
    TimePoint give_up;     // has failed then
    bool refused = false;  // the last answer was that no receive is there
  };
  enum class Sent : uint8_t { kYes, kPortFull, kGateClosed, kFailed };

  Message& MessageOf(uint32_t index) { return messages_[index & (messages_.size() - 1)]; }
  const Message& MessageOf(uint32_t index) const {
    return messages_[index & (messages_.size() - 1)];
  }
  bool Waits(uint32_t index, const std::vector<uint32_t>& peers) const;
  bool HasRoomToRead(const verbs::SendRequest& request) const;
  flow::Carrier* Choose(QpContext& qp, Outbox& outbox, const Peer& peer) const;
  bool Begin(QpContext& qp, Outbox& outbox, uint32_t index, TimePoint now);
  // What is left of it, as far as there is room. False: the turn is over.
  bool SendRest(QpContext& qp, Outbox& outbox, uint32_t index, TimePoint now, PumpBudget& budget);
  Sent SendNext(QpContext& qp, Outbox& outbox, uint32_t index, TimePoint now, PumpBudget& budget);
  bool Fill(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset, uint32_t bytes, Psn psn,
            port::TxPacket& packet);
  // Begun, and neither answered nor failed.
  bool Open(uint32_t index) const;
  void End(QpContext& qp, uint32_t index, verbs::WcStatus status);

  SendQueue& send_;
  Lanes& lanes_;
  std::vector<Message> messages_;  // by index in the ring
  std::vector<uint32_t> ordered_;  // of the round under way: peers with a message that others await
  // Who found no room first: has what there is the next time. Those before it, which are offered
  // again and again to who has no receives, would never leave it any.
  std::optional<uint32_t> first_;
  uint32_t reading_ = 0;        // READs and atomics under way
  uint64_t asked_ = 0;          // bytes that they ask for
  TimePoint look_at_ = kNever;  // no later than anything that is due
};

}  // namespace rocegw::transport
