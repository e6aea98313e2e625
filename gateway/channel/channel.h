// SPDX-License-Identifier: Apache-2.0
// A channel: the reliable transport between two workers of two gateways that all their queue pairs
// share (one for each traffic class and path). It owns one flow with selective repeat each way, a
// line of those who wait for room, and its own handshake. What frames mean is none of its business:
// whoever sent one is asked to build it again when it is lost, and whoever it is for takes it once.
//
// Life: kOpening until the peer has told its number, kOpen, kClosing when nobody has used it for
// long, kGone. A peer that has restarted answers with a reset: everything under way is lost, and
// the channel is gone. Belongs to a ChannelSet, and so to one worker.
//
// Channels are many and most are idle. One that is open and has users, but has had nothing to do
// for a second, rests: flows, line and timers are put away (awake_channel.h), and what is left of
// them lies here until something moves again.
#pragma once

#include <cstdint>

#include "gateway/channel/awake_channel.h"
#include "gateway/flow/cc_selector.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"

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

// Whether acknowledgements that are due leave or wait for the next call.
enum class Acks : uint8_t { kNow, kLater };

// Sends a control packet; one that is to be tagged gets its sequence and its tag here. False: no
// packet.
bool SendControlPacket(ChannelShared& shared, uint32_t device, const wire::Path& path, Qpn to,
                       Qpn from, wire::ChannelControl control);

class Channel final : public flow::Carrier {
 public:
  struct Options {
    Qpn number;  // our own
    uint32_t epoch = 0;
    Psn first;  // of our frames
    uint8_t device = 0;
    uint32_t max_payload = 0;  // bytes of a frame, a multiple of kPayloadUnit
    uint32_t features = 0;     // wire::GatewayOption bits that we offer
    bool authenticated = false;
  };
  // Payloads begin and end at cache lines of what they carry.
  static constexpr uint32_t kPayloadUnit = 64;

  Channel(const ChannelKey& key, const Options& options, uint32_t slot, ChannelShared& shared,
          TimePoint now);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  // The first step, ours: opens towards the peer's acceptor.
  void Open(Qpn acceptor, TimePoint now);
  // Where others to the same worker begin; the peer may have begun this one.
  void LearnAcceptor(Qpn acceptor) { acceptor_ = acceptor.value & kQpnMask; }
  Qpn acceptor() const { return Qpn{acceptor_}; }
  // What the peer has told about itself, as the first step or as its answer. `answer`: it waits for
  // one. `kind`: congestion control when this opens the channel. False: it contradicts what is
  // known.
  bool OnPeer(const wire::ChannelControl& control, flow::CcKind kind, bool answer, TimePoint now);
  // Of both ends, once it is open.
  uint32_t common() const { return features_; }
  // Another congestion control from now on.
  void SwitchCc(flow::CcKind kind, TimePoint now);

  // flow::Carrier
  flow::CarrierAddress address() const override;
  const wire::Gid& peer() const override { return peer_; }
  Qpn number() const override { return Qpn{number_}; }
  uint32_t max_payload() const override { return payload_units_ * kPayloadUnit; }
  bool MaySend(const flow::LineMember& who, flow::LinePlace& place, uint32_t bytes,
               TimePoint now) override;
  bool MaySendLast(TimePoint now) override;
  Psn OnSent(const flow::LineMember& who, flow::LinePlace& place, const flow::FrameRef& frame,
             uint32_t bytes, TimePoint now) override;
  bool HasArrived(Psn psn) const override { return rests() || PsnBefore(psn, out().una()); }
  void TellArrivals() override { tells_arrivals_ = true; }
  Duration round_trip() const override { return rtt().smoothed(); }
  void Hold() override { ++users_; }
  void Release() override;

  // True: the frame is new, and to be delivered.
  // `hint`: byte 4 of its BTH.
  metrics::DropReason OnFrame(Psn psn, const wire::ChannelFrame& frame, uint32_t payload,
                              uint8_t hint, bool ce_marked, TimePoint now);
  // Adds what congestion control learns to the sums.
  void OnAck(Psn next, const wire::ChannelAck& ack, flow::CcCounts& counts, TimePoint now);
  // True: it has left its path.
  bool OnControl(const wire::ChannelControl& control, TimePoint now);
  bool OnDeadline(TimePoint now);
  TimePoint deadline(TimePoint now) const;
  // To be called after each event: one that nobody uses any more begins to count its time.
  void NoteUse(TimePoint now);
  // Asks the peer whether it has this channel, unless an earlier question is open.
  void Challenge(TimePoint now);
  // Ends it, whatever it was doing.
  void Abandon(wire::ChannelReason why);

  // Frames that are lost, oldest first, as far as they may leave now.
  bool NextLost(Psn& psn, flow::FrameRef& frame, uint32_t& bytes, TimePoint now) const;
  void OnResent(Psn psn, TimePoint now) { awake_->out.OnResent(psn, now); }
  // Nobody needs that frame any more: one that says nothing takes its place. False: no packet.
  bool SendVoid(Psn psn, TimePoint now);
  // A frame of nobody's, without payload. False: no packet.
  bool SendFrame(Psn psn, wire::ChannelFrame& frame);
  // Control packets and acknowledgements that are due, the latter unless they are put off; false:
  // some are left.
  bool SendOwn(TimePoint now, Acks acks);
  // Somebody who waits may send now, when so many others have just been given their turns.
  bool HasTurn(TimePoint now, int given) const;
  SlotHandle NextTurn() { return awake_->line.Pop(); }
  bool crowded() const { return in_waiting && !rests() && !awake_->line.empty(); }
  size_t line_bytes() const { return awake_ == nullptr ? 0 : awake_->line.bytes(); }

  ChannelKey key() const {
    return {shared_.sources[source_], peer_, peer_worker_, wire::WithoutEcn(class_),
            static_cast<uint8_t>(path_)};
  }
  uint32_t device() const { return device_; }
  Qpn peer_number() const { return Qpn{peer_number_}; }
  uint32_t epoch() const { return uint32_t{epoch_high_} << 16 | epoch16_; }
  uint16_t epoch16() const { return epoch16_; }
  uint32_t peer_epoch() const { return uint32_t{peer_epoch_high_} << 16 | peer_epoch16_; }
  uint32_t peer_instance() const { return peer_instance_; }
  ChannelState state() const { return state_; }
  wire::ChannelReason why() const { return why_; }
  bool used() const { return users_ != 0; }
  // Control packets of both ends carry tags; those without one change nothing.
  bool authenticated() const { return authenticated_; }
  // The peer has shown that it hears us.
  bool confirmed() const { return confirmed_; }
  // Begun by the peer, which has not, nor does anybody here use it: who forges an address can make
  // such channels and no others.
  bool half_open() const { return !confirmed_ && users_ == 0; }
  bool rests() const { return awake_ == nullptr; }
  // Of one that does not rest.
  const flow::SelectiveFlow& out() const { return awake_->out; }
  const flow::RttEstimator& rtt() const { return rests() ? resting_.out.rtt : out().rtt(); }
  flow::CcKind cc_kind() const { return rests() ? resting_.out.cc_kind() : out().cc_kind(); }
  // What it sends arrives, as far as is known.
  bool well() const {
    return state_ == ChannelState::kOpen && rtt().has_sample() &&
           (rests() || out().unanswered() == 0);
  }
  uint16_t source_port() const { return source_port_; }
  // Takes the path of one that is well.
  void Follow(const Channel& other);
  ChannelSnapshot Snapshot() const;

  void Due() {
    if (in_due) return;
    in_due = true;
    shared_.lists.due.push_back(slot_);
  }

  // For the set that owns it.
  uint32_t slot() const { return slot_; }
  TimePoint armed() const { return rests() ? kNever : awake_->armed; }
  void SetArmed(TimePoint when) {
    if (!rests()) awake_->armed = when;
  }

 private:
  // A turn in the line.
  static constexpr int16_t kQuantum = 16 * 1024;
  // What a frame costs in it beside its payload's bytes: it takes a place in the receiver's window,
  // of which there may be a hundred, and work at both ends, however little it carries.
  static constexpr uint32_t kFrameCost = 1024;
  static constexpr Duration kLastOpenResend = Milliseconds(160);
  static constexpr Duration kIdleTime = Seconds(60);
  // Probes that the peer repeats without having heard an answer until our path is suspected.
  static constexpr uint8_t kProbesInVain = 6;
  static constexpr Duration kHalfOpenTime = Seconds(5);
  static constexpr uint32_t kQpnMask = 0xFFFFFF;

  // Answers tell what has taken effect. That a frame has arrived matters to those who may have only
  // so much under way.
  class Sink final : public flow::AckedSink {
   public:
    // teller: nullptr: nobody needs to know of frames.
    Sink(flow::CcCounts& counts, const Channel* teller) : counts_(counts), teller_(teller) {}
    void OnFrameAcked(Psn, const flow::FrameRef& frame) override {
      if (teller_ != nullptr) teller_->shared_.owner.OnArrived(*teller_, frame);
    }
    void OnFeedback(const flow::CcFeedback& feedback) override;

   private:
    flow::CcCounts& counts_;
    const Channel* const teller_;
  };

  void Wake(TimePoint now);
  void Rest();
  TimePoint RestsAt() const;
  bool quiet() const { return users_ == 0 && (rests() || out().idle()); }
  TimePoint IdleUntil() const;
  bool SendControl(wire::ControlKind kind, Qpn to);
  // Control packets.
  bool SendDue();
  bool SendAck(TimePoint now);
  void ChangePath();
  void Pin(uint8_t hash);
  uint8_t OwnHash() const;
  flow::CcConfig CcOf(flow::CcKind kind) const;
  // Frames may be marked by switches where somebody cares.
  void SetEcnFor(flow::CcKind kind);
  void SetPeerEpoch(uint32_t epoch) {
    peer_epoch16_ = static_cast<uint16_t>(epoch);
    peer_epoch_high_ = static_cast<uint16_t>(epoch >> 16);
  }

  // The first line of memory has what every packet asks for, and what is written into it.
  ChannelShared& shared_;
  AwakeChannel* awake_ = nullptr;  // nullptr: it rests
  wire::Gid peer_;
  uint32_t number_ : 24;
  uint32_t class_ : 8;  // with ECN bits, as frames have it
  uint32_t peer_number_ : 24 = 0;
  uint32_t device_ : 8;
  uint32_t users_ : 29 = 0;

 public:
  // For the set that owns it, too.
  bool counted : 1 = false;           // among the half-open ones of its peer's address
  bool idle_of_stranger : 1 = false;  // counted among those of a stranger that nobody here uses
  // Begun by the peer, perhaps after a restart. Who says so may have forged its address: what was
  // there before ends when the peer has shown that it hears us.
  bool replaces : 1 = false;

 private:
  uint16_t slot_;
  uint16_t source_;  // in shared_.sources
  uint16_t epoch16_;
  uint16_t peer_epoch16_ = 0;
  uint16_t source_port_ = 0;
  uint8_t payload_units_;
  ChannelState state_ : 2 = ChannelState::kOpening;
  bool tells_arrivals_ : 1 = false;
  bool confirmed_ : 1 = false;  // the peer has answered what only its address is told
  bool asks_ack_ : 1 = false;   // the frame that leaves asks for its acknowledgement
  bool authenticated_ : 1 = false;

 public:
  bool in_due : 1 = false;
  bool in_waiting : 1 = false;  // somebody is in line, or was lately

 private:
  // Few.
  uint16_t epoch_high_;
  uint16_t peer_epoch_high_ = 0;
  uint32_t peer_instance_ = 0;
  uint32_t acceptor_ : 24 = 0;
  uint32_t path_ : 8;
  uint32_t features_;  // offered; from then on when it opens: what both have
  uint16_t peer_worker_;
  uint8_t repins_ = 0;
  wire::ChannelReason why_ = wire::ChannelReason::kNone;
  // While it rests.
  struct {
    flow::RestingFlow out;
    flow::RestingWindow in;
  } resting_;
};
static_assert(sizeof(Channel) <= 136);

}  // namespace rocegw::channel
