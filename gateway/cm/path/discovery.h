// SPDX-License-Identifier: Apache-2.0
// Who is a gateway: the fleet's configuration names addresses that are gateways (members); what
// they can do, and who else is one, is asked. It asks each peer address once in ten minutes with a
// MAD that only gateways understand (wire/gateway_mad.h), remembers the answer, and answers the
// same question. An RDMA device refuses the MAD or keeps silent; both mean that it gets plain
// RoCEv2 and nothing else.
//
// A pure engine: MADs and time go in, actions come out; owned by the connection manager's core,
// control thread. Channels may be opened only to what TargetOf names, since only that has answered.
// Memory is bounded by the configuration; a question of a stranger makes no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "gateway/base/fleet_keys.h"
#include "gateway/base/ids.h"
#include "gateway/base/source_limits.h"
#include "gateway/base/time.h"
#include "gateway/base/token_bucket.h"
#include "gateway/cm/cm_action.h"
#include "gateway/cm/cm_config.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/verbs/channel_target.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::cm {

enum class PeerKind : uint8_t {
  kUnknown,  // never asked, or forgotten
  kAsking,
  kRnic,  // plain RoCEv2: it refused, kept silent, or is not asked at all
  kGateway,
};
const char* PeerKindName(PeerKind kind);

struct DiscoveryCounters {
  uint64_t asked = 0;     // addresses
  uint64_t sent = 0;      // queries, repetitions included
  uint64_t gateways = 0;  // answers
  uint64_t refused = 0;   // error statuses
  uint64_t silent = 0;
  uint64_t answered = 0;         // questions of others
  uint64_t not_answered = 0;     // beyond the rate
  uint64_t table_full = 0;       // addresses that were not asked for it
  uint64_t unauthenticated = 0;  // gateways that answered without a tag, of those in `gateways`
};

// One address, for people.
struct PeerRow {
  wire::Gid peer;
  PeerKind kind = PeerKind::kUnknown;
  wire::GatewayInfo info;  // gateways
  bool authenticated = false;
  TimePoint until;
};

class Discovery {
 public:
  // `random` outlives this object.
  Discovery(const DiscoveryConfig& config, RandomSource& random);

  // What this gateway says about itself from now on; instance and epoch are kept here.
  void SetOwn(const GatewaySettings& settings);
  const wire::GatewayInfo& own() const { return own_; }
  // Keys of the fleet from now on. What was found out before is asked again when it is over.
  void SetKeys(const FleetKeys& keys);
  bool enabled() const { return config_.enabled; }

  // What is known of the peer; unknown ones are asked, from `source`. While a gateway is asked anew
  // it stays one.
  PeerKind Ask(const wire::Gid& source, const wire::Gid& peer, TimePoint now, CmActions& actions);
  PeerKind KindOf(const wire::Gid& peer) const;
  // It counts as RDMA device because nothing came back.
  bool IsSilent(const wire::Gid& peer) const;
  // The peer is a gateway that has no key of the fleet, although this one has.
  bool IsUnauthenticated(const wire::Gid& peer) const;
  // Options of a gateway; 0 for anybody else. kOptionAuthentication only of one whose answer had a
  // good tag.
  uint32_t FeaturesOf(const wire::Gid& peer) const;
  // Where a channel to this queue pair leads. Nothing: the peer is no gateway with channels.
  std::optional<verbs::ChannelTarget> TargetOf(const wire::Gid& peer, Qpn destination) const;

  // The peer may be another one now (a channel was reset, its instance changed): the next Ask asks.
  void Forget(const wire::Gid& peer, CmActions& actions);
  // The fleet says that this address is, or is not any more, one of a gateway. It is asked all the
  // same, with more patience, and silence does not make it an RDMA device for long: it is away. Who
  // refuses is none, whatever the fleet says.
  void SetMember(const wire::Gid& peer, bool member);
  bool IsMember(const wire::Gid& peer) const { return members_.contains(peer); }
  // The peer talks like a gateway: if it counts as RDMA device it is asked again at the next
  // occasion.
  void Hint(const wire::Gid& peer);

  // A MAD of a vendor class. Peers whose question is settled by it are in actions.settled.
  metrics::DropReason OnMad(std::span<const uint8_t> bytes, const wire::RxMeta& meta,
                            Qpn source_qpn, TimePoint now, CmActions& actions);
  void OnDeadline(TimePoint now, CmActions& actions);
  TimePoint deadline() const { return waiting_.empty() ? kNever : waiting_.begin()->first; }

  const DiscoveryCounters& counters() const { return counters_; }
  size_t size() const { return peers_.size(); }
  std::vector<PeerRow> Rows() const;
  const std::set<wire::Gid>& members() const { return members_; }

 private:
  struct Peer {
    PeerKind kind = PeerKind::kUnknown;
    bool asking = false;
    bool silent = false;  // when it was asked last
    uint8_t sent = 0;     // queries of this question
    bool authenticated = false;
    uint8_t silences = 0;  // questions in a row without an answer
    wire::Gid source;
    uint64_t transaction_id = 0;  // kept after giving up: a late answer counts too
    TimePoint asked;
    TimePoint until;    // when it may be asked again; not while asking
    TimePoint waiting;  // its entry in waiting_, while asking
    wire::GatewayInfo info;

    // Its discovery datagrams are expected, so they have limits apart from those of strangers.
    bool known() const { return asking || kind == PeerKind::kGateway; }
  };
  using Peers = std::map<wire::Gid, Peer>;

  Duration GiveUp(const wire::Gid& gid) const {
    return IsMember(gid) ? config_.member_give_up : config_.give_up;
  }
  uint8_t MostQueries(const wire::Gid& gid) const {
    return IsMember(gid) ? config_.member_most_queries : config_.most_queries;
  }
  bool MakeRoom(TimePoint now, CmActions& actions);
  // How long silence of an address counts, `silences` times in a row.
  Duration RestAfterSilence(uint8_t silences) const;
  // Whether the address may have an answer now.
  bool MayAnswer(const wire::Gid& source, TimePoint now);
  void Send(const wire::Gid& gid, Peer& peer, TimePoint now, CmActions& actions);
  void StopAsking(const wire::Gid& gid, Peer& peer, CmActions& actions);
  void Encode(wire::GatewayMad& mad, SendMad& out) const;
  // kNone, or why the tag, or that there is none, forbids to look at the datagram.
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
  std::set<std::pair<TimePoint, wire::Gid>> waiting_;  // of those that are asked
  TokenBucket answers_;                                // of strangers
  SourceLimits answers_of_stranger_;
  SourceLimits answers_of_known_;
  std::map<wire::Gid, TokenBucket> answers_of_member_;
  DiscoveryCounters counters_;
};

}  // namespace rocegw::cm
