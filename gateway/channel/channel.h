// SPDX-License-Identifier: Apache-2.0
// Reliable transport between two workers of two gateways, shared by all their queue pairs: one
// channel per traffic class and path. A channel owns one flow with selective repeat per direction,
// a wait queue of queue pairs without window, and its handshake. It does not interpret frames: the
// sending queue pair rebuilds a lost frame, and the receiving one gets each frame once.
//
// States: kOpening until the peer has sent its channel number, kOpen, kClosing after a long time
// without users, kGone. A peer that has restarted answers with a reset: all frames in flight are
// lost and the channel is gone. Belongs to a ChannelSet, and so to one worker.
//
// Channels are many and most are idle. An open channel with users rests after a second without
// work: its flows, wait queue and timers are packed into the few fields here until the next packet
// (awake_channel.h).
#pragma once

#include <cstdint>

#include "gateway/channel/awake_channel.h"
#include "gateway/flow/cc_selector.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::channel {

enum class ChannelState : uint8_t { kOpening, kOpen, kClosing, kGone };

// Identity of a channel: both addresses, the peer's worker, traffic class and path.
struct ChannelKey {
  wire::Gid source;
  wire::Gid peer;
  uint32_t peer_worker = 0;
  uint8_t traffic_class = 0;  // DSCP in the upper six bits
  uint8_t path = 0;
  bool operator==(const ChannelKey&) const = default;
};

// Copy of a channel's state, for display.
struct ChannelSnapshot {
  ChannelKey key;
  ChannelState state = ChannelState::kOpening;
  Qpn number;
  Qpn peer_number = kInvalidQpn;
  uint32_t features = 0;  // agreed by both ends; while opening: offered
  flow::CcKind congestion = flow::CcKind::kStatic;
  uint64_t window = 0;  // bytes
  uint64_t in_flight = 0;
  Duration rtt;  // 0: unknown
  Duration min_rtt;
  uint32_t users = 0;    // queue pair halves (requester or responder)
  uint32_t waiting = 0;  // queue pairs in the wait queue
  uint32_t lost = 0;     // packets
  uint32_t resent = 0;
  uint32_t spurious = 0;
  uint32_t path_changes = 0;
  bool sealed = false;
  SealSnapshot seal;  // set for a sealed channel
};

// Says if due acknowledgements leave now or wait for the next call.
enum class Acks : uint8_t { kNow, kLater };

// Sends a control packet, with sequence number and tag if it must have a tag. Returns false if the
// port has no buffer.
bool SendControlPacket(ChannelShared& shared, uint32_t device, const wire::Path& path, Qpn to,
                       Qpn from, wire::ChannelControl control);

class Channel final : public flow::Carrier {
 public:
  struct Options {
    Qpn number;  // channel number on this side
    uint32_t epoch = 0;
    Psn first;  // first PSN of our frames
    uint8_t device = 0;
    uint32_t max_payload = 0;  // bytes of a frame, a multiple of kPayloadUnit
    uint32_t features = 0;     // wire::GatewayOption bits that we offer
    bool authenticated = false;
    bool sealed = false;     // an authenticated channel whose datagrams are sealed
    wire::SealOffer seal{};  // ours, if sealed
  };
  // Frames are cut so that payloads begin and end at cache lines of the message.
  static constexpr uint32_t kPayloadUnit = 64;

  Channel(const ChannelKey& key, const Options& options, uint32_t slot, ChannelShared& shared,
          TimePoint now);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  // Sends the opening to the peer's acceptor.
  void Open(Qpn acceptor, TimePoint now);
  // Sets the acceptor for later channels to the same worker; the peer may have opened this one.
  void LearnAcceptor(Qpn acceptor) { acceptor_ = acceptor.value & kQpnMask; }
  Qpn acceptor() const { return Qpn{acceptor_}; }
  // Takes the peer's part of the handshake: its opening, or its answer to ours. `answer`: the peer
  // waits for our answer. `kind`: congestion control, if this opens the channel. Returns false if
  // the packet contradicts known state.
  bool OnPeer(const wire::ChannelControl& control, flow::CcKind kind, bool answer, TimePoint now);
  // Records that the peer has proved its address, by a cookie or by an answer.
  void Confirm() { confirmed_ = true; }
  // Options that both ends have; valid once open.
  uint32_t common() const { return features_; }
  // Returns true if the peer takes frames and acknowledgements in bundles.
  bool bundles() const { return (features_ & wire::kOptionBundles) != 0; }
  // Datagrams of the channel are sealed; while opening: offered.
  bool sealed() const { return sealed_; }
  // Replaces the congestion control algorithm.
  void SwitchCc(flow::CcKind kind, TimePoint now);

  // flow::Carrier
  flow::CarrierAddress address() const override;
  const wire::Gid& peer() const override { return peer_; }
  Qpn number() const override { return Qpn{number_}; }
  uint32_t max_payload() const override { return payload_units_ * kPayloadUnit; }
  bool MaySend(const flow::WindowWaiter& waiter, flow::WaitEntry& entry, uint32_t bytes,
               TimePoint now) override;
  bool MaySendLast(TimePoint now) override;
  Psn OnSent(const flow::WindowWaiter& waiter, flow::WaitEntry& entry, const flow::FrameRef& frame,
             uint32_t bytes, TimePoint now) override;
  bool HasArrived(Psn psn) const override { return rests() || PsnBefore(psn, out().una()); }
  void ReportArrivals() override { reports_arrivals_ = true; }
  Duration round_trip() const override { return rtt().smoothed(); }
  void Hold() override { ++users_; }
  void Release() override;

  // Returns kNone if the frame is new and must be delivered. `hint`: byte 4 of its BTH.
  metrics::DropReason OnFrame(Psn psn, const wire::ChannelFrame& frame, uint32_t payload,
                              uint8_t hint, bool ce_marked, TimePoint now);
  // Makes the next acknowledgement allow the peer few frames, because this side processes frames
  // more slowly than they arrive. Those that are under way are taken all the same. Call it after
  // OnFrame.
  void Narrow() { awake_->narrow = true; }
  // Releases acknowledged frames and adds congestion control's observations to `counts`.
  void OnAck(Psn next, const wire::ChannelAck& ack, flow::CcCounts& counts, TimePoint now);
  // Returns true if the channel changed its path.
  bool OnControl(const wire::ChannelControl& control, TimePoint now);
  bool OnDeadline(TimePoint now);
  TimePoint deadline(TimePoint now) const;
  // Starts the idle timer of an unused channel. The set calls this after each event.
  void NoteUse(TimePoint now);
  // Asks the peer by a probe if it knows this channel, unless a probe is outstanding.
  void Challenge(TimePoint now);
  // Closes the channel at once, in any state.
  void Abandon(wire::ChannelReason why);

  // Returns the oldest lost frame that may leave now; false: none.
  bool NextLost(Psn& psn, flow::FrameRef& frame, uint32_t& bytes, TimePoint now) const;
  void OnResent(Psn psn, TimePoint now) { awake_->out.OnResent(psn, now); }
  // Sends an empty frame under the PSN of a lost frame that is not needed any more. Returns false
  // if the port has no buffer.
  bool SendVoid(Psn psn, TimePoint now);
  // Sends a frame without payload that belongs to no queue pair. Returns false if the port has no
  // buffer.
  bool SendFrame(Psn psn, wire::ChannelFrame& frame);
  // Sends due control packets and acknowledgements. `acks` may postpone the latter. Returns false
  // if some are left.
  bool SendOwn(TimePoint now, Acks acks);
  // Returns true if a waiting queue pair may send now. `given`: queue pairs already released in
  // this call, each with a quantum.
  bool HasTurn(TimePoint now, int given) const;
  WorkerObject NextTurn() { return awake_->wait_queue.Pop(); }
  bool crowded() const { return in_waiting && !rests() && !awake_->wait_queue.empty(); }
  size_t wait_queue_bytes() const { return awake_ == nullptr ? 0 : awake_->wait_queue.bytes(); }

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
  // Control packets of both ends carry tags; packets without a tag change nothing.
  bool authenticated() const { return authenticated_; }
  // The peer has proved that it hears us.
  bool confirmed() const { return confirmed_; }
  // Opened by the peer, not confirmed, and unused here. An attacker with a forged address can
  // create only such channels.
  bool half_open() const { return !confirmed_ && users_ == 0; }
  bool rests() const { return awake_ == nullptr; }
  // Sending flow of an awake channel.
  const flow::SelectiveFlow& out() const { return awake_->out; }
  const flow::RttEstimator& rtt() const { return rests() ? resting_.out.rtt : out().rtt(); }
  flow::CcKind cc_kind() const { return rests() ? resting_.out.cc_kind() : out().cc_kind(); }
  // Returns true if frames arrive as far as known: no timeout is outstanding.
  bool well() const {
    return state_ == ChannelState::kOpen && rtt().has_sample() &&
           (rests() || out().unanswered() == 0);
  }
  uint16_t source_port() const { return source_port_; }
  // Takes over the path of a working channel.
  void Follow(const Channel& other);
  ChannelSnapshot Snapshot() const;
  // Writes the state, or reads it into a new channel that the set has made from the same key and
  // options. Users are not written: those that are handed over hold the channel.
  void HandOver(hand_over::StateStream& state);

  void Due() {
    if (in_due) return;
    in_due = true;
    shared_.lists.due.push_back(slot_);
  }

  // State for the owning set.
  uint32_t slot() const { return slot_; }
  TimePoint armed() const { return rests() ? kNever : awake_->armed; }
  void SetArmed(TimePoint when) {
    if (!rests()) awake_->armed = when;
  }

 private:
  // Bytes that a queue pair may send before it waits again.
  static constexpr int16_t kQuantum = 16 * 1024;
  // Fixed cost of a frame in its quantum. Every frame takes a slot in the receiver's window, which
  // may have only a hundred, and costs CPU time at both ends.
  static constexpr uint32_t kFrameCost = 1024;
  static constexpr Duration kIdleTime = Seconds(60);
  // Number of repeated probes without an answer of ours that makes us suspect our path.
  static constexpr uint8_t kProbesInVain = 6;
  static constexpr Duration kHalfOpenTime = Seconds(5);
  // Frames that an acknowledgement allows after Narrow: some for each tenant of the peer, which
  // serves them in turn.
  static constexpr uint32_t kNarrowRoom = 16;
  static constexpr uint32_t kQpnMask = 0xFFFFFF;

  // Receives the effects of an acknowledgement: counts congestion feedback, and reports frames to
  // the owner if a carrier's user limits what it has in flight.
  class Sink final : public flow::AckedSink {
   public:
    // `teller`: nullptr if frames need no report.
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
  bool IsPossible() const;
  bool quiet() const { return users_ == 0 && (rests() || out().idle()); }
  TimePoint IdleUntil() const;
  bool SendControl(wire::ControlKind kind, Qpn to);
  // Sends due control packets.
  bool SendDue();
  bool SendAck(TimePoint now);
  void ChangePath();
  void AgreeOnSeal(const wire::ChannelControl& control);
  uint32_t seal() const { return sealed_ ? slot_ + 1u : 0; }
  void Pin(uint8_t hash);
  uint8_t OwnHash() const;
  flow::CcConfig CcOf(flow::CcKind kind) const;
  // Sets the ECN bits that the congestion control algorithm needs.
  void SetEcnFor(flow::CcKind kind);
  void SetPeerEpoch(uint32_t epoch) {
    peer_epoch16_ = static_cast<uint16_t>(epoch);
    peer_epoch_high_ = static_cast<uint16_t>(epoch >> 16);
  }

  // The first cache line holds what every packet reads, and fields that change often.
  ChannelShared& shared_;
  AwakeChannel* awake_ = nullptr;  // nullptr while the channel rests
  wire::Gid peer_;
  uint32_t number_ : 24;
  uint32_t class_ : 8;  // with the ECN bits of our frames
  uint32_t peer_number_ : 24 = 0;
  uint32_t device_ : 8;
  uint32_t users_ : 29 = 0;

 public:
  // Flags for the owning set.
  bool counted : 1 = false;  // in the count of half-open channels of its peer address
  bool idle_of_stranger : 1 =
      false;  // in the count of a stranger's channels that no queue pair here uses
  // Opened by the peer, maybe after a restart. The address may be forged, so older channels are
  // closed only once the peer has proved that it hears us.
  bool replaces : 1 = false;

 private:
  uint16_t slot_;
  uint16_t source_;  // index in shared_.sources
  uint16_t epoch16_;
  uint16_t peer_epoch16_ = 0;
  uint16_t source_port_ = 0;
  uint8_t payload_units_ : 7;
  uint8_t sealed_ : 1 = 0;
  ChannelState state_ : 2 = ChannelState::kOpening;
  bool reports_arrivals_ : 1 = false;
  bool confirmed_ : 1 = false;  // the peer has answered what only its address was sent
  bool asks_ack_ : 1 = false;   // the next frame asks for an acknowledgement
  bool authenticated_ : 1 = false;

 public:
  bool in_due : 1 = false;
  bool in_waiting : 1 =
      false;  // in ChannelLists::waiting: the wait queue is not empty, or was lately

 private:
  // Rarely used fields.
  uint16_t epoch_high_;
  uint16_t peer_epoch_high_ = 0;
  uint32_t peer_instance_ = 0;
  uint32_t acceptor_ : 24 = 0;
  uint32_t path_ : 8;
  uint32_t features_;  // offered until open, then agreed by both ends
  uint16_t peer_worker_;
  uint8_t repins_ = 0;
  wire::ChannelReason why_ = wire::ChannelReason::kNone;
  // State of a resting channel.
  struct {
    flow::RestingFlow out;
    flow::RestingWindow in;
  } resting_;
};
static_assert(sizeof(Channel) <= 136);

}  // namespace rocegw::channel
