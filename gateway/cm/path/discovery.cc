// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/path/discovery.h"

#include <algorithm>

#include "gateway/wire/authentication.h"

namespace rocegw::cm {
namespace {

using metrics::DropReason;

// Options that a gateway has because of its keys, so only an authenticated peer can have them.
constexpr uint32_t kOptionsByKeys = wire::kOptionAuthentication | wire::kOptionSealing;

SendMad& AnswerTo(const wire::RxMeta& meta, Qpn source_qpn, CmActions& actions) {
  SendMad& out = actions.mads.emplace_back();
  out.path.source = meta.destination;
  out.path.destination = meta.source;
  out.path.traffic_class = wire::WithoutEcn(meta.traffic_class);
  out.destination = source_qpn;
  return out;
}

}  // namespace

const char* PeerKindName(PeerKind kind) {
  switch (kind) {
    case PeerKind::kUnknown:
      return "unknown";
    case PeerKind::kAsking:
      return "asking";
    case PeerKind::kRnic:
      return "RDMA device";
    case PeerKind::kGateway:
      return "gateway";
  }
  return "invalid";
}

Discovery::Discovery(const DiscoveryConfig& config, RandomSource& random)
    : config_(config),
      random_(random),
      answers_(config.answer_rate, config.answer_burst),
      answers_of_stranger_(DrawKey(random), config.source_answer_rate, config.source_answer_burst),
      answers_of_known_(DrawKey(random), config.source_answer_rate, config.source_answer_burst) {
  own_.features = wire::kOptionPresent;
  while (own_.instance == 0) own_.instance = static_cast<uint32_t>(random_.Next() >> 32);
}

void Discovery::SetOwn(const GatewaySettings& settings) {
  own_.workers = settings.workers;
  own_.features = settings.features | wire::kOptionPresent | (own_.features & kOptionsByKeys);
  own_.window = settings.window;
  own_.acceptors = settings.acceptors;
  ++own_.epoch;
}

void Discovery::SetKeys(const FleetKeys& keys) {
  keys_ = keys;
  own_.features &= ~kOptionsByKeys;
  if (keys.active()) own_.features |= wire::kOptionAuthentication;
  if (keys.seals()) own_.features |= wire::kOptionSealing;
  ++own_.epoch;
}

PeerKind Discovery::Ask(const wire::Gid& source, const wire::Gid& peer, TimePoint now,
                        CmActions& actions) {
  if (!config_.enabled) return PeerKind::kRnic;
  auto known = peers_.find(peer);
  if (known == peers_.end()) {
    if (!MakeRoom(now, actions)) {
      ++counters_.table_full;
      return PeerKind::kRnic;
    }
    known = peers_.try_emplace(peer).first;
    List(peer, known->second);
  }
  if (known->second.stranger) {
    Unlist(peer, known->second);
    CountAsKnown(known->second);
    List(peer, known->second);
  }
  return AskKnown(source, known, now, actions);
}

PeerKind Discovery::AskStranger(const wire::Gid& source, const wire::Gid& peer, TimePoint now,
                                CmActions& actions) {
  if (!config_.enabled || IsMember(peer)) return Ask(source, peer, now, actions);
  auto known = peers_.find(peer);
  if (known == peers_.end()) {
    const bool full = strangers_ >= std::max<size_t>(config_.max_peers / 4, 1) &&
                      !EvictExpired(Class::kStranger, now, actions);
    if (full || !MakeRoom(now, actions)) {
      ++counters_.table_full;
      return PeerKind::kUnknown;
    }
    known = peers_.try_emplace(peer).first;
    known->second.stranger = true;
    ++strangers_;
    List(peer, known->second);
  }
  return AskKnown(source, known, now, actions);
}

PeerKind Discovery::AskKnown(const wire::Gid& source, Peers::iterator known, TimePoint now,
                             CmActions& actions) {
  const wire::Gid& peer = known->first;
  Peer& entry = known->second;
  if (entry.asking || entry.until > now) return entry.kind;
  Unlist(peer, entry);
  if (!entry.known()) actions.acquaintances.push_back({peer, true});
  entry.asking = true;
  entry.silent = false;
  entry.asked = now;
  entry.sent = 0;
  entry.source = source;
  entry.transaction_id = random_.Next();
  if (entry.kind != PeerKind::kGateway) entry.kind = PeerKind::kAsking;
  ++counters_.asked;
  Send(peer, entry, now, actions);
  return entry.kind;
}

PeerKind Discovery::KindOf(const wire::Gid& peer) const {
  if (!config_.enabled) return PeerKind::kRnic;
  const auto known = peers_.find(peer);
  return known == peers_.end() ? PeerKind::kUnknown : known->second.kind;
}

bool Discovery::IsSilent(const wire::Gid& peer) const {
  const auto known = peers_.find(peer);
  return known != peers_.end() && known->second.kind == PeerKind::kRnic && known->second.silent;
}

uint32_t Discovery::FeaturesOf(const wire::Gid& peer) const {
  const auto known = peers_.find(peer);
  const bool gateway = known != peers_.end() && known->second.kind == PeerKind::kGateway;
  return gateway ? known->second.info.features : 0;
}

bool Discovery::IsUnauthenticated(const wire::Gid& peer) const {
  const auto known = peers_.find(peer);
  return keys_.active() && known != peers_.end() && known->second.kind == PeerKind::kGateway &&
         !known->second.authenticated;
}

std::optional<verbs::ChannelTarget> Discovery::TargetOf(const wire::Gid& peer,
                                                        Qpn destination) const {
  const auto known = peers_.find(peer);
  if (known == peers_.end() || known->second.kind != PeerKind::kGateway) return std::nullopt;
  const wire::GatewayInfo& info = known->second.info;
  if (wire::AgreedOptions(own_.features & info.features) == 0) return std::nullopt;
  if (keys_.required() && !known->second.authenticated) return std::nullopt;
  const uint32_t worker = info.WorkerOf(destination);
  return verbs::ChannelTarget{peer,          info.acceptors[worker], worker,
                              info.instance, info.features,          info.window};
}

void Discovery::Forget(const wire::Gid& peer, CmActions& actions) {
  const auto known = peers_.find(peer);
  if (known == peers_.end()) return;
  if (known->second.asking) {
    // Counts as asking until the answer arrives.
    known->second.kind = PeerKind::kAsking;
    return;
  }
  Erase(known, actions);
}

void Discovery::SetMember(const wire::Gid& peer, bool member) {
  if (!member) {
    members_.erase(peer);
    answers_of_member_.erase(peer);
    return;
  }
  answers_of_member_.try_emplace(peer, config_.source_answer_rate, config_.source_answer_burst);
  // An earlier result may belong to another host.
  if (members_.insert(peer).second) Hint(peer);
}

void Discovery::Hint(const wire::Gid& peer) {
  const auto known = peers_.find(peer);
  if (known == peers_.end() || known->second.kind != PeerKind::kRnic) return;
  Unlist(peer, known->second);
  known->second.until = std::min(known->second.until, known->second.asked + config_.hint_rest);
  List(peer, known->second);
}

DropReason Discovery::OnMad(std::span<const uint8_t> bytes, const wire::RxMeta& meta,
                            Qpn source_qpn, TimePoint now, CmActions& actions) {
  wire::GatewayMad mad;
  const DropReason reason = wire::DecodeGatewayMad(bytes, config_.vendor_id, mad);
  if (reason != DropReason::kNone || (!mad.response && !config_.enabled))
    return RefuseOther(bytes, reason, meta, source_qpn, now, actions);
  if (const DropReason wrong = CheckTag(mad, bytes, meta); wrong != DropReason::kNone) return wrong;
  return mad.response ? OnAnswer(mad, meta, now, actions)
                      : OnQuestion(mad, meta, source_qpn, now, actions);
}

// An RDMA device has no key, so its refusal carries no tag.
DropReason Discovery::CheckTag(const wire::GatewayMad& mad, std::span<const uint8_t> bytes,
                               const wire::RxMeta& meta) const {
  if (mad.status != 0) return DropReason::kNone;
  if (!mad.tagged) return keys_.required() ? DropReason::k_mad_no_tag : DropReason::kNone;
  if (!keys_.active()) return keys_.required() ? DropReason::k_mad_tag : DropReason::kNone;
  return wire::IsAuthenticMad(keys_.verifiers(), meta.source, meta.destination, bytes)
             ? DropReason::kNone
             : DropReason::k_mad_tag;
}

void Discovery::Encode(wire::GatewayMad& mad, SendMad& out) const {
  mad.info = own_;
  wire::EncodeGatewayMad(mad, config_.vendor_id, out.bytes);
  if (keys_.active())
    wire::SealGatewayMad(keys_.signer(), out.path.source, out.path.destination, out.bytes);
}

// Refuses a foreign MAD of our class, so that the sender does not wait for a timeout.
DropReason Discovery::RefuseOther(std::span<const uint8_t> bytes, DropReason reason,
                                  const wire::RxMeta& meta, Qpn source_qpn, TimePoint now,
                                  CmActions& actions) {
  if (reason == DropReason::kNone) reason = DropReason::k_mad_unknown_class;
  wire::MadBytes refusal;
  if (!wire::RefuseMad(bytes, refusal)) return reason;
  if (!MayAnswer(meta.source, now)) return DropReason::k_mad_rate;
  AnswerTo(meta, source_qpn, actions).bytes = refusal;
  return reason;
}

// Checks separate limits, so that one address cannot use up the answers of others, nor strangers
// those of members and known peers.
bool Discovery::MayAnswer(const wire::Gid& source, TimePoint now) {
  const auto member = answers_of_member_.find(source);
  if (member != answers_of_member_.end()) return member->second.Take(now);
  const auto peer = peers_.find(source);
  if (peer != peers_.end() && peer->second.known())
    return answers_of_known_.Take(source.bytes, now);
  return answers_of_stranger_.Take(source.bytes, now) && answers_.Take(now);
}

DropReason Discovery::OnQuestion(const wire::GatewayMad& mad, const wire::RxMeta& meta,
                                 Qpn source_qpn, TimePoint now, CmActions& actions) {
  if (!MayAnswer(meta.source, now)) {
    ++counters_.not_answered;
    return DropReason::k_mad_rate;
  }
  ++counters_.answered;
  wire::GatewayMad answer;
  answer.response = true;
  answer.transaction_id = mad.transaction_id;
  Encode(answer, AnswerTo(meta, source_qpn, actions));
  // The sender's claims about itself are not used, since the source may be forged. They are a
  // reason to ask it.
  const auto known = peers_.find(meta.source);
  if (known == peers_.end()) return DropReason::kNone;
  // A peer with a key would have tagged the question.
  if (keys_.active() && known->second.authenticated && !mad.tagged) return DropReason::kNone;
  if (known->second.kind == PeerKind::kGateway && known->second.info.instance != mad.info.instance)
    Forget(meta.source, actions);
  else
    Hint(meta.source);
  return DropReason::kNone;
}

DropReason Discovery::OnAnswer(const wire::GatewayMad& mad, const wire::RxMeta& meta, TimePoint now,
                               CmActions& actions) {
  const auto known = peers_.find(meta.source);
  if (known == peers_.end()) return DropReason::k_cm_unmatched;
  Peer& peer = known->second;
  if (peer.sent == 0 || peer.transaction_id != mad.transaction_id ||
      peer.source != meta.destination) {
    return DropReason::k_cm_unmatched;
  }
  Unlist(meta.source, peer);
  // An answer proves the address.
  CountAsKnown(peer);
  peer.sent = 0;  // a second answer to the same question gives no round trip
  peer.until = now + config_.trust;
  peer.silent = false;
  peer.silences = 0;
  if (mad.status != 0) {
    ++counters_.refused;
    peer.kind = PeerKind::kRnic;
    peer.authenticated = false;
  } else {
    ++counters_.gateways;
    peer.kind = PeerKind::kGateway;
    peer.info = mad.info;
    peer.authenticated = keys_.active() && mad.tagged;
    if (!peer.authenticated) {
      peer.info.features &= ~kOptionsByKeys;
      counters_.unauthenticated += keys_.active() ? 1 : 0;
    }
  }
  if (peer.asking)
    StopAsking(meta.source, peer, actions);
  else
    List(meta.source, peer);
  return DropReason::kNone;
}

void Discovery::OnDeadline(TimePoint now, CmActions& actions) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const wire::Gid gid = waiting_.begin()->second;
    Peer& peer = peers_.find(gid)->second;
    if (peer.sent < MostQueries(gid) && now < peer.asked + GiveUp(gid)) {
      waiting_.erase(waiting_.begin());
      Send(gid, peer, now, actions);
      continue;
    }
    ++counters_.silent;
    // Silence of a gateway means that it is away, not that it became an RDMA device.
    const bool away = peer.kind == PeerKind::kGateway || IsMember(gid);
    peer.until = now + (away ? config_.away_rest : RestAfterSilence(peer.silences));
    if (peer.silences < UINT8_MAX) ++peer.silences;
    peer.kind = PeerKind::kRnic;
    peer.authenticated = false;
    peer.silent = true;
    StopAsking(gid, peer, actions);
  }
}

Duration Discovery::RestAfterSilence(uint8_t silences) const {
  Duration rest = config_.away_rest;
  for (uint8_t i = 0; i < silences && rest < config_.trust; ++i) rest = rest * 2;
  return std::min(rest, config_.trust);
}

void Discovery::Send(const wire::Gid& gid, Peer& peer, TimePoint now, CmActions& actions) {
  wire::GatewayMad question;
  question.transaction_id = peer.transaction_id;
  SendMad& out = actions.mads.emplace_back();
  out.path.source = peer.source;
  out.path.destination = gid;
  Encode(question, out);
  ++counters_.sent;
  ++peer.sent;
  const TimePoint give_up = peer.asked + GiveUp(gid);
  peer.waiting = peer.sent < MostQueries(gid)
                     ? std::min(now + config_.resend_after * peer.sent, give_up)
                     : give_up;
  waiting_.insert({peer.waiting, gid});
}

void Discovery::StopAsking(const wire::Gid& gid, Peer& peer, CmActions& actions) {
  if (!peer.asking) return;
  peer.asking = false;
  List(gid, peer);
  if (!peer.known()) actions.acquaintances.push_back({gid, false});
  waiting_.erase({peer.waiting, gid});
  actions.settled.push_back(gid);
}

Discovery::Class Discovery::ClassOf(const Peer& peer) {
  if (peer.kind == PeerKind::kGateway) return Class::kGateway;
  return peer.stranger ? Class::kStranger : Class::kOther;
}

void Discovery::CountAsKnown(Peer& peer) {
  if (std::exchange(peer.stranger, false)) --strangers_;
}

void Discovery::Unlist(const wire::Gid& gid, const Peer& peer) {
  if (!peer.asking) resting_.erase({ClassOf(peer), peer.until, gid});
}

void Discovery::List(const wire::Gid& gid, const Peer& peer) {
  if (!peer.asking) resting_.insert({ClassOf(peer), peer.until, gid});
}

void Discovery::Erase(Peers::iterator known, CmActions& actions) {
  Unlist(known->first, known->second);
  if (known->second.known()) actions.acquaintances.push_back({known->first, false});
  CountAsKnown(known->second);
  peers_.erase(known);
}

bool Discovery::EvictExpired(Class of, TimePoint now, CmActions& actions) {
  const auto oldest = resting_.lower_bound({of, TimePoint{INT64_MIN}, wire::Gid{}});
  if (oldest == resting_.end() || std::get<Class>(*oldest) != of ||
      std::get<TimePoint>(*oldest) > now)
    return false;
  Erase(peers_.find(std::get<wire::Gid>(*oldest)), actions);
  return true;
}

// Evicts a peer that may be asked again, else the stranger, else the RDMA device that may be asked
// again soonest.
bool Discovery::MakeRoom(TimePoint now, CmActions& actions) {
  if (peers_.size() < config_.max_peers) return true;
  for (const Class of : {Class::kStranger, Class::kOther, Class::kGateway})
    if (EvictExpired(of, now, actions)) return true;
  if (resting_.empty() || std::get<Class>(*resting_.begin()) == Class::kGateway) return false;
  Erase(peers_.find(std::get<wire::Gid>(*resting_.begin())), actions);
  return true;
}

std::vector<PeerRow> Discovery::Rows() const {
  std::vector<PeerRow> rows;
  rows.reserve(peers_.size());
  for (const auto& [gid, peer] : peers_)
    rows.push_back({gid, peer.kind, peer.info, peer.authenticated, peer.until});
  return rows;
}

}  // namespace rocegw::cm
