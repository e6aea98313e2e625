// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/channel_set.h"

#include <algorithm>
#include <utility>

#include "gateway/wire/authentication.h"
#include "gateway/wire/byte_order.h"

namespace rocegw::channel {

using metrics::DropReason;
using wire::ChannelControl;
using wire::ChannelReason;
using wire::ControlKind;
using wire::FrameKind;

namespace {
// RNR timer sent for an endpoint that is not ready: 1.28 ms (IBTA table 46).
constexpr uint8_t kNotReadyTimer = 14;
// Waiting queue pairs released at once when window opens; the next follow when these have sent.
constexpr int kTurnsAtOnce = 8;
}  // namespace

void ChannelSet::Use(const ChannelOptions& options, const flow::CcConfig& cc,
                     const flow::CcPolicy& policy, TimePoint now) {
  options_ = options;
  shared_.cc = cc;
  shared_.instance = options.instance;
  shared_.worker = options.worker;
  shared_.window = options.window;
  if (policy.count != 0) class_.emplace(policy, flow::CcKind::kCount, now);
  random_ = SecretSequence(options.secret);
  const uint64_t key_secret = random_.Next();
  const uint64_t peer_secret = random_.Next();
  table_.Use(options.numbers, key_secret, peer_secret);
  limits_.Use({.half_open = options.half_open_limit, .idle = options.idle_limit}, options.secret);
  const uint64_t cookie_low = random_.Next();
  const uint64_t cookie_high = random_.Next();
  answers_.Use(options.acceptor, options.reset_rate, OpenCookies({cookie_low, cookie_high}));
  options_.numbers = {};
}

ChannelBytes ChannelSet::MeasureBytes() const {
  ChannelBytes bytes{.awake = shared_.awake.bytes_used()};
  for (const auto& channel : table_.slots()) {
    if (channel == nullptr) continue;
    ++bytes.channels;
    bytes.awake += channel->wait_queue_bytes();
  }
  bytes.objects = bytes.channels * sizeof(Channel);
  const ChannelLists& lists = shared_.lists;
  const size_t listed = lists.due.capacity() + lists.waiting.capacity() + running_.capacity();
  bytes.tables = table_.bytes() + listed * sizeof(uint16_t) + shared_.sources.bytes();
  const flow::LedgerPool& ledgers = shared_.ledgers;
  bytes.in_flight = ledgers.bytes_used();
  bytes.pooled = ledgers.bytes_held() - ledgers.bytes_used() + shared_.awake.bytes_kept();
  return bytes;
}

wire::SealOffer ChannelSet::DrawOffer() {
  wire::SealOffer offer{.encrypts = shared_.protections.wants_encryption()};
  for (size_t at = 0; at < offer.salt.size(); at += 8)
    wire::StoreBe64(offer.salt.data() + at, random_.Next());
  return offer;
}

Channel* ChannelSet::Make(const ChannelKey& key, Security security, uint32_t device,
                          TimePoint now) {
  // A channel stores its device in one byte.
  if (!enabled() || table_.free_count() == 0 || device > UINT8_MAX) return nullptr;
  constexpr size_t kUnit = Channel::kPayloadUnit;
  constexpr size_t kOverhead = wire::kMaxPayloadHeaderLength + wire::kIcrcLength;
  const bool authenticated = security != Security::kNone;
  const bool sealed = security == Security::kSealed;
  const size_t overhead = kOverhead + (sealed ? wire::kSealLength : 0);
  const size_t room =
      std::min<size_t>(std::max(owner_.MaxDatagram(device, key.peer), overhead + kUnit) - overhead,
                       wire::kMaxPayload);
  const Channel::Options options{.number = table_.NextNumber(),
                                 .epoch = Random(),
                                 .first = Psn(Random()),
                                 .device = static_cast<uint8_t>(device),
                                 .max_payload = static_cast<uint32_t>(room - room % kUnit),
                                 .features = OfferedFeatures(),
                                 .authenticated = authenticated,
                                 .sealed = sealed,
                                 .seal = sealed ? DrawOffer() : wire::SealOffer{}};
  const uint32_t slot = table_.NextSlot();
  Channel& channel = table_.Add(std::make_unique<Channel>(key, options, slot, shared_, now));
  traffic_.Begin(slot);
  counters_.channel_open_events.Add();
  if (!authenticated && shared_.keys.active()) counters_.channel_unauthenticated_events.Add();
  return &channel;
}

// Spreads neighbouring numbers over different paths.
uint8_t ChannelSet::PathOf(uint32_t number, uint32_t beside) const {
  return static_cast<uint8_t>(((number * 0x9E3779B1u >> 16) + beside) %
                              std::max(options_.paths, 1u));
}

Channel* ChannelSet::Reach(const verbs::ChannelTarget& target, const wire::Path& path,
                           uint32_t number, uint32_t device, TimePoint now, uint32_t beside) {
  if (!HasPath(beside)) return nullptr;
  Security security = Security::kNone;
  if (shared_.keys.active() && (target.features & wire::kOptionAuthentication) != 0) {
    const bool seals =
        shared_.protections.offers() && (target.features & wire::kOptionSealing) != 0;
    security = seals ? Security::kSealed : Security::kTagged;
  }
  return Find(KeyOf(target, path, number, beside), target.acceptor, target.instance, security,
              device, now);
}

Channel* ChannelSet::Known(const verbs::ChannelTarget& target, const wire::Path& path,
                           uint32_t number, uint32_t beside) {
  return Known(KeyOf(target, path, number, beside), target.instance);
}

ChannelKey ChannelSet::KeyOf(const verbs::ChannelTarget& target, const wire::Path& path,
                             uint32_t number, uint32_t beside) const {
  return {.source = path.source,
          .peer = path.destination,
          .peer_worker = target.peer_worker,
          .traffic_class = wire::WithoutEcn(path.traffic_class),
          .path = PathOf(number, beside)};
}

Channel* ChannelSet::Beside(const flow::Carrier& channel, uint32_t paths, TimePoint now) {
  const Channel* const own = OpenOne(channel, paths);
  if (own == nullptr) return nullptr;
  const Security security = own->sealed()          ? Security::kSealed
                            : own->authenticated() ? Security::kTagged
                                                   : Security::kNone;
  return Find(KeyBeside(*own, paths), own->acceptor(), own->peer_instance(), security,
              own->device(), now);
}

Channel* ChannelSet::KnownBeside(const flow::Carrier& channel, uint32_t paths) {
  const Channel* const own = OpenOne(channel, paths);
  return own == nullptr ? nullptr : Known(KeyBeside(*own, paths), own->peer_instance());
}

Channel* ChannelSet::OpenOne(const flow::Carrier& channel, uint32_t paths) {
  Channel* const own = table_.ByNumber(channel.number());
  const bool has = own != nullptr && own->state() == ChannelState::kOpen && paths < options_.paths;
  return has ? own : nullptr;
}

ChannelKey ChannelSet::KeyBeside(const Channel& channel, uint32_t paths) const {
  ChannelKey key = channel.key();
  key.path = static_cast<uint8_t>((key.path + paths) % options_.paths);
  return key;
}

Channel* ChannelSet::Known(const ChannelKey& key, uint32_t instance) {
  return table_.ByKey(key, [&](const Channel& known) {
    return known.state() == ChannelState::kOpening || known.peer_instance() == instance;
  });
}

Channel* ChannelSet::Find(const ChannelKey& key, Qpn acceptor, uint32_t instance, Security security,
                          uint32_t device, TimePoint now) {
  Channel* channel = Known(key, instance);
  if (channel != nullptr) {
    channel->LearnAcceptor(acceptor);
    return channel;
  }
  // Discovery knows that the peer restarted; a channel to its earlier instance leads nowhere.
  if (shared_.keys.required() && security == Security::kNone) return nullptr;
  if (shared_.protections.required() && security != Security::kSealed) return nullptr;
  EndOthersOf(key, instance, true);
  MakeRoom(0, now);
  channel = Make(key, security, device, now);
  if (channel == nullptr) return nullptr;
  channel->Open(acceptor, now);
  channel->Due();
  return channel;
}

void ChannelSet::Rearm(Channel& channel, TimePoint now) {
  const TimePoint deadline = channel.deadline(now);
  if (deadline >= channel.armed()) return;
  channel.SetArmed(deadline);
  owner_.ArmChannel(channel.slot(), deadline);
}

// Moves a channel whose path failed to the path of a working channel to the same worker; without
// one, the channel keeps the path it drew.
void ChannelSet::TakePathOfAnother(Channel& channel) {
  ChannelKey key = channel.key();
  for (uint32_t others = wire::kMostPaths - 1; others != 0; --others) {
    key.path = static_cast<uint8_t>((key.path + 1) % wire::kMostPaths);
    const Channel* const other =
        table_.ByKey(key, [](const Channel& known) { return known.well(); });
    if (other != nullptr) return channel.Follow(*other);
  }
}

bool ChannelSet::OnTimer(uint32_t slot, TimePoint now) {
  if (table_.At(slot) == nullptr) return false;
  Channel& channel = *table_.At(slot);
  // A timer left over from before an earlier deadline was armed.
  if (channel.armed() > now && channel.armed() != kNever) return false;
  channel.SetArmed(kNever);
  if (channel.deadline(now) > now) {
    Rearm(channel, now);
    return false;
  }
  if (channel.OnDeadline(now)) TakePathOfAnother(channel);
  channel.Due();
  return true;
}

// Resends lost frames. Returns false if the port is full.
bool ChannelSet::Resend(Channel& channel, TimePoint now) {
  Psn psn;
  flow::FrameRef frame;
  uint32_t bytes;
  while (channel.NextLost(psn, frame, bytes, now)) {
    flow::Resend result = flow::Resend::kVoid;
    if (frame.owner.kind() == WorkerObject::Kind::kRefusal) {
      result = SendRefusal(channel, frame, psn) ? flow::Resend::kDone : flow::Resend::kPortFull;
    } else {
      result = owner_.BuildAgain(channel, frame, psn);
      wire::ChannelFrame answer;
      if (result == flow::Resend::kVoid && owner_.AnswerFromTombstone(frame, answer))
        result = channel.SendFrame(psn, answer) ? flow::Resend::kDone : flow::Resend::kPortFull;
    }
    if (result == flow::Resend::kPortFull) return false;
    if (result == flow::Resend::kDone) {
      channel.OnResent(psn, now);
    } else if (!channel.SendVoid(psn, now)) {
      return false;
    }
    counters_.channel_resent_packets.Add();
  }
  return true;
}

bool ChannelSet::Run(TimePoint now, Acks acks) {
  if (shared_.lists.due.empty()) return false;
  running_.clear();
  running_.swap(shared_.lists.due);
  for (const uint16_t slot : running_) {
    Channel& channel = *table_.At(slot);
    channel.in_due = false;
    const bool sent = Resend(channel, now) & channel.SendOwn(now, acks);
    if (channel.state() == ChannelState::kGone) {
      Bury(channel);
      continue;
    }
    if (channel.counted && !channel.half_open()) {
      limits_.SettleHalfOpen(channel);
      if (!limits_.AddIdle(channel, now)) {
        Evict(channel);
        continue;
      }
    }
    if (channel.idle_of_stranger && channel.used()) limits_.SettleIdle(channel);
    if (channel.replaces && channel.confirmed()) {
      channel.replaces = false;
      const bool authenticated = channel.authenticated();
      EndOthersOf(channel.key(), channel.peer_instance(), authenticated);
      EndOthersOf(channel.peer(), channel.peer_number(), channel.peer_epoch(), authenticated);
    }
    if (!sent) channel.Due();
    channel.NoteUse(now);
    Rearm(channel, now);
  }
  return true;
}

// Closes the channels to earlier instances of the peer. An authenticated channel is closed only for
// an authenticated one.
void ChannelSet::EndOthersOf(const ChannelKey& key, uint32_t instance, bool authenticated) {
  const auto other = [&](const Channel& known) {
    return known.state() != ChannelState::kOpening && known.peer_instance() != instance &&
           (authenticated || !known.authenticated());
  };
  while (Channel* old = table_.ByKey(key, other)) {
    old->Abandon(ChannelReason::kStaleEpoch);
    old->Due();
  }
}

// Closes channels whose peer number the peer has assigned again.
void ChannelSet::EndOthersOf(const wire::Gid& peer, Qpn number, uint32_t epoch,
                             bool authenticated) {
  const auto other = [&](const Channel& known) {
    return known.peer_epoch() != epoch && (authenticated || !known.authenticated());
  };
  while (Channel* old = table_.ByPeer(peer, number, other)) {
    old->Abandon(ChannelReason::kStaleEpoch);
    old->Due();
  }
}

void ChannelSet::Evict(Channel& channel) {
  counters_.channel_half_open_close_events.Add();
  channel.Abandon(ChannelReason::kNoResources);
  Bury(channel);
}

void ChannelSet::MakeRoom(size_t reserve, TimePoint now) {
  while (table_.free_count() <= reserve) {
    Channel* oldest = limits_.OldestHalfOpen();
    if (oldest == nullptr) oldest = limits_.OldestIdle(now);
    if (oldest == nullptr) return;
    Evict(*oldest);
  }
}

void ChannelSet::Bury(Channel& channel) {
  counters_.channel_close_events.Add();
  limits_.SettleHalfOpen(channel);
  limits_.SettleIdle(channel);
  // Every user holds the channel, so each must release it now.
  if (channel.used())
    owner_.OnChannelGone(channel, channel.peer_number() != kInvalidQpn, channel.why());
  const auto slot = static_cast<uint16_t>(channel.slot());
  owner_.OnRemove(channel, slot);
  // Last, because a release lists the channel once more.
  std::erase(shared_.lists.waiting, slot);
  std::erase(shared_.lists.due, slot);
  traffic_.Keep(channel);
  table_.Remove(slot);
}

std::vector<ChannelSnapshot> ChannelSet::Snapshots() const {
  std::vector<ChannelSnapshot> rows;
  for (const auto& channel : table_.slots()) {
    if (channel != nullptr) rows.push_back(channel->Snapshot());
  }
  return rows;
}

bool ChannelSet::GiveTurns(TimePoint now) {
  bool given = false;
  for (size_t i = 0; i < shared_.lists.waiting.size();) {
    Channel& channel = *table_.At(shared_.lists.waiting[i]);
    for (int turn = 0; turn < kTurnsAtOnce && channel.HasTurn(now, turn); ++turn) {
      owner_.OnTurn(channel, channel.NextTurn());
      given = true;
    }
    if (!channel.crowded()) {
      channel.in_waiting = false;
      shared_.lists.waiting[i] = shared_.lists.waiting.back();
      shared_.lists.waiting.pop_back();
    } else {
      // Pacing alone may have held the frames back.
      Rearm(channel, now);
      ++i;
    }
  }
  return given;
}

DropReason ChannelSet::OnPacket(uint32_t device, const wire::RxPacket& packet, TimePoint now,
                                Delivery& delivery) {
  delivery.channel = nullptr;
  switch (packet.traits->operation) {
    case wire::Operation::kChannelFrame:
      return OnFrame(device, packet, now, delivery);
    case wire::Operation::kChannelAck: {
      Channel* channel = table_.ByNumber(packet.headers.bth.dest_qpn);
      if (channel == nullptr) return DropReason::k_unknown_channel;
      if (packet.meta.source != channel->peer()) return DropReason::k_wrong_address;
      if (channel->sealed() && !packet.verified) return DropReason::k_channel_no_seal;
      wire::ChannelAck ack;
      if (const DropReason reason = wire::DecodeAck(packet.payload, ack);
          reason != DropReason::kNone) {
        return reason;
      }
      if (ack.epoch != channel->epoch16()) return DropReason::k_channel_epoch;
      const uint64_t before = counts_.acked_bytes;
      channel->OnAck(packet.headers.bth.psn, ack, counts_, now);
      traffic_.Arrived(channel->slot(), counts_.acked_bytes - before);
      counters_.channel_ack_rx_packets.Add();
      channel->Due();
      return DropReason::kNone;
    }
    default:
      return OnControl(device, packet, now);
  }
}

DropReason ChannelSet::OnFrame(uint32_t device, const wire::RxPacket& packet, TimePoint now,
                               Delivery& delivery) {
  if (const DropReason reason = wire::DecodeFrame(packet.payload, delivery.frame, delivery.payload);
      reason != DropReason::kNone) {
    return reason;
  }
  Channel* channel = table_.ByNumber(packet.headers.bth.dest_qpn);
  if (channel == nullptr) {
    // Tells the sender by a reset that this channel is unknown, most likely because this gateway
    // restarted.
    if (delivery.frame.kind != FrameKind::kVoid)
      answers_.SendReset(device, packet, delivery.frame.source, delivery.frame.epoch, 0, false,
                         now);
    return DropReason::k_unknown_channel;
  }
  if (packet.meta.source != channel->peer()) return DropReason::k_wrong_address;
  if (delivery.frame.epoch != channel->epoch16()) return DropReason::k_channel_epoch;
  if (channel->sealed() && !packet.verified) return DropReason::k_channel_no_seal;
  const bool marked = (packet.meta.traffic_class & wire::kEcnMask) == wire::kEcnCe;
  const DropReason reason = channel->OnFrame(packet.headers.bth.psn, delivery.frame,
                                             static_cast<uint32_t>(delivery.payload.size()),
                                             packet.headers.bth.hint(), marked, now);
  channel->Due();
  if (reason != DropReason::kNone) return reason;
  counters_.channel_rx_packets.Add();
  if (delivery.frame.kind != FrameKind::kVoid) delivery.channel = channel;
  return DropReason::kNone;
}

DropReason ChannelSet::OpenSeal(uint32_t device, const wire::RxPacket& sealed, TimePoint now,
                                wire::RxPacket& inner) {
  wire::SealedParts parts;
  if (const DropReason reason = wire::DecodeSealed(sealed, parts); reason != DropReason::kNone)
    return reason;
  const Channel* const channel = table_.ByNumber(sealed.headers.bth.dest_qpn);
  if (channel == nullptr) {
    answers_.SendReset(device, sealed, parts.trailer.channel, parts.trailer.epoch, 0, false, now);
    return DropReason::k_unknown_channel;
  }
  if (sealed.meta.source != channel->peer()) return DropReason::k_wrong_address;
  if (parts.trailer.epoch != channel->epoch16()) return DropReason::k_channel_epoch;
  return shared_.protections.Open(channel->slot(), sealed, parts, inner);
}

void ChannelSet::RefuseEndpoint(const Delivery& delivery, TimePoint now) {
  const wire::ChannelFrame& frame = delivery.frame;
  // Only requests wait for an answer.
  if (frame.kind == FrameKind::kReply || frame.kind == FrameKind::kReadResponse ||
      frame.kind == FrameKind::kAtomicResult) {
    return;
  }
  Channel& channel = *delivery.channel;
  const flow::FrameRef refusal{
      .owner = {WorkerObject::Kind::kRefusal, {frame.destination.value, 0}},
      .message = frame.message,
      .offset = frame.source.value,
      .kind = static_cast<uint8_t>(FrameKind::kReply),
      .extra = static_cast<uint8_t>(frame.attempt + 1)};
  flow::WaitEntry entry{.credit = INT16_MAX};
  if (!channel.out().MaySend(0, now)) return;
  const Psn psn = channel.OnSent({}, entry, refusal, 0, now);
  SendRefusal(channel, refusal, psn);
  channel.Due();
}

bool ChannelSet::SendRefusal(Channel& channel, const flow::FrameRef& refusal, Psn psn) {
  wire::ChannelFrame frame{.kind = FrameKind::kReply,
                           .destination = Qpn{refusal.offset},
                           .source = Qpn{refusal.owner.slot().index},
                           .syndrome = wire::kSyndromeNotReady | kNotReadyTimer,
                           .attempt = refusal.extra,
                           .message = refusal.message};
  return channel.SendFrame(psn, frame);
}

DropReason ChannelSet::OnControl(uint32_t device, const wire::RxPacket& packet, TimePoint now) {
  ChannelControl control;
  if (const DropReason reason = wire::DecodeControl(packet.payload, control);
      reason != DropReason::kNone) {
    return reason;
  }
  counters_.channel_control_rx_packets.Add();
  if (control.tagged &&
      !wire::IsAuthentic(shared_.keys.verifiers(), packet.meta.source, packet.meta.destination,
                         packet.headers.bth.dest_qpn, packet.payload)) {
    return DropReason::k_channel_tag;
  }
  if (control.kind == ControlKind::kOpen) return OnOpen(device, packet, control, now);
  if (control.kind == ControlKind::kReset) return OnReset(packet, control, now);
  Channel* channel = table_.ByNumber(packet.headers.bth.dest_qpn);
  if (channel == nullptr) {
    if (control.kind == ControlKind::kProbe || control.kind == ControlKind::kOpened)
      answers_.SendReset(device, packet, Qpn{control.channel}, control.peer_epoch, control.epoch,
                         control.tagged, now);
    return DropReason::k_unknown_channel;
  }
  if (packet.meta.source != channel->peer()) return DropReason::k_wrong_address;
  if (control.peer_epoch != channel->epoch()) return DropReason::k_channel_epoch;
  return OnControlOf(*channel, control, now);
}

DropReason ChannelSet::OnControlOf(Channel& channel, const ChannelControl& control, TimePoint now) {
  if (channel.authenticated()) {
    if (!control.tagged) return DropReason::k_channel_no_tag;
    const auto worker = static_cast<uint16_t>(channel.key().peer_worker);
    if (!sequences_.Take(channel.peer(), worker, control)) return DropReason::k_channel_replayed;
  }
  if (control.kind == ControlKind::kOpened) return OnOpened(channel, control, now);
  if (channel.OnControl(control, now)) TakePathOfAnother(channel);
  channel.Due();
  return DropReason::kNone;
}

DropReason ChannelSet::OnOpened(Channel& channel, const ChannelControl& control, TimePoint now) {
  if (!Acceptable(control)) {
    channel.Abandon(ChannelReason::kUnsupported);
    channel.Due();
    return DropReason::k_channel_refused;
  }
  const bool opening = channel.state() == ChannelState::kOpening;
  if (opening && shared_.protections.required() && !(channel.sealed() && control.seals)) {
    channel.Abandon(ChannelReason::kNotAllowed);
    channel.Due();
    return DropReason::k_channel_no_seal;
  }
  return Meet(channel, control, false, now);
}

// Returns true if both ends have a common set of options. Frames always carry their ICRC.
bool ChannelSet::Acceptable(const ChannelControl& control) const {
  return wire::AgreedOptions(OfferedFeatures() & control.features) != 0 &&
         control.checksum_mode == 0;
}

DropReason ChannelSet::OnOpen(uint32_t device, const wire::RxPacket& packet,
                              const ChannelControl& control, TimePoint now) {
  if (!enabled() || packet.headers.bth.dest_qpn != options_.acceptor)
    return DropReason::k_unknown_channel;
  if (shared_.keys.required() && !control.tagged) {
    answers_.SendRefused(device, packet, control, ChannelReason::kNotAllowed, now);
    return DropReason::k_channel_no_tag;
  }
  const bool proven = answers_.IsProven(packet, control, now);
  if (control.tagged) {
    const wire::Gid& peer = packet.meta.source;
    if (!proven && sequences_.MayHaveForgotten(peer, control.worker, control))
      return AskForCookie(device, packet, control, now);
    if (!sequences_.Take(peer, control.worker, control)) return DropReason::k_channel_replayed;
  }
  if (shared_.protections.required() && !(control.seals && shared_.protections.offers())) {
    answers_.SendRefused(device, packet, control, ChannelReason::kNotAllowed, now);
    return DropReason::k_channel_no_seal;
  }
  if (!Acceptable(control)) {
    answers_.SendRefused(device, packet, control, ChannelReason::kUnsupported, now);
    return DropReason::k_channel_refused;
  }
  const Qpn peer_number{control.channel};
  // The peer repeated its opening.
  Channel* channel = table_.ByPeer(packet.meta.source, peer_number, [&](const Channel& known) {
    return known.peer_epoch() == control.epoch && known.authenticated() == control.tagged;
  });
  const ChannelKey key{.source = packet.meta.destination,
                       .peer = packet.meta.source,
                       .peer_worker = control.worker,
                       .traffic_class = wire::WithoutEcn(control.traffic_class),
                       .path = control.path};
  // Both ends opened at once: each opening answers the other.
  if (channel == nullptr) {
    channel = table_.ByKey(key, [&](const Channel& known) {
      return known.state() == ChannelState::kOpening && known.authenticated() == control.tagged &&
             (known.sealed() || !shared_.protections.required());
    });
  }
  if (channel == nullptr && !control.tagged && !proven && limits_.DemandsCookie(key.peer))
    return AskForCookie(device, packet, control, now);
  if (channel == nullptr && limits_.TakesNew(key.peer, control.tagged, now)) {
    const size_t reserve = ReserveAgainst(key.peer, control.tagged);
    MakeRoom(reserve, now);
    Security security = control.tagged ? Security::kTagged : Security::kNone;
    if (control.seals && shared_.protections.offers()) security = Security::kSealed;
    if (table_.free_count() > reserve) channel = Make(key, security, device, now);
    if (channel != nullptr) channel->replaces = true;
  }
  if (channel == nullptr) {
    answers_.SendRefused(device, packet, control, ChannelReason::kNoResources, now);
    return DropReason::k_channel_refused;
  }
  const DropReason reason = Meet(*channel, control, true, now);
  // Run treats an address that a cookie has proved as one that an answer has proved.
  limits_.AddHalfOpen(*channel);
  if (proven && reason == DropReason::kNone) channel->Confirm();
  return reason;
}

DropReason ChannelSet::AskForCookie(uint32_t device, const wire::RxPacket& packet,
                                    const ChannelControl& control, TimePoint now) {
  const bool asked = answers_.SendRetry(device, packet, control, now);
  return asked ? DropReason::kNone : DropReason::k_channel_refused;
}

// Handles the peer's opening or answer, which gives the peer's channel number.
DropReason ChannelSet::Meet(Channel& channel, const ChannelControl& control, bool answer,
                            TimePoint now) {
  const bool opening = channel.state() == ChannelState::kOpening;
  if (!channel.OnPeer(control, CcFor(OfferedFeatures() & control.features), answer, now))
    return DropReason::k_channel_state;
  if (opening) table_.AddPeer(channel);
  channel.Due();
  return DropReason::kNone;
}

// Handles a reset. It is accepted if it repeats both epochs: 64 bits, sent only in probes and
// openings. A frame carries 16 of them, too few against guessing, so the reset that answers a frame
// only makes the channel probe the peer. The same holds for a reset without tag on an authenticated
// channel: a gateway just after its start does not know that its peer uses tags.
DropReason ChannelSet::OnReset(const wire::RxPacket& packet, const ChannelControl& control,
                               TimePoint now) {
  const Qpn number{control.channel};
  if (table_.ByPeer(packet.meta.source, number, [](const Channel&) { return true; }) == nullptr)
    return DropReason::k_unknown_channel;
  Channel* channel = table_.ByPeer(packet.meta.source, number, [&](const Channel& known) {
    return known.peer_epoch() == control.epoch && known.epoch() == control.peer_epoch;
  });
  if (channel != nullptr && (control.tagged || !channel->authenticated())) {
    channel->Abandon(control.reason);
    channel->Due();
    return DropReason::kNone;
  }
  const bool untagged = channel != nullptr;
  channel = table_.ByPeer(packet.meta.source, number, [&](const Channel& known) {
    return static_cast<uint16_t>(known.peer_epoch()) == static_cast<uint16_t>(control.epoch);
  });
  if (channel == nullptr) return DropReason::k_channel_epoch;
  channel->Challenge(now);
  channel->Due();
  return untagged ? DropReason::k_channel_no_tag : DropReason::kNone;
}

}  // namespace rocegw::channel
