// SPDX-License-Identifier: Apache-2.0
// Channels of one worker: finds or opens the channel that a queue pair needs, takes packets for
// them, and lets them send what is due. Channel numbers lie in the worker's QPN buckets beside
// those of queue pairs and are drawn when the worker is created, so opening a channel needs no
// other thread. Belongs to one worker.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gateway/base/fleet_keys.h"
#include "gateway/base/secret_sequence.h"
#include "gateway/channel/acceptor/control_answers.h"
#include "gateway/channel/acceptor/opening_limits.h"
#include "gateway/channel/acceptor/peer_sequences.h"
#include "gateway/channel/channel.h"
#include "gateway/channel/channel_table.h"
#include "gateway/channel/traffic_record.h"
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
  void SetMember(const wire::Gid& peer, bool member) { limits_.SetMember(peer, member); }
  const std::set<wire::Gid>& members() const { return limits_.members(); }
  bool IsMember(const wire::Gid& peer) const { return limits_.IsMember(peer); }

  // Replaces the fleet's keys. An open channel stays authenticated or not, and sealed or not.
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
  uint32_t SlotOf(Qpn number) { return table_.ByNumber(number)->slot(); }
  bool HasBeside(const flow::Carrier& channel, uint32_t paths) {
    return OpenOne(channel, paths) != nullptr;
  }

  // Processes a packet with a channel opcode. Also returns kNone if there is nothing to deliver.
  metrics::DropReason OnPacket(uint32_t device, const wire::RxPacket& packet, TimePoint now,
                               Delivery& delivery);
  // Opens a sealed datagram: verifies, and decrypts if it is encrypted. `inner` is complete only
  // with kNone, and valid until ForgetOpened or until the bytes of `sealed` end.
  metrics::DropReason OpenSeal(uint32_t device, const wire::RxPacket& sealed, TimePoint now,
                               wire::RxPacket& inner);
  void ForgetOpened() { shared_.protections.ForgetOpened(); }
  // Seals a packet with TxPacket::seal on its way to the port, once its bytes are complete. Returns
  // false if it must not leave.
  bool Seal(port::TxPacket& packet) { return shared_.protections.Seal(packet); }
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
  std::vector<PeerTraffic> Traffic() const { return traffic_.Rows(table_); }

  // Writes the state, or reads it into a set that Use has enabled with the same acceptor, instance
  // and numbers, and that has no channel. Members and keys of the fleet are not written: the
  // control thread reports them. The users of the channels are handed over next, then ArmTimers.
  void HandOver(hand_over::StateStream& state);
  // Arms the timers of channels that were read.
  void ArmTimers(TimePoint now);
  // Returns the channel with that number; nullptr: there is none.
  Channel* Find(Qpn number) { return table_.ByNumber(number); }

  // Returns true if work is due that no timer announces.
  bool busy() const { return !shared_.lists.due.empty(); }
  ChannelBytes MeasureBytes() const;

 private:
  // How the packets of a new channel are protected.
  enum class Security : uint8_t {
    kNone,
    kTagged,  // control packets have tags (Channel::authenticated)
    kSealed,  // likewise, and all other datagrams are sealed
  };

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
  Channel* Find(const ChannelKey& key, Qpn acceptor, uint32_t instance, Security security,
                uint32_t device, TimePoint now);
  uint32_t Random() { return static_cast<uint32_t>(random_.Next()); }
  bool enabled() const { return options_.acceptor != kInvalidQpn; }
  // Closes the peer's older channels. `authenticated`: of the channel that replaces them.
  void EndOthersOf(const ChannelKey& key, uint32_t instance, bool authenticated);
  void EndOthersOf(const wire::Gid& peer, Qpn number, uint32_t epoch, bool authenticated);
  Channel* Make(const ChannelKey& key, Security security, uint32_t device, TimePoint now);
  wire::SealOffer DrawOffer();
  // Returns how many free numbers this peer must leave to others.
  size_t ReserveAgainst(const wire::Gid& peer, bool authentic) const {
    const bool strangers_only = !limits_.has_members() && !shared_.keys.active();
    return strangers_only || authentic || IsMember(peer) ? 0 : table_.number_count() / 8;
  }
  uint32_t OfferedFeatures() const {
    return options_.features | (shared_.keys.active() ? wire::kOptionAuthentication : 0u) |
           (shared_.protections.offers() ? wire::kOptionSealing : 0u);
  }
  void TakePathOfAnother(Channel& channel);
  void Rearm(Channel& channel, TimePoint now);
  void Bury(Channel& channel);
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
  metrics::DropReason AskForCookie(uint32_t device, const wire::RxPacket& packet,
                                   const wire::ChannelControl& control, TimePoint now);
  bool Acceptable(const wire::ChannelControl& control) const;
  metrics::DropReason OnOpened(Channel& channel, const wire::ChannelControl& control,
                               TimePoint now);
  metrics::DropReason OnReset(const wire::RxPacket& packet, const wire::ChannelControl& control,
                              TimePoint now);
  // Handles a control packet, other than opening and reset, of a known channel.
  metrics::DropReason OnControlOf(Channel& channel, const wire::ChannelControl& control,
                                  TimePoint now);
  metrics::DropReason Meet(Channel& channel, const wire::ChannelControl& control, bool answer,
                           TimePoint now);
  bool SendRefusal(Channel& channel, const flow::FrameRef& refusal, Psn psn);
  // hand_over/channel_set_state.cc:
  void HandOverChannel(hand_over::StateStream& state, uint16_t version, uint32_t slot);
  void HandOverLists(hand_over::StateStream& state);

  ChannelOptions options_;
  std::optional<flow::CcClass> class_;  // set if the policy has rules
  flow::CcCounts counts_;
  uint64_t losses_before_ = 0;  // losses that the counter lacks, as an older gateway kept it
  SecretSequence random_{SecretKey{}};
  metrics::WorkerCounters& counters_;
  Owner& owner_;
  ChannelShared shared_;
  ChannelTable table_;
  OpeningLimits limits_{table_};
  ControlAnswers answers_{counters_, shared_};
  PeerSequences sequences_{table_};
  TrafficRecord traffic_;
  std::vector<uint16_t> running_;  // due list of the current Run; keeps its capacity
};

}  // namespace rocegw::channel
