// SPDX-License-Identifier: Apache-2.0
// The sending half of an RC queue pair whose peer sits behind another gateway: work requests become
// numbered messages, and messages frames of a channel. The channel delivers each frame once, in any
// order; it never completes a request: replies, READ data and atomic results do (IBTA 9.7.5 for
// what they mean). Belongs to one worker.
//
// A receiver that is not ready refuses a message; it and all after it are then offered again as a
// new attempt. Frames carry the attempt's number, so that what is still under way of an earlier one
// is known.
#pragma once

#include <cstdint>

#include "gateway/flow/carrier.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/send_queue.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

class MessageRequester {
 public:
  // The queue outlives the requester.
  explicit MessageRequester(SendQueue& send) : send_(send) {}

  // RTR to RTS: from now on requests leave through the carrier, which the queue pair holds.
  void Start(QpContext& qp, flow::Carrier& carrier, TimePoint now);
  // Takes the limits of the attributes over anew while it runs.
  void Configure(QpContext& qp) { rnr_left_ = qp.attributes.rnr_retry; }
  // The queue has forgotten everything that was posted.
  void Reset();
  bool active() const { return carrier_ != nullptr; }
  // The peer has answered something since Start.
  bool heard() const { return heard_; }

  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  metrics::DropReason OnReply(QpContext& qp, Outbox& outbox, const wire::ChannelFrame& frame,
                              TimePoint now);
  metrics::DropReason OnReadResponse(QpContext& qp, Outbox& outbox, const wire::ChannelFrame& frame,
                                     std::span<const uint8_t> payload, TimePoint now);
  metrics::DropReason OnAtomicResult(QpContext& qp, Outbox& outbox, const wire::ChannelFrame& frame,
                                     TimePoint now);
  // Builds a lost frame again under its PSN. kVoid: nobody waits for it any more.
  flow::Resend Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  void OnDeadline(QpContext& qp, TimePoint now);
  void OnMemoryFault(QpContext& qp, Outbox& outbox, const AccessTag& tag);
  // The carrier, or one beside it, is gone, and with it what was under way.
  void OnCarrierLost(QpContext& qp);

  TimePoint deadline(const QpContext& qp) const;
  // Numbers for a person: next message, oldest that is not answered.
  uint32_t next_message() const { return cursor_ - base_; }
  uint32_t oldest_message() const { return send_.head() - base_; }

 private:
  enum class Sent : uint8_t { kYes, kPortFull, kGateClosed, kFailed };

  uint32_t NumberOf(uint32_t index) const { return index - base_; }
  SendEntry* Current(QpContext& qp, Outbox& outbox);
  bool MustWait(const QpContext& qp, const SendEntry& entry) const;
  void OpenWays(QpContext& qp, Outbox& outbox);
  // What a frame of that request leaves by now; nullptr: there is no room.
  flow::Carrier* WayOf(QpContext& qp, Outbox& outbox, const verbs::SendRequest& request,
                       uint32_t bytes, TimePoint now);
  Sent SendNext(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  // Fills a packet with the frame that begins at `offset`; false: its memory is gone.
  bool Fill(QpContext& qp, Outbox& outbox, const flow::CarrierAddress& to, uint32_t index,
            uint32_t offset, uint32_t bytes, Psn psn, port::TxPacket& packet);
  // The entry that an answer names; nullptr: none waits for it.
  SendEntry* Asked(const wire::ChannelFrame& frame, uint32_t& index);
  void MarkAnswered(const QpContext& qp, uint32_t end);
  void Answer(const QpContext& qp, uint32_t index);
  metrics::DropReason OnReplyAlone(QpContext& qp, Outbox& outbox, const wire::ChannelFrame& frame,
                                   TimePoint now);
  void GoBackTo(uint32_t index, uint8_t attempt);
  void WaitToOffer(uint32_t index, Duration least, TimePoint now);
  // When nobody will answer any more.
  TimePoint TimeoutOf(const QpContext& qp) const;

  SendQueue& send_;
  flow::Carrier* carrier_ = nullptr;
  uint32_t base_ = 0;      // index of message 0
  uint32_t cursor_ = 0;    // is being sent, or is the next to begin
  uint32_t ordered_ = 0;   // begun and not answered, of those that strong order waits for
  uint32_t receives_ = 0;  // receives taken at the peer by what was begun
  uint8_t attempt_ = 0;
  bool rnr_waiting_ = false;
  bool not_ready_ = false;       // the last answer was that nobody is there
  bool heard_ = false;           // the peer has answered something
  bool refused_ = false;         // a request was: nothing is sent any more, but answers still come
  bool offering_ = false;        // the first frame of a message has left, and nothing follows yet
  bool resent_ = false;          // a frame was sent again: the channel is slow, not silent
  bool knows_ways_ = false;      // channels beside its own are open, or there are none
  uint8_t careful_ = 0;          // so many messages are offered one by one
  uint32_t refused_number_ = 0;  // of the message that the receiver was last not ready for
  TimePoint refused_since_;
  TimePoint offer_until_;
  uint8_t rnr_left_ = 0;
  TimePoint rnr_until_;
  TimePoint progress_;  // the last answer from the peer, or the last frame that could leave
};

}  // namespace rocegw::transport
