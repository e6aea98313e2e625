// SPDX-License-Identifier: Apache-2.0
// A channel: the reliable transport between two workers of two gateways that all their queue pairs
// share (one for each traffic class and path). It owns one flow with selective repeat each way, a
// line of those who wait for room, and its own handshake. What frames mean is none of its business:
// whoever sent one is asked to build it again when it is lost, and whoever it is for takes it once.
//
// Life: kOpening until the peer has told its number, kOpen, kClosing when nobody has used it for
// long, kGone. A peer that has restarted answers with a reset: everything under way is lost, and
// the channel is gone. Belongs to a ChannelSet, and so to one worker.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/channel/line.h"
#include "gateway/channel/owner.h"
#include "gateway/flow/carrier.h"
#include "gateway/flow/cc_selector.h"
#include "gateway/flow/receive_window.h"
#include "gateway/flow/selective_flow.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"
#include "gateway/wire/congestion_hint.h"

namespace rocegw::channel {

enum class ChannelState : uint8_t { kOpening, kOpen, kClosing, kGone };

// What tells channels apart: who, with which of the peer's workers, how.
struct ChannelKey {
  wire::Gid source;
  wire::Gid peer;
  uint32_t peer_worker = 0;
  uint8_t traffic_class = 0;  // DSCP in the upper six bits
  uint8_t path = 0;
  bool operator==(const ChannelKey&) const = default;
};

// Channels of a set by what they need, as slots. Who is in them knows it.
struct ChannelLists {
  std::vector<uint32_t> due;      // something to send, or a deadline to arm
  std::vector<uint32_t> waiting;  // somebody in line, or just no more
};

// How a channel is, for people.
struct ChannelSnapshot {
  ChannelKey key;
  ChannelState state = ChannelState::kOpening;
  Qpn number;
  Qpn peer_number = kInvalidQpn;
  uint32_t features = 0;  // both have them; opening: offered
  flow::CcKind congestion = flow::CcKind::kStatic;
  uint64_t window = 0;  // bytes
  uint64_t in_flight = 0;
  Duration rtt;  // 0: not known
  Duration min_rtt;
  uint32_t users = 0;    // halves of queue pairs
  uint32_t waiting = 0;  // queue pairs in line
  uint32_t lost = 0;     // packets
  uint32_t resent = 0;
  uint32_t spurious = 0;
  uint32_t path_changes = 0;
};

// Sends a control packet. False: no packet.
bool SendControlPacket(Owner& owner, uint32_t device, const wire::Path& path, Qpn to, Qpn from,
                       const wire::ChannelControl& control);

class Channel final : public flow::Carrier {
 public:
  struct Options {
    Qpn number;  // our own
    uint32_t epoch = 0;
    Psn first;  // of our frames
    uint32_t instance = 0;
    uint16_t worker = 0;     // whose it is
    uint32_t window = 4096;  // packets that we take ahead
    uint32_t device = 0;
    uint32_t max_payload = 0;  // bytes of a frame
    uint32_t features = 0;     // wire::GatewayOption bits that we offer
    flow::LedgerPool* pool = nullptr;
    metrics::WorkerCounters* counters = nullptr;
  };
  Channel(const ChannelKey& key, const Options& options, TimePoint now);

  // The first step, ours: opens towards the peer's acceptor.
  void Open(Qpn acceptor, TimePoint now);
  // Where others to the same worker begin; the peer may have begun this one.
  void LearnAcceptor(Qpn acceptor) { acceptor_ = acceptor; }
  Qpn acceptor() const { return acceptor_; }
  // What the peer has told about itself, as the first step or as its answer. `answer`: it waits for
  // one. `cc`: how frames leave when this opens the channel. False: it contradicts what is known.
  bool OnPeer(const wire::ChannelControl& control, const flow::CcConfig& cc, bool answer,
              TimePoint now);
  // Of both ends, once it is open.
  uint32_t common() const { return features_; }
  // Another congestion control from now on.
  void SwitchCc(const flow::CcConfig& cc, TimePoint now);

  // flow::Carrier
  const flow::CarrierAddress& address() const override { return address_; }
  bool MaySend(flow::LinePlace& place, uint32_t bytes, TimePoint now) override;
  Psn OnSent(flow::LinePlace& place, const flow::FrameRef& frame, uint32_t bytes,
             TimePoint now) override;
  Duration round_trip() const override { return out_.rtt().smoothed(); }
  void Hold() override { ++users_; }
  void Release() override;

  // True: the frame is new, and to be delivered.
  // `hint`: byte 4 of its BTH.
  metrics::DropReason OnFrame(Psn psn, const wire::ChannelFrame& frame, uint32_t payload,
                              uint8_t hint, bool ce_marked, TimePoint now);
  // Adds what congestion control learns to the sums.
  void OnAck(Psn next, const wire::ChannelAck& ack, flow::CcCounts& counts, TimePoint now);
  void OnControl(const wire::ChannelControl& control);
  void OnDeadline(TimePoint now);
  TimePoint deadline(TimePoint now) const;
  // Ends it, whatever it was doing.
  void Abandon(wire::ChannelReason why);

  // Frames that are lost, oldest first, as far as they may leave now.
  bool NextLost(Psn& psn, flow::FrameRef& frame, uint32_t& bytes, TimePoint now) const;
  void OnResent(Psn psn, TimePoint now) { out_.OnResent(psn, now); }
  // Nobody needs that frame any more: one that says nothing takes its place. False: no packet.
  bool SendVoid(Owner& owner, Psn psn, TimePoint now);
  // A frame of nobody's, without payload. False: no packet.
  bool SendFrame(Owner& owner, Psn psn, wire::ChannelFrame& frame);
  // Acknowledgements and control packets that are due; false: some could not leave.
  bool SendOwn(Owner& owner, TimePoint now);
  // Somebody who waits may send now, when so many others have just been given their turns.
  bool HasTurn(TimePoint now, int given) const;
  SlotHandle NextTurn() { return line_.Pop(); }
  bool crowded() const { return !line_.empty(); }
  size_t line_bytes() const { return line_.bytes(); }

  ChannelKey key() const {
    return {address_.path.source, address_.path.destination, peer_worker_, class_, path_};
  }
  Qpn number() const { return address_.number; }
  Qpn peer_number() const { return address_.channel; }
  uint32_t epoch() const { return epoch_; }
  uint16_t epoch16() const { return static_cast<uint16_t>(epoch_); }
  uint32_t peer_epoch() const { return peer_epoch_; }
  uint32_t peer_instance() const { return peer_instance_; }
  ChannelState state() const { return state_; }
  wire::ChannelReason why() const { return why_; }
  bool used() const { return users_ != 0; }
  // The peer has shown that it hears us.
  bool confirmed() const { return confirmed_; }
  // Begun by the peer, which has not, nor does anybody here use it: who forges an address can make
  // such channels and no others.
  bool half_open() const { return !confirmed_ && users_ == 0; }
  const flow::SelectiveFlow& out() const { return out_; }
  // What it sends arrives, as far as is known.
  bool well() const {
    return state_ == ChannelState::kOpen && out_.rtt().has_sample() && out_.unanswered() == 0;
  }
  uint32_t path_changes() const { return repins_; }
  // Takes the path of one that is well.
  void Follow(const Channel& other);
  ChannelSnapshot Snapshot() const;

  void Due() {
    if (in_due) return;
    in_due = true;
    lists->due.push_back(slot);
  }

  // For the set that owns it.
  uint32_t slot = 0;
  bool in_due = false;
  bool in_waiting = false;
  bool counted = false;  // among the half-open ones of its peer's address
  // Begun by the peer, perhaps after a restart. Who says so may have forged its address: what was
  // there before ends when the peer has shown that it hears us.
  bool replaces = false;
  ChannelLists* lists = nullptr;
  TimePoint armed = kNever;  // in the worker's wheel

 private:
  // What is to be told next; one bit each.
  enum DueBit : uint8_t {
    kDueOpen = 1,
    kDueOpened = 2,
    kDueProbe = 4,
    kDueClose = 8,
    kDueClosed = 16,
  };
  // A turn in the line.
  static constexpr int32_t kQuantum = 16 * 1024;
  static constexpr Duration kFirstOpenResend = Milliseconds(5);
  static constexpr Duration kLastOpenResend = Milliseconds(160);
  static constexpr Duration kIdleTime = Seconds(60);
  // Probes that the peer repeats without having heard an answer until our path is suspected.
  static constexpr uint8_t kProbesInVain = 6;
  static constexpr Duration kHalfOpenTime = Seconds(5);

  // Nobody waits for a frame's arrival: answers tell.
  class Sink final : public flow::AckedSink {
   public:
    explicit Sink(flow::CcCounts& counts) : counts_(counts) {}
    void OnFrameAcked(Psn, const flow::FrameRef&) override {}
    void OnFeedback(const flow::CcFeedback& feedback) override;

   private:
    flow::CcCounts& counts_;
  };

  bool quiet() const { return users_ == 0 && out_.idle(); }
  TimePoint idle_until() const { return idle_since_ + (confirmed_ ? kIdleTime : kHalfOpenTime); }
  bool SendControl(Owner& owner, wire::ControlKind kind, Qpn to);
  bool SendAck(Owner& owner, TimePoint now);
  void ChangePath();
  void Pin(uint8_t hash);
  uint8_t OwnHash() const;
  // Frames may be marked by switches where somebody cares.
  void SetEcn(const flow::CcConfig& cc);

  // Touched by every frame.
  ChannelState state_ = ChannelState::kOpening;
  uint8_t due_ = 0;
  wire::ChannelReason why_ = wire::ChannelReason::kNone;
  uint8_t repins_ = 0;
  uint8_t probes_heard_ = 0;  // of the peer, and nothing else since
  bool confirmed_ = false;    // the peer has answered what only its address is told
  uint32_t users_ = 0;
  flow::CarrierAddress address_;
  flow::SelectiveFlow out_;
  flow::ReceiveWindow in_;
  wire::HintMeter hints_;  // of what has come
  Line line_;

  uint16_t peer_worker_;
  uint8_t class_;
  uint8_t path_;
  uint32_t features_;  // offered; from then on when it opens: what both have
  metrics::WorkerCounters* counters_;
  Qpn acceptor_;
  Psn first_;
  uint32_t epoch_;
  uint32_t peer_epoch_ = 0;
  uint32_t instance_;
  uint16_t worker_;
  uint32_t peer_instance_ = 0;
  uint32_t window_;
  uint32_t probe_answer_ = 0;  // number to echo with the next acknowledgement
  Duration open_resend_ = kFirstOpenResend;
  TimePoint handshake_at_ = kNever;
  TimePoint idle_since_;  // until it opens: when it was made
};

}  // namespace rocegw::channel
