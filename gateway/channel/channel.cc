// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/channel.h"

#include <algorithm>

#include "gateway/port/steering.h"

namespace rocegw::channel {

using metrics::DropReason;
using wire::ChannelReason;
using wire::ControlKind;

Channel::Channel(const ChannelKey& key, const Options& options, uint32_t slot,
                 ChannelShared& shared, TimePoint now)
    : shared_(shared),
      peer_(key.peer),
      number_(options.number.value & kQpnMask),
      class_(key.traffic_class),
      device_(options.device),
      slot_(static_cast<uint16_t>(slot)),
      source_(shared.sources.Take(key.source)),
      epoch16_(static_cast<uint16_t>(options.epoch)),
      payload_units_(static_cast<uint8_t>(options.max_payload / kPayloadUnit) & 0x7F),
      sealed_(options.sealed ? 1 : 0),
      epoch_high_(static_cast<uint16_t>(options.epoch >> 16)),
      path_(key.path),
      features_(options.features),
      peer_worker_(static_cast<uint16_t>(key.peer_worker)) {
  authenticated_ = options.authenticated;
  if (options.sealed) {
    shared.protections.Begin(slot_, {.source = key.source,
                                     .peer = key.peer,
                                     .number = options.number,
                                     .epoch = options.epoch,
                                     .offer = options.seal});
  }
  resting_.out.next = options.first;
  Wake(now);
  awake_->idle_since = now;
}

Channel::~Channel() {
  if (awake_ != nullptr) shared_.awake.GiveBack(awake_);
  if (sealed_) shared_.protections.End(slot_);
  shared_.sources.Leave(source_);
}

// Allocates the awake state. A new channel uses it too, and is opened next.
void Channel::Wake(TimePoint now) {
  if (awake_ != nullptr) return;
  awake_ = shared_.awake.Take();
  SetEcnFor(resting_.out.cc_kind());
  // A peer that does not know the channel yet has acknowledged nothing.
  awake_->first = resting_.out.next;
  if (state_ != ChannelState::kOpen) return;
  awake_->out.Resume(resting_.out, CcOf(resting_.out.cc_kind()), now);
  awake_->in.Resume(resting_.in, shared_.window);
}

void Channel::Rest() {
  resting_.out = awake_->out.Rest();
  resting_.in = awake_->in.Rest();
  shared_.awake.GiveBack(awake_);
  awake_ = nullptr;
}

// An unused channel stays awake until it is closed.
TimePoint Channel::RestsAt() const {
  const TimePoint when = out().rests_at();
  if (when == kNever || state_ != ChannelState::kOpen || users_ == 0) return kNever;
  return awake_->due == 0 && !crowded() && awake_->in.may_rest() ? when : kNever;
}

void Channel::Open(Qpn acceptor, TimePoint now) {
  LearnAcceptor(acceptor);
  awake_->due |= kDueOpen;
  awake_->handshake_at = now + awake_->open_resend;
}

bool Channel::OnPeer(const wire::ChannelControl& control, flow::CcKind kind, bool answer,
                     TimePoint now) {
  if (state_ == ChannelState::kGone) return false;
  Wake(now);
  // An opening proves nothing: its sender may not have heard us. An answer does.
  confirmed_ |= !answer;
  if (state_ == ChannelState::kOpening) {
    peer_number_ = control.channel & kQpnMask;
    SetPeerEpoch(control.epoch);
    peer_instance_ = control.instance;
    features_ &= control.features;
    AgreeOnSeal(control);
    awake_->in.Start(control.initial_psn, shared_.window);
    // The answer to a repeated opening may belong to either copy, so it gives no round trip.
    const bool timed = acceptor() != kInvalidQpn && awake_->open_resend == kFirstOpenResend;
    awake_->out.Start({.cc = CcOf(kind),
                       .room_packets = std::min(control.window, flow::kMaxFlowPackets),
                       .rtt = timed ? now - awake_->idle_since : Duration{}},
                      awake_->first, now);
    SetEcnFor(kind);
    Pin(OwnHash());
    state_ = ChannelState::kOpen;
    awake_->handshake_at = kNever;
    awake_->due &= static_cast<uint8_t>(~kDueOpen);
    awake_->idle_since = now;
  } else if (peer_epoch() != control.epoch || peer_number_ != control.channel) {
    return false;
  } else if (state_ == ChannelState::kClosing) {
    // The peer still uses the channel.
    state_ = ChannelState::kOpen;
    awake_->handshake_at = kNever;
    awake_->idle_since = now;
  }
  if (answer) awake_->due |= kDueOpened;
  return true;
}

// A channel seals if both ends say so: what one of them did not say is not there to be left out,
// since openings and answers that offer seals have tags.
void Channel::AgreeOnSeal(const wire::ChannelControl& control) {
  if (sealed_ && control.seals) {
    shared_.protections.At(slot_)->Agree(Qpn{control.channel}, control.epoch, control.seal);
    return;
  }
  if (sealed_) shared_.protections.End(slot_);
  sealed_ = 0;
  if (shared_.protections.offers()) shared_.counters.channel_unsealed_events.Add();
}

void Channel::SwitchCc(flow::CcKind kind, TimePoint now) {
  if (state_ != ChannelState::kOpen || kind == cc_kind()) return;
  if (rests()) {
    resting_.out.kind = static_cast<uint8_t>(kind) & 31;
    return;
  }
  awake_->out.SwitchCc(CcOf(kind), now);
  SetEcnFor(kind);
}

flow::CcConfig Channel::CcOf(flow::CcKind kind) const {
  flow::CcConfig cc = shared_.cc;
  cc.kind = kind;
  return cc;
}

void Channel::SetEcnFor(flow::CcKind kind) {
  const flow::CcProfile* const profile = shared_.cc.profile;
  const bool ecn = (profile == nullptr || profile->ecn) && flow::AlgorithmOf(kind).uses_marks;
  class_ = wire::WithoutEcn(class_) | (ecn ? wire::kEcnEct0 : 0u);
}

flow::CarrierAddress Channel::address() const {
  return {.path = {.source = shared_.sources[source_],
                   .destination = peer_,
                   .source_port = source_port_,
                   .traffic_class = static_cast<uint8_t>(class_)},
          .channel = peer_number(),
          .epoch = peer_epoch16_,
          // Congestion algorithms see an unused window themselves; the hint needs no condition.
          .hint = wire::MakeHint(true),
          .flags = static_cast<uint8_t>(asks_ack_ ? wire::kFrameAckNow : 0),
          .bundles = bundles(),
          .seal = seal()};
}

// Path hash. Until a path fails, no two paths to a worker have the same UDP source port.
uint8_t Channel::OwnHash() const {
  const uint8_t hash =
      port::PathHash(shared_.sources[source_], peer_, uint32_t{peer_worker_} << 16 | repins_);
  return static_cast<uint8_t>(hash + path_);
}

void Channel::Pin(uint8_t hash) { source_port_ = port::SourcePort(hash, peer_number()); }

void Channel::ChangePath() {
  ++repins_;
  shared_.counters.channel_path_change_events.Add();
  Pin(OwnHash());
}

void Channel::Follow(const Channel& other) { Pin(port::PathHashIn(other.source_port_)); }

bool Channel::MaySend(const flow::WindowWaiter& waiter, flow::WaitEntry& entry, uint32_t bytes,
                      TimePoint now) {
  Wake(now);
  if (state_ == ChannelState::kOpen && awake_->out.MaySend(bytes, now)) {
    // A queue pair that used up its quantum lets the others go first.
    if (!crowded() || entry.credit > 0) {
      if (entry.credit <= 0) entry.credit = kQuantum;
      return true;
    }
  }
  if (!in_waiting) {
    in_waiting = true;
    shared_.lists.waiting.push_back(slot_);
  }
  if (!entry.waiting) {
    entry.waiting = true;
    // A queue pair with credit left stays at the front of its tenant.
    awake_->wait_queue.Push(waiter.tenant, waiter.object, entry.credit > 0);
    if (entry.credit <= 0) entry.credit = kQuantum;
  }
  return false;
}

bool Channel::MaySendLast(TimePoint now) {
  Wake(now);
  return state_ == ChannelState::kOpen && awake_->out.HasPlace();
}

Psn Channel::OnSent(const flow::WindowWaiter& waiter, flow::WaitEntry& entry,
                    const flow::FrameRef& frame, uint32_t bytes, TimePoint now) {
  const uint32_t cost = bytes + kFrameCost;
  entry.credit = static_cast<int16_t>(entry.credit - static_cast<int>(cost));
  if (crowded()) awake_->wait_queue.Charge(waiter.tenant, cost);
  Due();
  const Psn psn = awake_->out.OnSent(shared_.ledgers, frame, bytes, now);
  asks_ack_ = awake_->out.AsksForAck();
  return psn;
}

// The set notes the time of the last release (NoteUse); this call has no clock.
void Channel::Release() {
  if (--users_ != 0) return;
  if (!rests() && state_ != ChannelState::kOpening) awake_->idle_since = kNever;
  Due();
}

void Channel::NoteUse(TimePoint now) {
  if (users_ != 0 || state_ != ChannelState::kOpen) return;
  Wake(now);
  if (awake_->idle_since == kNever) awake_->idle_since = now;
}

bool Channel::HasTurn(TimePoint now, int given) const {
  return crowded() && state_ == ChannelState::kOpen &&
         out().MaySend(wire::kMaxPayload + static_cast<uint64_t>(given) * kQuantum, now);
}

DropReason Channel::OnFrame(Psn psn, const wire::ChannelFrame& frame, uint32_t payload,
                            uint8_t hint, bool ce_marked, TimePoint now) {
  if (state_ != ChannelState::kOpen && state_ != ChannelState::kClosing)
    return DropReason::k_channel_state;
  Wake(now);
  // The peer sends frames, so it knows the channel: its opening needs no further answer.
  awake_->due &= static_cast<uint8_t>(~kDueOpened);
  confirmed_ = true;
  switch (awake_->in.Admit(shared_.ledgers, psn, now, frame.has(wire::kFrameAckNow))) {
    case flow::Admission::kBeyond:
      return DropReason::k_channel_window;
    case flow::Admission::kDuplicate:
      return DropReason::k_channel_duplicate;
    case flow::Admission::kNew:
      break;
  }
  awake_->probes_heard = 0;
  if (ce_marked) awake_->in.CountMarked(payload);
  awake_->hints.OnFrame(hint, ce_marked, payload);
  return DropReason::kNone;
}

void Channel::Sink::OnFeedback(const flow::CcFeedback& feedback) {
  counts_.acked_bytes += feedback.acked_bytes;
  counts_.marked_bytes += feedback.marked_bytes;
  if (feedback.hint != 0) counts_.hinted_bytes += feedback.acked_bytes;
}

void Channel::OnAck(Psn next, const wire::ChannelAck& ack, flow::CcCounts& counts, TimePoint now) {
  if (state_ != ChannelState::kOpen && state_ != ChannelState::kClosing) return;
  Wake(now);
  confirmed_ = true;
  awake_->probes_heard = 0;
  Sink sink(counts, reports_arrivals_ ? this : nullptr);
  awake_->out.OnAck(shared_.ledgers,
                    {.next = next,
                     .bitmap = ack.arrived(),
                     .marked_bytes_running = ack.marked_bytes,
                     .duplicates_running = ack.duplicates,
                     .hint = ack.hint,
                     .held = Nanoseconds(ack.held_ns),
                     .room_packets = ack.room,
                     .probe = ack.probe},
                    now, sink);
}

ChannelSnapshot Channel::Snapshot() const {
  ChannelSnapshot row{.key = key(),
                      .state = state_,
                      .number = number(),
                      .peer_number = peer_number(),
                      .features = features_,
                      .congestion = cc_kind(),
                      .rtt = rtt().smoothed(),
                      .min_rtt = rtt().minimum(),
                      .users = users_,
                      .path_changes = repins_,
                      .sealed = sealed_ != 0};
  if (sealed_) row.seal = shared_.protections.At(slot_)->Snapshot();
  if (rests()) {
    row.window = resting_.out.window;
    row.lost = resting_.out.lost;
    row.resent = resting_.out.resent;
    row.spurious = resting_.out.spurious;
    return row;
  }
  row.window = state_ == ChannelState::kOpen ? out().cc_window() : 0;
  row.in_flight = out().in_flight();
  row.waiting = awake_->wait_queue.size();
  row.lost = out().lost();
  row.resent = out().resent();
  row.spurious = out().spurious();
  return row;
}

bool Channel::OnControl(const wire::ChannelControl& control, TimePoint now) {
  if (state_ == ChannelState::kGone) return false;
  Wake(now);
  const bool same = control.channel == peer_number_ && control.epoch == peer_epoch();
  confirmed_ |= same;
  switch (control.kind) {
    case ControlKind::kProbe:
      if (state_ == ChannelState::kOpening) {
        // The peer knows our epoch, so it received our opening and its answers were lost. No later
        // answer gives a round trip sample.
        awake_->due |= kDueOpen;
        awake_->open_resend = kFirstOpenResend * 2;
        awake_->handshake_at = now + awake_->open_resend;
      }
      if (!same) return false;
      awake_->answers_probe = true;
      awake_->probe_answer = control.probe;
      awake_->in.WantAck();
      // The peer repeats probes: it hears none of our answers, and has nothing else to send.
      if (++awake_->probes_heard % kProbesInVain != 0) return false;
      ChangePath();
      return true;
    case ControlKind::kClose:
      if (!same) return false;
      // A channel in use stays open: the answer says so.
      if (!quiet()) {
        awake_->due |= kDueOpened;
        return false;
      }
      awake_->due |= kDueClosed;
      state_ = ChannelState::kClosing;
      return false;
    case ControlKind::kClosed:
      if (same && state_ == ChannelState::kClosing) Abandon(ChannelReason::kIdle);
      return false;
    case ControlKind::kRefused:
      if (state_ == ChannelState::kOpening) Abandon(control.reason);
      return false;
    case ControlKind::kRetry:
      // The next opening repeats the cookie in the place of the peer's epoch, which is not known
      // yet. The round trip counts from there.
      if (state_ != ChannelState::kOpening || control.epoch == peer_epoch()) return false;
      SetPeerEpoch(control.epoch);
      awake_->idle_since = now;
      awake_->due |= kDueOpen;
      return false;
    case ControlKind::kReset:
    case ControlKind::kOpen:
    case ControlKind::kOpened:
    case ControlKind::kCount:
      return false;
  }
  return false;
}

void Channel::Challenge(TimePoint now) {
  if (state_ != ChannelState::kOpen && state_ != ChannelState::kClosing) return;
  Wake(now);
  if (out().unanswered() != 0) return;
  awake_->out.BeginProbe(now);
  awake_->due |= kDueProbe;
  shared_.counters.channel_probe_events.Add();
}

void Channel::Abandon(ChannelReason why) {
  state_ = ChannelState::kGone;
  why_ = why;
  if (rests()) return;
  awake_->due = 0;
  awake_->handshake_at = kNever;
}

TimePoint Channel::IdleUntil() const {
  if (awake_->idle_since == kNever) return kNever;
  return awake_->idle_since + (confirmed_ ? kIdleTime : kHalfOpenTime);
}

TimePoint Channel::deadline(TimePoint now) const {
  if (state_ == ChannelState::kGone || rests()) return kNever;
  if (state_ == ChannelState::kOpening) return awake_->handshake_at;
  TimePoint when = Earlier(awake_->in.ack_deadline(now), out().deadline());
  if (state_ == ChannelState::kClosing) when = Earlier(when, awake_->handshake_at);
  Psn lost;
  flow::FrameRef frame;
  uint32_t bytes = 0;
  if (out().NextLost(lost, frame, bytes)) when = Earlier(when, out().earliest(bytes));
  if (crowded() && out().HasPlace()) when = Earlier(when, out().earliest(wire::kMaxPayload));
  if (quiet() && state_ == ChannelState::kOpen) when = Earlier(when, IdleUntil());
  return Earlier(when, RestsAt());
}

bool Channel::OnDeadline(TimePoint now) {
  if (rests()) return false;
  if (state_ != ChannelState::kOpen && awake_->handshake_at <= now) {
    // The peer stopped answering since discovery: its queue pairs go on without a channel.
    if (state_ == ChannelState::kOpening && awake_->open_resend == kLastOpenResend) {
      Abandon(ChannelReason::kPathFailed);
      return false;
    }
    awake_->open_resend = std::min(awake_->open_resend * 2, kLastOpenResend);
    awake_->handshake_at = now + awake_->open_resend;
    if (state_ == ChannelState::kOpening) awake_->due |= kDueOpen;
    if (state_ == ChannelState::kClosing) {
      // A peer that does not answer has forgotten the channel already.
      if (awake_->open_resend == kLastOpenResend) {
        Abandon(ChannelReason::kIdle);
        return false;
      }
      awake_->due |= kDueClose;
    }
  }
  if (state_ == ChannelState::kOpening || state_ == ChannelState::kGone) return false;
  if (awake_->in.ack_deadline(now) <= now) awake_->in.WantAck();
  if (users_ == 0 && !quiet()) awake_->idle_since = now;
  if (quiet() && state_ == ChannelState::kOpen && now >= IdleUntil()) {
    state_ = ChannelState::kClosing;
    awake_->due |= kDueClose;
    awake_->open_resend = kFirstOpenResend;
    awake_->handshake_at = now + awake_->open_resend;
  }
  bool left = false;
  switch (awake_->out.OnDeadline(now)) {
    case flow::FlowVerdict::kNothing:
      break;
    case flow::FlowVerdict::kPathSuspect:
      ChangePath();
      left = true;
      [[fallthrough]];
    case flow::FlowVerdict::kProbe:
      awake_->due |= kDueProbe;
      shared_.counters.channel_probe_events.Add();
      break;
    case flow::FlowVerdict::kDead:
      Abandon(ChannelReason::kPathFailed);
      break;
  }
  if (RestsAt() <= now) Rest();
  return left;
}

bool Channel::NextLost(Psn& psn, flow::FrameRef& frame, uint32_t& bytes, TimePoint now) const {
  return !rests() && state_ == ChannelState::kOpen && out().NextLost(psn, frame, bytes) &&
         out().MayResend(bytes, now);
}

}  // namespace rocegw::channel
