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
#include <memory>

#include "gateway/flow/carrier.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/send_queue.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

class MessageRequester {
 public:
  // RTR to RTS: from now on requests leave through the queue pair's carrier.
  void Start(const SendQueue& send, TimePoint now);
  // Takes the limits of the attributes over anew while it runs.
  void Configure(const QpContext& qp) {
    if (trouble_ != nullptr) trouble_->rnr_left = qp.attributes.rnr_retry;
  }
  // The queue has forgotten everything that was posted.
  void Reset();
  bool active() const { return active_; }
  // The peer has answered something since Start.
  bool heard() const { return heard_; }

  PumpResult Pump(QpContext& qp, SendQueue& send, Outbox& outbox, TimePoint now,
                  PumpBudget& budget);
  metrics::DropReason OnReply(QpContext& qp, SendQueue& send, Outbox& outbox,
                              const wire::ChannelFrame& frame, TimePoint now);
  metrics::DropReason OnReadResponse(QpContext& qp, SendQueue& send, Outbox& outbox,
                                     const wire::ChannelFrame& frame,
                                     std::span<const uint8_t> payload, TimePoint now);
  metrics::DropReason OnAtomicResult(QpContext& qp, SendQueue& send, Outbox& outbox,
                                     const wire::ChannelFrame& frame, TimePoint now);
  // Somebody waits for that frame.
  bool Wants(const QpContext& qp, const SendQueue& send, const flow::Carrier& carrier,
             const flow::FrameRef& frame) const;
  // One was sent again.
  void CountResent(QpContext& qp) {
    qp.worker->counters.retransmit_packets.Add();
    ++qp.retransmits;
    resent_ = true;
  }
  // Builds a lost frame again under its PSN. kVoid: nobody waits for it any more.
  flow::Resend Again(QpContext& qp, SendQueue& send, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  void OnDeadline(QpContext& qp, SendQueue& send, TimePoint now);
  void OnMemoryFault(QpContext& qp, SendQueue& send, Outbox& outbox, const AccessTag& tag);
  // The carrier, or one beside it, is gone, and with it what was under way.
  void OnCarrierLost(QpContext& qp, SendQueue& send);

  TimePoint deadline(const QpContext& qp, const SendQueue& send) const;
  // Numbers for a person: next message, oldest that is not answered.
  uint32_t next_message() const { return cursor_ - base_; }
  uint32_t oldest_message(const SendQueue& send) const { return send.head() - base_; }

 private:
  enum class Sent : uint8_t { kYes, kPortFull, kGateClosed, kFailed };

  uint32_t NumberOf(uint32_t index) const { return index - base_; }
  SendEntry* Current(QpContext& qp, SendQueue& send, Outbox& outbox);
  bool MustWait(const QpContext& qp, const SendQueue& send, const SendEntry& entry) const;
  void OpenWays(QpContext& qp, Outbox& outbox);
  // What a frame of that request leaves by now; nullptr: there is no room.
  flow::Carrier* WayOf(QpContext& qp, Outbox& outbox, const verbs::SendRequest& request,
                       uint32_t bytes, TimePoint now);
  Sent SendNext(QpContext& qp, SendQueue& send, Outbox& outbox, TimePoint now, PumpBudget& budget);
  // Fills a packet with the frame that begins at `offset`; false: its memory is gone.
  bool Fill(QpContext& qp, SendQueue& send, Outbox& outbox, const flow::CarrierAddress& to,
            uint32_t index, uint32_t offset, uint32_t bytes, Psn psn, port::TxPacket& packet);
  // The entry that an answer names; nullptr: none waits for it.
  SendEntry* Asked(SendQueue& send, const wire::ChannelFrame& frame, uint32_t& index) const;
  void MarkAnswered(const QpContext& qp, SendQueue& send, uint32_t end);
  void Answer(const QpContext& qp, SendQueue& send, uint32_t index);
  metrics::DropReason OnReplyAlone(QpContext& qp, SendQueue& send, Outbox& outbox,
                                   const wire::ChannelFrame& frame, TimePoint now);
  void GoBackTo(SendQueue& send, uint32_t index, uint8_t attempt);
  void WaitToOffer(const QpContext& qp, uint32_t index, Duration least, TimePoint now);
  // When nobody will answer any more.
  TimePoint TimeoutOf(const QpContext& qp, const SendQueue& send) const;

  // Of a receiver that was lately not ready for something.
  struct Trouble {
    uint8_t careful = 0;      // so many messages are offered one by one
    uint8_t rnr_left = 0;     // refusals that are not an error
    uint32_t number = 0;      // of the message that it was last not ready for
    TimePoint refused_since;  // that one
    TimePoint until;          // of the wait: before an offer, or for a refusal after one
  };
  Trouble& TroubleOf(const QpContext& qp);
  bool careful() const { return trouble_ != nullptr && trouble_->careful != 0; }
  // No wait is left, and it has taken enough.
  void EndTrouble() {
    if (!careful() && !rnr_waiting_ && !offering_) trouble_.reset();
  }

  uint32_t base_ = 0;      // index of message 0
  uint32_t cursor_ = 0;    // is being sent, or is the next to begin
  uint32_t receives_ = 0;  // receives taken at the peer by what was begun
  uint16_t ordered_ = 0;   // begun and not answered, of those that strong order waits for
  uint8_t attempt_ = 0;
  bool active_ : 1 = false;  // it has started, and its carrier is not lost
  bool rnr_waiting_ : 1 = false;
  bool not_ready_ : 1 = false;   // the last answer was that nobody is there
  bool heard_ : 1 = false;       // the peer has answered something
  bool refused_ : 1 = false;     // a request was: nothing is sent any more, but answers still come
  bool offering_ : 1 = false;    // the first frame of a message has left, and nothing follows yet
  bool resent_ : 1 = false;      // a frame was sent again: the channel is slow, not silent
  bool knows_ways_ : 1 = false;  // channels beside its own are open, or there are none
  TimePoint progress_;  // the last answer from the peer, or the last frame that could leave
  std::unique_ptr<Trouble> trouble_;  // nullptr: there is none
};
static_assert(sizeof(MessageRequester) <= 32);

}  // namespace rocegw::transport
