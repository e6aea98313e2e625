// SPDX-License-Identifier: Apache-2.0
// Sending half of an RC queue pair whose peer sits behind another gateway. Work requests become
// numbered messages, and messages become frames of a channel. The channel delivers each frame once,
// in any order. A delivery never completes a request; replies, READ responses and atomic results do
// (IBTA 9.7.5). Belongs to one worker.
//
// A receiver that is not ready refuses a message. The requester then offers that message and all
// later ones again as a new attempt. Frames carry the attempt number, so that the receiver
// recognises late frames of an earlier attempt.
#pragma once

#include <cstdint>
#include <memory>

#include "gateway/flow/carrier.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/queues/send_queue.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

class MessageRequester {
 public:
  // RTR to RTS: from now on requests leave through the queue pair's carrier.
  void Start(QpContext& qp, const SendQueue& send, TimePoint now);
  // Applies changed attributes (rnr_retry) while the requester runs.
  void Configure(const QpContext& qp) {
    if (backoff_ != nullptr) backoff_->rnr_left = qp.attributes.rnr_retry;
  }
  // Resets all state. The caller has discarded the send queue's requests.
  void Reset() { backoff_.reset(); }
  // Returns true if the peer has answered anything since Start.
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
  // Returns true if a request still waits for the outcome of that frame.
  bool Wants(const QpContext& qp, const SendQueue& send, const flow::Carrier& carrier,
             const flow::FrameRef& frame) const;
  // Counts a frame that was sent again.
  void CountResent(QpContext& qp) {
    qp.worker->counters.retransmit_packets.Add();
    ++qp.retransmits;
    resent_ = true;
  }
  // Rebuilds a lost frame under its PSN. kVoid: no request waits for the frame any more.
  flow::Resend Again(QpContext& qp, SendQueue& send, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  void OnDeadline(QpContext& qp, SendQueue& send, TimePoint now);
  void OnMemoryFault(QpContext& qp, SendQueue& send, Outbox& outbox, const AccessTag& tag);
  // Handles the loss of the carrier, or of one beside it, with all frames in flight on it.
  void OnCarrierLost(QpContext& qp, SendQueue& send);

  TimePoint deadline(const QpContext& qp, const SendQueue& send) const;
  // Diagnostic numbers: the next message to send, and the oldest unanswered one.
  uint32_t next_message() const { return cursor_ - base_; }
  uint32_t oldest_message(const SendQueue& send) const { return send.head() - base_; }
  // Writes or reads the state and the request path, after the state of the send queue.
  void HandOver(hand_over::StateStream& state, QpContext& qp, const SendQueue& send);

 private:
  enum class Sent : uint8_t { kYes, kPortFull, kGateClosed, kFailed };

  uint32_t NumberOf(uint32_t index) const { return index - base_; }
  SendEntry* Current(QpContext& qp, SendQueue& send, Outbox& outbox);
  bool MustWait(const QpContext& qp, const SendQueue& send, const SendEntry& entry) const;
  void OpenPaths(QpContext& qp, Outbox& outbox);
  // Returns the carrier for the request's next frame. nullptr: no carrier has window for it.
  flow::Carrier* CarrierFor(QpContext& qp, Outbox& outbox, const verbs::SendRequest& request,
                            uint32_t bytes, TimePoint now);
  Sent SendNext(QpContext& qp, SendQueue& send, Outbox& outbox, TimePoint now, PumpBudget& budget);
  // Fills a packet with the frame that begins at `offset`. Returns false if its memory is not
  // accessible.
  bool Fill(QpContext& qp, SendQueue& send, Outbox& outbox, const flow::CarrierAddress& to,
            uint32_t index, uint32_t offset, uint32_t bytes, Psn psn, port::TxPacket& packet,
            PayloadUse use);
  // Returns the entry that an answer names. nullptr: no request waits for it.
  SendEntry* Asked(SendQueue& send, const wire::ChannelFrame& frame, uint32_t& index) const;
  void MarkAnswered(const QpContext& qp, SendQueue& send, uint32_t end);
  void Answer(const QpContext& qp, SendQueue& send, uint32_t index);
  metrics::DropReason OnReplyAlone(QpContext& qp, SendQueue& send, Outbox& outbox,
                                   const wire::ChannelFrame& frame, TimePoint now);
  void GoBackTo(SendQueue& send, uint32_t index, uint8_t attempt);
  void WaitToOffer(const QpContext& qp, uint32_t index, Duration least, TimePoint now);
  // Returns the time at which the requester stops waiting for an answer.
  TimePoint TimeoutOf(const QpContext& qp, const SendQueue& send) const;

  // RNR backoff: state of a requester whose peer was recently not ready for a message.
  struct RnrBackoff {
    uint8_t careful = 0;      // number of messages still to be offered one by one
    uint8_t rnr_left = 0;     // remaining refusals before the request fails (rnr_retry)
    uint32_t number = 0;      // number of the message that was refused last
    TimePoint refused_since;  // first refusal of that message
    TimePoint until;          // end of the wait: before an offer, or for a refusal after an offer
  };
  RnrBackoff& BackoffOf(const QpContext& qp);
  bool careful() const { return backoff_ != nullptr && backoff_->careful != 0; }
  // Ends the backoff when no wait is left and the peer has accepted enough messages.
  void EndBackoff() {
    if (!careful() && !rnr_waiting_ && !offering_) backoff_.reset();
  }

  uint32_t base_ = 0;      // send queue index of message 0
  uint32_t cursor_ = 0;    // send queue index that is being sent, or will begin next
  uint32_t receives_ = 0;  // number of receives that the begun messages take at the peer
  uint16_t ordered_ = 0;   // begun, unanswered messages that strong order waits for
  uint8_t attempt_ = 0;
  bool rnr_waiting_ : 1 = false;
  bool not_ready_ : 1 = false;  // the last answer was "endpoint not ready"
  bool heard_ : 1 = false;      // the peer has answered something
  // A request was refused: nothing more is sent, but answers still arrive.
  bool refused_ : 1 = false;
  // The first frame of a message has left, and the rest waits for a possible refusal.
  bool offering_ : 1 = false;
  bool resent_ : 1 = false;      // a frame was sent again: the channel is slow, not silent
  bool paths_open_ : 1 = false;  // channels beside its own are open, or there are none
  // Time of the last answer from the peer, or of the last frame that could leave.
  TimePoint progress_;
  std::unique_ptr<RnrBackoff> backoff_;  // nullptr: no RNR backoff
};
static_assert(sizeof(MessageRequester) <= 32);

}  // namespace rocegw::transport
