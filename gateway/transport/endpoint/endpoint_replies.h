// SPDX-License-Identifier: Apache-2.0
// Replies of an endpoint to the messages of others, until each has left. A reply waits for the
// memory operations of its message, then for window of its channel. Belongs to one worker.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/transport/message/peer_channels.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/pump.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

class EndpointReplies {
 public:
  // Limit of replies that have not been tried to send; some wait for memory.
  static constexpr size_t kMost = 16384;
  // Limit of replies that wait for window, shared among the channels that have none. A channel has
  // at most as many as are free, but always one: half if no other channel waits. A message whose
  // reply would not fit is dropped: its sender takes no replies.
  static constexpr size_t kMostBlocked = 16384;

  struct Reply {
    flow::Carrier* carrier = nullptr;  // nullptr: none is sent, the sender wants none
    Qpn to;
    // The message was addressed to the group, so the reply comes from the group.
    bool for_group = false;
    uint8_t syndrome = 0;
    uint8_t attempt = 0;
    uint32_t message = 0;
    uint32_t ticket = 0;     // last memory operation of the message
    uint32_t serial = 0;     // names the message in memory operations; 0: it has none
    uint32_t ring_slot = 0;  // slot of the receive that completes with the reply, if `has_receive`
    bool has_receive = false;
  };

  // `channels` must outlive this object. Each reply with a carrier has one use of its channel.
  explicit EndpointReplies(PeerChannels& channels) : channels_(channels) {}

  void Reset();
  // Returns false if the reply to a message of the carrier would be one too many.
  bool HasRoomFor(const flow::Carrier& carrier) const;
  void Add(const Reply& reply) { replies_.push_back(reply); }
  // Sends the replies whose memory operations are done, as far as budget, windows and port allow.
  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  // Sends the reply again that `frame` describes.
  flow::Resend Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn) const;
  // Calls on_fault(Reply&) for each reply of success to the message `serial`, which waits for
  // memory.
  template <typename F>
  void OnMemoryFault(uint32_t serial, F on_fault) {
    for (size_t i = 0; i < replies_.size(); ++i) {
      Reply& reply = replies_[i];
      if (reply.serial == serial && reply.syndrome == wire::kSyndromeAck) on_fault(reply);
    }
  }
  void OnCarrierLost(const flow::Carrier& carrier);
  // Sends no reply that is left, and forgets those whose memory operations are done.
  void Silence(const QpContext& qp);
  // Forgets the messages that want no reply. All memory operations are done.
  void DropSilent();

  // Number of replies that do not wait for window.
  size_t size() const { return replies_.size(); }
  // Returns the number of replies to messages that have begun, so without refusals for now.
  size_t begun() const;
  // Bytes of memory that the replies take.
  size_t heap_bytes() const;
  // Rebuilds the reply that `frame` describes, of the endpoint `number` in the group `group`.
  static wire::ChannelFrame ReplyOf(const flow::FrameRef& frame, Qpn number, Qpn group);
  // Writes or reads the state as a part of the target's record.
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names, uint16_t version);

 private:
  // Replies whose channel has no window.
  struct Blocked {
    flow::Carrier* carrier = nullptr;
    GrowingRing<Reply> replies;
  };

  bool MaySend(QpContext& qp, flow::Carrier& carrier, TimePoint now,
               const PumpBudget& budget) const;
  // Sends a reply that may leave. Returns false if the port is full.
  bool Send(QpContext& qp, Outbox& outbox, const Reply& reply, TimePoint now);
  // Sends replies whose channels have window again. Returns false if the budget or the port ended
  // that.
  bool PumpBlocked(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  void Block(const Reply& reply);
  // Puts replies that wait for window behind the others.
  void UnblockAll();
  // Goes once through the replies that do not wait for window, and forgets those for which
  // keep(Reply&) returns false.
  template <typename F>
  void KeepIf(F keep) {
    for (size_t left = replies_.size(); left != 0; --left) {
      Reply reply = replies_.front();
      replies_.pop_front();
      if (keep(reply)) replies_.push_back(reply);
    }
  }

  PeerChannels& channels_;
  GrowingRing<Reply> replies_;
  std::vector<Blocked> blocked_;
};

}  // namespace rocegw::transport
