// SPDX-License-Identifier: Apache-2.0
// The channels of one worker: finds or opens the one that a queue pair needs, takes what arrives
// for them, lets them send what is due. Channel numbers lie in the worker's buckets, beside those
// of queue pairs; they were drawn when the worker was made, so that opening a channel asks nobody.
// Belongs to one worker.
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
#include "gateway/channel/channel.h"
#include "gateway/channel/channel_index.h"
#include "gateway/channel/peer_traffic.h"
#include "gateway/channel/replay_window.h"
#include "gateway/flow/cc_class.h"
#include "gateway/verbs/channel_target.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::channel {

struct ChannelOptions {
  Qpn acceptor;              // where peers begin; of this worker
  std::vector<Qpn> numbers;  // for channels; at most so many are open at once
  uint32_t instance = 0;     // of the gateway: new with every start
  uint16_t worker = 0;       // index
  uint32_t features = 0;     // wire::GatewayOption bits that we offer and accept
  uint32_t window = 4096;    // packets that one channel's receiver takes ahead
  uint32_t paths = 1;        // channels side by side to the same worker, at most wire::kMostPaths
  SecretKey secret{};        // of epochs, first PSNs and tables
  // Answers to packets for no channel, each second.
  uint32_t reset_rate = 1000;
  // Half-open channels of one peer address (Channel::half_open).
  uint32_t half_open_limit = 128;
  // Channels of one stranger (no member of the fleet) that the stranger confirmed and that no queue
  // pair here uses.
  uint32_t idle_limit = 64;
};

// A frame that has arrived for the first time, and the channel that brought it.
struct Delivery {
  Channel* channel = nullptr;  // nullptr: there is nothing to deliver
  wire::ChannelFrame frame;
  std::span<const uint8_t> payload;
};

// Memory of a worker's channels, by what it is for.
struct ChannelBytes {
  size_t channels = 0;   // how many there are
  size_t objects = 0;    // themselves, as they rest
  size_t tables = 0;     // that find them
  size_t awake = 0;      // what those have on top that were in use within the last second
  size_t in_flight = 0;  // ledgers and bitmaps of what is under way
  size_t pooled = 0;     // kept for more of both
};

class ChannelSet {
 public:
  // Opens and takes no channels until Use.
  ChannelSet(metrics::WorkerCounters& counters, Owner& owner)
      : counters_(counters), owner_(owner), shared_(counters, owner) {}
  // Once, before there are any. `cc`: of all channels, but for its kind, which `policy` chooses
  // where it has rules, and else what both ends have in common.
  void Use(const ChannelOptions& options, const flow::CcConfig& cc, const flow::CcPolicy& policy,
           TimePoint now);

  // The fleet says whether this address is one of its gateways. Members are served first: the
  // limits on strangers do not hold for them, and an eighth of the numbers is theirs.
  void SetMember(const wire::Gid& peer, bool member);
  bool IsMember(const wire::Gid& peer) const { return members_.contains(peer); }

  // Keys of the fleet from now on. Channels that are open keep being authenticated or not.
  void SetKeys(const FleetKeys& keys) { shared_.keys = keys; }

  // The channel to that gateway's worker, opened when there is none; nullptr when there can be no
  // more. Which one of several paths says `number`: of an endpoint, or of both ends of a queue pair
  // together, so that what answers its requests has the same. `beside`: so many paths from there;
  // nullptr when there are fewer.
  Channel* Reach(const verbs::ChannelTarget& target, const wire::Path& path, uint32_t number,
                 uint32_t device, TimePoint now, uint32_t beside = 0);
  // There are so many paths from there.
  bool HasPath(uint32_t beside) const { return beside == 0 || beside < options_.paths; }
  // What Reach would find on a path that there is; nullptr: it would have to open one.
  Channel* Known(const verbs::ChannelTarget& target, const wire::Path& path, uint32_t number,
                 uint32_t beside = 0);
  // Likewise, from a channel that is open.
  Channel* Beside(const flow::Carrier& channel, uint32_t paths, TimePoint now);
  Channel* KnownBeside(const flow::Carrier& channel, uint32_t paths);
  bool HasBeside(const flow::Carrier& channel, uint32_t paths) {
    return OpenOne(channel, paths) != nullptr;
  }

  // A packet of a channel opcode. kNone also when there was nothing to deliver.
  metrics::DropReason OnPacket(uint32_t device, const wire::RxPacket& packet, TimePoint now,
                               Delivery& delivery);
  // The endpoint that a delivered frame names takes nothing now, or is not there: its sender is
  // told to try again.
  void RefuseEndpoint(const Delivery& delivery, TimePoint now);

  // Lost frames and what the channels have to say themselves. True when there was something. An
  // acknowledgement that is put off to a call behind the frames of the same round can leave in one
  // segmented datagram with them, being shorter.
  bool Run(TimePoint now, Acks acks);
  // Those who wait for room get it, as far as there is some. True when somebody did.
  bool GiveTurns(TimePoint now);
  // True when something was due.
  bool OnTimer(uint32_t slot, TimePoint now);
  // channel_congestion.cc
  // The policy's eye: looks now and then, and changes the algorithm of channels, some at a time.
  // True when a channel changed.
  bool LookAtCongestion(TimePoint now);

  std::vector<ChannelSnapshot> Snapshots() const;
  // By peer, for all that it has ever had.
  std::vector<PeerTraffic> Traffic() const;

  // Something is due although no timer says so.
  bool busy() const { return !shared_.lists.due.empty(); }
  ChannelBytes MeasureBytes() const;

 private:
  flow::CcKind CcFor(uint32_t common) const;
  uint8_t PathOf(uint32_t number, uint32_t beside) const;
  ChannelKey KeyOf(const verbs::ChannelTarget& target, const wire::Path& path, uint32_t number,
                   uint32_t beside) const;
  // nullptr: that one cannot have one beside it.
  Channel* OpenOne(const flow::Carrier& channel, uint32_t paths);
  ChannelKey KeyBeside(const Channel& channel, uint32_t paths) const;
  // The channel to an instance of the peer; nullptr: there is none.
  Channel* Known(const ChannelKey& key, uint32_t instance);
  // Likewise, made and begun at that acceptor when there is none.
  Channel* Find(const ChannelKey& key, Qpn acceptor, uint32_t instance, bool authenticated,
                uint32_t device, TimePoint now);
  uint32_t Random() { return static_cast<uint32_t>(random_.Next()); }
  bool enabled() const { return options_.acceptor != kInvalidQpn; }
  Channel* ByNumber(Qpn number);
  // One of those that are good, if any; one that is not half open where there is one.
  template <typename Good>
  Channel* ByKey(const ChannelKey& key, Good good);
  template <typename Good>
  Channel* ByPeer(const wire::Gid& peer, Qpn number, Good good);
  // `authenticated`: of the channel that the others make room for.
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
  // Numbers that are kept from that peer.
  size_t ReserveAgainst(const wire::Gid& peer, bool authentic) const {
    const bool strangers_only = members_.empty() && !shared_.keys.active();
    return strangers_only || authentic || members_.contains(peer) ? 0 : number_count_ / 8;
  }
  uint32_t OfferedFeatures() const {
    return options_.features | (shared_.keys.active() ? wire::kOptionAuthentication : 0u);
  }
  // Of a packet whose tag is good: whether it is the first with its sequence.
  bool TakeSequence(const wire::Gid& peer, uint16_t worker, const wire::ChannelControl& control);
  void TakePathOfAnother(Channel& channel);
  void Rearm(Channel& channel, TimePoint now);
  void Bury(Channel& channel);
  void KeepTraffic(const Channel& channel);
  bool TakesHalfOpen(const wire::Gid& peer, bool authentic);
  void AddHalfOpen(Channel& channel);
  void SettleHalfOpen(Channel& channel);
  // False: the stranger has as many as it may have.
  bool AddIdle(Channel& channel, TimePoint now);
  void SettleIdle(Channel& channel);
  // Closes what strangers do not use until there are more numbers than that, as far as there is
  // something to close.
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
  // A control packet, other than open and reset, of a channel that there is.
  metrics::DropReason OnControlOf(Channel& channel, const wire::ChannelControl& control,
                                  TimePoint now);
  metrics::DropReason Meet(Channel& channel, const wire::ChannelControl& control, bool answer,
                           TimePoint now);
  bool SendRefusal(Channel& channel, const flow::FrameRef& refusal, Psn psn);
  bool MayReset(TimePoint now);
  // `epoch`, `peer_epoch`: what the packet that is answered says of its receiver and its sender.
  // `tagged`: it was, so its sender knows tags.
  void SendReset(uint32_t device, const wire::RxPacket& packet, Qpn to, uint32_t epoch,
                 uint32_t peer_epoch, bool tagged, TimePoint now);
  void SendRefused(uint32_t device, const wire::RxPacket& packet,
                   const wire::ChannelControl& control, wire::ChannelReason why, TimePoint now);
  void Answer(uint32_t device, const wire::RxPacket& packet, Qpn to,
              const wire::ChannelControl& control);

  ChannelOptions options_;
  std::optional<flow::CcClass> class_;  // where the policy has rules
  flow::CcCounts counts_;
  SecretSequence random_{SecretKey{}};
  metrics::WorkerCounters& counters_;
  Owner& owner_;
  ChannelShared shared_;
  std::vector<std::unique_ptr<Channel>> slots_;
  std::vector<uint64_t> arrived_bytes_;    // by slot, of the channel that is there
  std::map<wire::Gid, PeerTraffic> gone_;  // of channels that are not any more
  std::vector<uint16_t> free_;
  ChannelIndex by_number_{0};
  ChannelIndex by_key_{0};
  ChannelIndex by_peer_{0};  // those whose peer's number is known
  std::deque<Qpn> numbers_;  // free, the longest unused first
  // Half-open ones, the oldest first; some are not any more, or not the same channel.
  struct Opened {
    uint32_t slot;
    uint32_t epoch;
  };
  GrowingRing<Opened> half_open_;
  // Confirmed channels of strangers that no queue pair here has used, the oldest first.
  struct Idle {
    uint32_t slot;
    TimePoint since;
  };
  std::deque<Idle> idle_;
  // How many, by hash of the address: where two share a limit, neither knows of whom.
  std::array<uint16_t, 256> half_open_of_{};
  std::array<uint16_t, 256> idle_of_{};
  std::set<wire::Gid> members_;
  // A worker of a peer that has a key of the fleet, from one start of its gateway to the next.
  struct Speaker {
    wire::Gid peer;
    uint32_t instance = 0;
    uint16_t worker = 0;
    auto operator<=>(const Speaker&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::map<Speaker, ReplayWindow> heard_;
  size_t number_count_ = 0;
  std::vector<uint16_t> running_;  // what was due when Run began; keeps its room
  double reset_tokens_ = 0;
  TimePoint reset_time_;
};

}  // namespace rocegw::channel
