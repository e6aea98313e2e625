// SPDX-License-Identifier: Apache-2.0
// Channels of one worker: finds or opens the channel that a queue pair needs, takes packets for
// them, and lets them send what is due. Channel numbers lie in the worker's QPN buckets beside
// those of queue pairs and are drawn when the worker is created, so opening a channel needs no
// other thread. Belongs to one worker.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/fleet_keys.h"
#include "gateway/base/secret_sequence.h"
#include "gateway/base/token_bucket.h"
#include "gateway/channel/channel.h"
#include "gateway/channel/channel_index.h"
#include "gateway/channel/open_cookies.h"
#include "gateway/channel/peer_traffic.h"
#include "gateway/channel/replay_window.h"
#include "gateway/flow/cc_class.h"
#include "gateway/verbs/channel_target.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::channel {

struct ChannelOptions {
  Qpn acceptor;              // QPN at which peers open channels to this worker
  std::vector<Qpn> numbers;  // free channel numbers; the limit of open channels
  uint32_t instance = 0;     // instance number of the gateway, new at every start
  uint16_t worker = 0;       // index of the worker
  uint32_t features = 0;     // wire::GatewayOption bits offered and accepted
  uint32_t window = 4096;    // packets that one channel's receiver accepts ahead of a gap
  uint32_t paths = 1;        // channels to the same worker, one per path; at most wire::kMostPaths
  SecretKey secret{};        // seed of epochs, first PSNs and hash tables
  // Resets per second that answer packets for unknown channels.
  uint32_t reset_rate = 1000;
  // Limit of half-open channels per peer address (Channel::half_open). At the limit, and when a
  // quarter of all numbers is half-open, openings must prove their address by a cookie.
  uint32_t half_open_limit = 128;
  // Limit of confirmed channels per stranger (not a fleet member) that no queue pair here uses.
  uint32_t idle_limit = 64;
};

// Frame that arrived for the first time, and its channel.
struct Delivery {
  Channel* channel = nullptr;  // nullptr: nothing to deliver
  wire::ChannelFrame frame;
  std::span<const uint8_t> payload;
};

// Memory of a worker's channels by purpose, in bytes.
struct ChannelBytes {
  size_t channels = 0;   // number of channels
  size_t objects = 0;    // channel objects at rest
  size_t tables = 0;     // hash tables
  size_t awake = 0;      // awake state of channels used within the last second
  size_t in_flight = 0;  // records and bitmaps of frames in flight
  size_t pooled = 0;     // free list for both
};

class ChannelSet {
 public:
  // A new set opens and accepts no channels until Use.
  ChannelSet(metrics::WorkerCounters& counters, Owner& owner)
      : counters_(counters), owner_(owner), shared_(counters, owner) {}
  // Enables channels. Call once, before the first channel. `cc`: parameters of all channels. Its
  // kind holds only where `policy` has no rule; then both ends use the best kind they have in
  // common.
  void Use(const ChannelOptions& options, const flow::CcConfig& cc, const flow::CcPolicy& policy,
           TimePoint now);

  // Records if a peer address belongs to a gateway of the fleet. Limits on strangers do not hold
  // for members, and an eighth of the numbers is reserved for them.
  void SetMember(const wire::Gid& peer, bool member);
  bool IsMember(const wire::Gid& peer) const { return members_.contains(peer); }

  // Replaces the fleet's keys. An open channel stays authenticated or not.
  void SetKeys(const FleetKeys& keys) { shared_.keys = keys; }

  // Returns the channel to a worker of a gateway and opens it if necessary; nullptr: out of
  // numbers. `number` selects the path: the endpoint's number, or both ends of a queue pair
  // combined, so that responses use the path of their requests. `beside`: distance from that path;
  // nullptr if there are fewer paths.
  Channel* Reach(const verbs::ChannelTarget& target, const wire::Path& path, uint32_t number,
                 uint32_t device, TimePoint now, uint32_t beside = 0);
  // Returns true if a path at that distance exists.
  bool HasPath(uint32_t beside) const { return beside == 0 || beside < options_.paths; }
  // Returns an existing channel as Reach would find it; nullptr: Reach would have to open one.
  Channel* Known(const verbs::ChannelTarget& target, const wire::Path& path, uint32_t number,
                 uint32_t beside = 0);
  // Returns the channel `paths` further than an open channel, and opens it if necessary.
  Channel* Beside(const flow::Carrier& channel, uint32_t paths, TimePoint now);
  Channel* KnownBeside(const flow::Carrier& channel, uint32_t paths);
  // Returns the slot of the channel with that number, which must exist.
  uint32_t SlotOf(Qpn number) { return ByNumber(number)->slot(); }
  bool HasBeside(const flow::Carrier& channel, uint32_t paths) {
    return OpenOne(channel, paths) != nullptr;
  }

  // Processes a packet with a channel opcode. Also returns kNone if there is nothing to deliver.
  metrics::DropReason OnPacket(uint32_t device, const wire::RxPacket& packet, TimePoint now,
                               Delivery& delivery);
  // Answers a delivered frame whose endpoint does not exist or takes nothing now: its sender must
  // retry.
  void RefuseEndpoint(const Delivery& delivery, TimePoint now);

  // Resends lost frames and sends due packets of the channels. Returns true if anything was sent. A
  // postponed acknowledgement is shorter than the frames of the same round, so it can close their
  // segmented datagram.
  bool Run(TimePoint now, Acks acks);
  // Gives free window to waiting queue pairs. Returns true if any could send.
  bool GiveTurns(TimePoint now);
  // Returns true if a deadline had passed.
  bool OnTimer(uint32_t slot, TimePoint now);
  // channel_congestion.cc: applies the policy to some channels per call. Returns true if a channel
  // changed its algorithm.
  bool LookAtCongestion(TimePoint now);

  std::vector<ChannelSnapshot> Snapshots() const;
  // Returns sums per peer address, closed channels included.
  std::vector<PeerTraffic> Traffic() const;

  // Writes the state, or reads it into a set that Use has enabled with the same acceptor, instance
  // and numbers, and that has no channel. Members and keys of the fleet are not written: the
  // control thread reports them. The users of the channels are handed over next, then ArmTimers.
  void HandOver(hand_over::StateStream& state);
  // Arms the timers of channels that were read.
  void ArmTimers(TimePoint now);
  // Returns the channel with that number; nullptr: there is none.
  Channel* Find(Qpn number) { return ByNumber(number); }

  // Returns true if work is due that no timer announces.
  bool busy() const { return !shared_.lists.due.empty(); }
  ChannelBytes MeasureBytes() const;

 private:
  flow::CcKind CcFor(uint32_t common) const;
  uint8_t PathOf(uint32_t number, uint32_t beside) const;
  ChannelKey KeyOf(const verbs::ChannelTarget& target, const wire::Path& path, uint32_t number,
                   uint32_t beside) const;
  // Opens the channel `paths` further than the given one; nullptr: not possible.
  Channel* OpenOne(const flow::Carrier& channel, uint32_t paths);
  ChannelKey KeyBeside(const Channel& channel, uint32_t paths) const;
  // Returns the channel to an instance of the peer; nullptr: none.
  Channel* Known(const ChannelKey& key, uint32_t instance);
  // Returns that channel, opened at the acceptor if there was none.
  Channel* Find(const ChannelKey& key, Qpn acceptor, uint32_t instance, bool authenticated,
                uint32_t device, TimePoint now);
  uint32_t Random() { return static_cast<uint32_t>(random_.Next()); }
  bool enabled() const { return options_.acceptor != kInvalidQpn; }
  Channel* ByNumber(Qpn number);
  // Returns a channel for which `good` holds, preferably not a half-open one.
  template <typename Good>
  Channel* ByKey(const ChannelKey& key, Good good);
  template <typename Good>
  Channel* ByPeer(const wire::Gid& peer, Qpn number, Good good);
  // Closes the peer's older channels. `authenticated`: of the channel that replaces them.
  void EndOthersOf(const ChannelKey& key, uint32_t instance, bool authenticated);
  void EndOthersOf(const wire::Gid& peer, Qpn number, uint32_t epoch, bool authenticated);
  Channel* Make(const ChannelKey& key, bool authenticated, uint32_t device, TimePoint now);
  uint32_t HashOf(const ChannelKey& key) const;
  uint32_t HashOf(const wire::Gid& peer, Qpn number) const;
  uint32_t PeerHashOf(const Channel& channel) const;
  uint16_t& HalfOpenOf(const wire::Gid& peer) {
    return half_open_of_[PlaceOf(peer) % half_open_of_.size()];
  }
  uint16_t& IdleOf(const wire::Gid& peer) { return idle_of_[PlaceOf(peer) % idle_of_.size()]; }
  uint32_t PlaceOf(const wire::Gid& peer) const;
  // Returns how many free numbers this peer must leave to others.
  size_t ReserveAgainst(const wire::Gid& peer, bool authentic) const {
    const bool strangers_only = members_.empty() && !shared_.keys.active();
    return strangers_only || authentic || members_.contains(peer) ? 0 : number_count_ / 8;
  }
  uint32_t OfferedFeatures() const {
    return options_.features | (shared_.keys.active() ? wire::kOptionAuthentication : 0u);
  }
  // Checks the sequence number of a packet with a valid tag. Returns true if it is new.
  bool TakeSequence(const wire::Gid& peer, uint16_t worker, const wire::ChannelControl& control);
  void TakePathOfAnother(Channel& channel);
  void Rearm(Channel& channel, TimePoint now);
  void Bury(Channel& channel);
  void KeepTraffic(const Channel& channel);
  // Returns true if the sender of an opening must prove its address before it gets a number.
  bool DemandsCookie(const wire::Gid& peer);
  bool TakesNew(const wire::Gid& peer, bool authentic);
  void AddHalfOpen(Channel& channel);
  void SettleHalfOpen(Channel& channel);
  // Counts an unused channel of a stranger. Returns false if the stranger has its limit.
  bool AddIdle(Channel& channel, TimePoint now);
  void SettleIdle(Channel& channel);
  // Closes unused channels of strangers until more than `reserve` numbers are free, or none is left
  // to close.
  void MakeRoom(size_t reserve, TimePoint now);
  void Evict(Channel& channel);
  bool Resend(Channel& channel, TimePoint now);

  metrics::DropReason OnFrame(uint32_t device, const wire::RxPacket& packet, TimePoint now,
                              Delivery& delivery);
  metrics::DropReason OnControl(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason OnOpen(uint32_t device, const wire::RxPacket& packet,
                             const wire::ChannelControl& control, TimePoint now);
  bool Acceptable(const wire::ChannelControl& control) const;
  metrics::DropReason OnReset(const wire::RxPacket& packet, const wire::ChannelControl& control,
                              TimePoint now);
  // Handles a control packet, other than opening and reset, of a known channel.
  metrics::DropReason OnControlOf(Channel& channel, const wire::ChannelControl& control,
                                  TimePoint now);
  metrics::DropReason Meet(Channel& channel, const wire::ChannelControl& control, bool answer,
                           TimePoint now);
  bool SendRefusal(Channel& channel, const flow::FrameRef& refusal, Psn psn);
  bool MayReset(TimePoint now);
  // Sends a reset. `epoch`, `peer_epoch`: of receiver and sender as the answered packet states
  // them. `tagged`: that packet had a tag, so its sender knows tags.
  void SendReset(uint32_t device, const wire::RxPacket& packet, Qpn to, uint32_t epoch,
                 uint32_t peer_epoch, bool tagged, TimePoint now);
  // Asks the sender of an opening to repeat it with a cookie.
  void SendRetry(uint32_t device, const wire::RxPacket& packet, const wire::ChannelControl& control,
                 TimePoint now);
  void SendRefused(uint32_t device, const wire::RxPacket& packet,
                   const wire::ChannelControl& control, wire::ChannelReason why, TimePoint now);
  void Answer(uint32_t device, const wire::RxPacket& packet, Qpn to,
              const wire::ChannelControl& control);
  // hand_over/channel_set_state.cc:
  void HandOverChannel(hand_over::StateStream& state, uint32_t slot);
  void HandOverNumbers(hand_over::StateStream& state);
  void HandOverLists(hand_over::StateStream& state);
  void HandOverLimits(hand_over::StateStream& state);
  void HandOverPeers(hand_over::StateStream& state);

  static constexpr double kResetBurst = 64;
  // Limit of the sequence windows of peers with a key: 64 workers of each of 1024 gateways.
  static constexpr uint32_t kMostHeard = 65536;

  ChannelOptions options_;
  std::optional<flow::CcClass> class_;  // set if the policy has rules
  flow::CcCounts counts_;
  SecretSequence random_{SecretKey{}};
  OpenCookies cookies_;
  // Bounds the work that a flood of openings causes: each retry is a datagram to another address.
  TokenBucket retries_{5'000, 256};
  metrics::WorkerCounters& counters_;
  Owner& owner_;
  ChannelShared shared_;
  std::vector<std::unique_ptr<Channel>> slots_;
  std::vector<uint64_t> arrived_bytes_;    // per slot, for its current channel
  std::map<wire::Gid, PeerTraffic> gone_;  // sums of closed channels
  std::vector<uint16_t> free_;
  ChannelIndex by_number_{0};
  ChannelIndex by_key_{0};
  ChannelIndex by_peer_{0};  // channels whose peer number is known
  std::deque<Qpn> numbers_;  // free numbers, longest unused first
  // Half-open channels, oldest first. Entries may be stale: closed, confirmed, or another channel
  // in the slot.
  struct Opened {
    uint32_t slot;
    uint32_t epoch;
  };
  GrowingRing<Opened> half_open_;
  // Confirmed channels of strangers that no queue pair here has used, oldest first.
  struct Idle {
    uint32_t slot;
    TimePoint since;
  };
  std::deque<Idle> idle_;
  // Half-open channels per hash of the address. Addresses that collide share a limit.
  std::array<uint16_t, 256> half_open_of_{};
  std::array<uint16_t, 256> idle_of_{};
  std::set<wire::Gid> members_;
  // Worker of a peer that has a key of the fleet, during one run of its gateway.
  struct Speaker {
    wire::Gid peer;
    uint32_t instance = 0;
    uint16_t worker = 0;
    auto operator<=>(const Speaker&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::map<Speaker, ReplayWindow> heard_;
  size_t number_count_ = 0;
  std::vector<uint16_t> running_;  // due list of the current Run; keeps its capacity
  double reset_tokens_ = 0;
  TimePoint reset_time_;
};

}  // namespace rocegw::channel
