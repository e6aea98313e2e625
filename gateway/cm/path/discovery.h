// SPDX-License-Identifier: Apache-2.0
// Discovery of gateways. The fleet's configuration names addresses that are gateways (members);
// their options, and other gateways, are found by asking. Discovery asks a peer address once in ten
// minutes with a MAD that only gateways understand (wire/gateway_mad.h), keeps the answer, and
// answers the same question of others. An RDMA device refuses the MAD or is silent; both mean that
// it gets plain RoCEv2.
//
// MADs and time go in, actions come out. Owned by the connection manager's core, control thread.
// Channels may be opened only to targets of TargetOf, since only those have answered. Memory is
// bounded by the configuration; a stranger's question creates no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "gateway/base/fleet_keys.h"
#include "gateway/base/ids.h"
#include "gateway/base/source_limits.h"
#include "gateway/base/time.h"
#include "gateway/base/timing/token_bucket.h"
#include "gateway/cm/cm_action.h"
#include "gateway/cm/cm_config.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/verbs/channel_target.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::cm {

enum class PeerKind : uint8_t {
  kUnknown,  // never asked, or forgotten
  kAsking,
  kRnic,  // plain RoCEv2: refused, silent, or never asked by configuration
  kGateway,
};
const char* PeerKindName(PeerKind kind);

struct DiscoveryCounters {
  uint64_t asked = 0;     // addresses
  uint64_t sent = 0;      // queries, repetitions included
  uint64_t gateways = 0;  // answers
  uint64_t refused = 0;   // answers with an error status
  uint64_t silent = 0;
  uint64_t answered = 0;         // questions of others, answered
  uint64_t not_answered = 0;     // questions beyond the rate limit
  uint64_t table_full = 0;       // addresses not asked because the table was full
  uint64_t unauthenticated = 0;  // gateways that answered without a tag; part of `gateways`
};

// Row of one address, for display.
struct PeerRow {
  wire::Gid peer;
  PeerKind kind = PeerKind::kUnknown;
  wire::GatewayInfo info;  // gateways only
  bool authenticated = false;
  TimePoint until;
};

class Discovery {
 public:
  // `random` must outlive this object.
  Discovery(const DiscoveryConfig& config, RandomSource& random);

  // Sets what this gateway tells others; instance and epoch are chosen here.
  void SetOwn(const GatewaySettings& settings);
  const wire::GatewayInfo& own() const { return own_; }
  // Replaces the fleet's keys. Older results stay until they expire.
  void SetKeys(const FleetKeys& keys);
  bool enabled() const { return config_.enabled; }

  // Returns the kind of the peer; an unknown peer is asked, from `source`. A gateway stays a
  // gateway while it is asked again.
  PeerKind Ask(const wire::Gid& source, const wire::Gid& peer, TimePoint now, CmActions& actions);
  // The same for the source of a request, which may be forged. Such peers have a quarter of the
  // table, and no new one is asked while it is used up.
  PeerKind AskStranger(const wire::Gid& source, const wire::Gid& peer, TimePoint now,
                       CmActions& actions);
  PeerKind KindOf(const wire::Gid& peer) const;
  // Returns true if the peer counts as an RDMA device because it did not answer.
  bool IsSilent(const wire::Gid& peer) const;
  // Returns true if the peer is a gateway without a key of the fleet, and this one has keys.
  bool IsUnauthenticated(const wire::Gid& peer) const;
  // Returns a gateway's options, 0 for other peers. kOptionAuthentication only if its answer had a
  // valid tag.
  uint32_t FeaturesOf(const wire::Gid& peer) const;
  // Returns the target of a channel to this queue pair; nothing: the peer is not a gateway with
  // channels.
  std::optional<verbs::ChannelTarget> TargetOf(const wire::Gid& peer, Qpn destination) const;

  // Discards the result about a peer that may have changed (a channel was reset, another instance).
  // The next Ask asks it.
  void Forget(const wire::Gid& peer, CmActions& actions);
  // Records if the fleet's configuration names this address as a gateway. A member is asked too,
  // with more patience, and is "away" after silence instead of an RDMA device. A refusal makes it
  // an RDMA device in any case.
  void SetMember(const wire::Gid& peer, bool member);
  bool IsMember(const wire::Gid& peer) const { return members_.contains(peer); }
  // Marks a peer that behaves like a gateway: if it counts as an RDMA device, the next Ask asks it.
  void Hint(const wire::Gid& peer);

  // Handles a MAD of a vendor class. Peers whose question it answers are added to actions.settled.
  metrics::DropReason OnMad(std::span<const uint8_t> bytes, const wire::RxMeta& meta,
                            Qpn source_qpn, TimePoint now, CmActions& actions);
  void OnDeadline(TimePoint now, CmActions& actions);
  TimePoint deadline() const { return waiting_.empty() ? kNever : waiting_.begin()->first; }

  // Writes or reads the state; a reader reports the peers that it knows.
  void HandOver(hand_over::StateStream& state, CmActions& actions);
  // The part of it that never changes: peers know the gateway by its instance.
  void HandOverInstance(hand_over::StateStream& state);

  const DiscoveryCounters& counters() const { return counters_; }
  size_t size() const { return peers_.size(); }
  std::vector<PeerRow> Rows() const;
  const std::set<wire::Gid>& members() const { return members_; }

 private:
  struct Peer {
    PeerKind kind = PeerKind::kUnknown;
    bool asking = false;
    bool silent = false;  // time of the last question
    uint8_t sent = 0;     // queries sent for this question
    bool authenticated = false;
    bool stranger = false;  // asked because of a request alone
    uint8_t silences = 0;   // questions in a row without an answer
    wire::Gid source;
    uint64_t transaction_id = 0;  // kept after giving up: a late answer counts too
    TimePoint asked;
    TimePoint until;    // time from which it may be asked again; unused while asking
    TimePoint waiting;  // its key in waiting_ while asking
    wire::GatewayInfo info;

    // Returns true if its discovery datagrams are expected, so that they have limits apart from
    // strangers'.
    bool known() const { return asking || kind == PeerKind::kGateway; }
  };
  using Peers = std::map<wire::Gid, Peer>;
  // Peers that are not being asked, in the order in which they make room: strangers first, gateways
  // only once they may be asked again.
  enum class Class : uint8_t { kStranger, kOther, kGateway, kCount };
  using Resting = std::set<std::tuple<Class, TimePoint, wire::Gid>>;

  void HandOverPeer(hand_over::StateStream& state, const wire::Gid& gid, Peer& peer);
  Duration GiveUp(const wire::Gid& gid) const {
    return IsMember(gid) ? config_.member_give_up : config_.give_up;
  }
  uint8_t MostQueries(const wire::Gid& gid) const {
    return IsMember(gid) ? config_.member_most_queries : config_.most_queries;
  }
  static Class ClassOf(const Peer& peer);
  // Asks the peer unless its result still counts.
  PeerKind AskKnown(const wire::Gid& source, Peers::iterator known, TimePoint now,
                    CmActions& actions);
  bool MakeRoom(TimePoint now, CmActions& actions);
  // Evicts a peer of the class that may be asked again. Returns false if there is none.
  bool EvictExpired(Class of, TimePoint now, CmActions& actions);
  void Erase(Peers::iterator known, CmActions& actions);
  // Call before and after a change of what the order of resting peers depends on.
  // Ends the counting of the peer as a stranger. Call it between Unlist and List.
  void CountAsKnown(Peer& peer);
  void Unlist(const wire::Gid& gid, const Peer& peer);
  void List(const wire::Gid& gid, const Peer& peer);
  // Returns how long a result from silence counts, after `silences` times in a row.
  Duration RestAfterSilence(uint8_t silences) const;
  // Returns true if the rate limits allow an answer to the address.
  bool MayAnswer(const wire::Gid& source, TimePoint now);
  void Send(const wire::Gid& gid, Peer& peer, TimePoint now, CmActions& actions);
  void StopAsking(const wire::Gid& gid, Peer& peer, CmActions& actions);
  void Encode(wire::GatewayMad& mad, SendMad& out) const;
  // Returns kNone, or why a bad or missing tag forbids to use the datagram.
  metrics::DropReason CheckTag(const wire::GatewayMad& mad, std::span<const uint8_t> bytes,
                               const wire::RxMeta& meta) const;
  metrics::DropReason OnQuestion(const wire::GatewayMad& mad, const wire::RxMeta& meta,
                                 Qpn source_qpn, TimePoint now, CmActions& actions);
  metrics::DropReason OnAnswer(const wire::GatewayMad& mad, const wire::RxMeta& meta, TimePoint now,
                               CmActions& actions);
  metrics::DropReason RefuseOther(std::span<const uint8_t> bytes, metrics::DropReason reason,
                                  const wire::RxMeta& meta, Qpn source_qpn, TimePoint now,
                                  CmActions& actions);

  const DiscoveryConfig config_;
  RandomSource& random_;
  wire::GatewayInfo own_;
  FleetKeys keys_;
  Peers peers_;
  std::set<wire::Gid> members_;
  std::set<std::pair<TimePoint, wire::Gid>> waiting_;  // deadlines of asked peers
  Resting resting_;
  size_t strangers_ = 0;  // peers asked because of a request alone
  TokenBucket answers_;   // limit for strangers
  SourceLimits answers_of_stranger_;
  SourceLimits answers_of_known_;
  std::map<wire::Gid, TokenBucket> answers_of_member_;
  DiscoveryCounters counters_;
};

}  // namespace rocegw::cm
