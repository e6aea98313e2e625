// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/channel.h"

#include <algorithm>

#include "gateway/port/steering.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::channel {

using metrics::DropReason;
using wire::ChannelReason;
using wire::ControlKind;

namespace {
void Finish(port::TxPacket& packet, size_t length, const wire::Path& path, Qpn from) {
  packet.length = static_cast<uint32_t>(length);
  packet.known_crc = {};
  packet.source_qpn = from;
  packet.path = path;
}
}  // namespace

bool SendControlPacket(Owner& owner, uint32_t device, const wire::Path& path, Qpn to, Qpn from,
                       const wire::ChannelControl& control) {
  port::TxPacket* packet = owner.NewChannelPacket(device);
  if (packet == nullptr) return false;
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kChannelControl;
  headers.bth.dest_qpn = to;
  size_t length = wire::EncodeHeaders(headers, packet->data);
  length += wire::EncodeControl(control, packet->data + length);
  Finish(*packet, length, path, from);
  owner.SendChannelPacket(device, packet);
  return true;
}

Channel::Channel(const ChannelKey& key, const Options& options, TimePoint now)
    : out_(*options.pool),
      in_(*options.pool),
      peer_worker_(static_cast<uint16_t>(key.peer_worker)),
      class_(key.traffic_class),
      path_(key.path),
      features_(options.features),
      counters_(options.counters),
      first_(options.first),
      epoch_(options.epoch),
      instance_(options.instance),
      worker_(options.worker),
      window_(options.window),
      idle_since_(now) {
  address_.path = {
      .source = key.source, .destination = key.peer, .traffic_class = key.traffic_class};
  address_.device = options.device;
  address_.number = options.number;
  address_.max_payload = options.max_payload;
  // Who does not use up its window does not grow; that is for the algorithm to see.
  address_.hint = wire::MakeHint(true);
}

void Channel::Open(Qpn acceptor, TimePoint now) {
  acceptor_ = acceptor;
  due_ |= kDueOpen;
  handshake_at_ = now + open_resend_;
}

bool Channel::OnPeer(const wire::ChannelControl& control, const flow::CcConfig& cc, bool answer,
                     TimePoint now) {
  if (state_ == ChannelState::kGone) return false;
  // A first step needs to have heard nothing of us.
  confirmed_ |= !answer;
  if (state_ == ChannelState::kOpening) {
    address_.channel = Qpn{control.channel};
    address_.epoch = static_cast<uint16_t>(control.epoch);
    peer_epoch_ = control.epoch;
    peer_instance_ = control.instance;
    features_ &= control.features;
    in_.Start(control.initial_psn, window_);
    // An answer to a step that was repeated may belong to either.
    const bool timed = acceptor_ != kInvalidQpn && open_resend_ == kFirstOpenResend;
    out_.Start({.cc = cc,
                .room_packets = std::min(control.window, flow::kMaxFlowPackets),
                .rtt = timed ? now - idle_since_ : Duration{}},
               first_, now);
    SetEcn(cc);
    Pin(OwnHash());
    state_ = ChannelState::kOpen;
    handshake_at_ = kNever;
    due_ &= static_cast<uint8_t>(~kDueOpen);
    idle_since_ = now;
  } else if (peer_epoch_ != control.epoch || address_.channel.value != control.channel) {
    return false;
  } else if (state_ == ChannelState::kClosing) {
    // The peer still needs it.
    state_ = ChannelState::kOpen;
    handshake_at_ = kNever;
    idle_since_ = now;
  }
  if (answer) due_ |= kDueOpened;
  return true;
}

void Channel::SwitchCc(const flow::CcConfig& cc, TimePoint now) {
  if (state_ != ChannelState::kOpen || cc.kind == out_.cc_kind()) return;
  out_.SwitchCc(cc, now);
  SetEcn(cc);
}

void Channel::SetEcn(const flow::CcConfig& cc) {
  const bool ecn = (cc.profile == nullptr || cc.profile->ecn) && out_.uses_marks();
  address_.path.traffic_class =
      static_cast<uint8_t>((class_ & ~wire::kEcnMask) | (ecn ? wire::kEcnEct0 : 0));
}

// Until one of them has failed no two paths to a worker have the same port.
uint8_t Channel::OwnHash() const {
  const uint8_t hash = port::PathHash(address_.path.source, address_.path.destination,
                                      uint32_t{peer_worker_} << 16 | repins_);
  return static_cast<uint8_t>(hash + path_);
}

void Channel::Pin(uint8_t hash) {
  address_.path.source_port = port::SourcePort(hash, address_.channel);
}

void Channel::ChangePath() {
  ++repins_;
  counters_->channel_path_change_events.Add();
  Pin(OwnHash());
}

void Channel::Follow(const Channel& other) {
  Pin(port::PathHashIn(other.address_.path.source_port));
}

bool Channel::MaySend(flow::LinePlace& place, uint32_t bytes, TimePoint now) {
  if (state_ == ChannelState::kOpen && out_.MaySend(bytes, now)) {
    // Whoever has had its turn lets others go first.
    if (line_.empty() || place.credit > 0) {
      if (place.credit <= 0) place.credit = kQuantum;
      return true;
    }
  }
  if (!in_waiting) {
    in_waiting = true;
    lists->waiting.push_back(slot);
  }
  if (!place.waiting) {
    place.waiting = true;
    // Whoever finds no room in its turn loses no turn by it.
    line_.Push(place.tenant, place.qp, place.credit > 0);
    if (place.credit <= 0) place.credit = kQuantum;
  }
  return false;
}

Psn Channel::OnSent(flow::LinePlace& place, const flow::FrameRef& frame, uint32_t bytes,
                    TimePoint now) {
  place.credit -= static_cast<int32_t>(bytes + wire::kFrameBaseLength);
  if (!line_.empty()) line_.Charge(place.tenant, bytes + wire::kFrameBaseLength);
  Due();
  const Psn psn = out_.OnSent(frame, bytes, now);
  address_.flags = out_.AsksForAck() ? wire::kFrameAckNow : 0;
  return psn;
}

void Channel::Release() { --users_; }

bool Channel::HasTurn(TimePoint now, int given) const {
  return !line_.empty() && state_ == ChannelState::kOpen &&
         out_.MaySend(wire::kMaxPayload + static_cast<uint64_t>(given) * kQuantum, now);
}

DropReason Channel::OnFrame(Psn psn, const wire::ChannelFrame& frame, uint32_t payload,
                            uint8_t hint, bool ce_marked, TimePoint now) {
  if (state_ != ChannelState::kOpen && state_ != ChannelState::kClosing)
    return DropReason::k_channel_state;
  // A frame from the peer says that our first step and its answer have met.
  due_ &= static_cast<uint8_t>(~kDueOpened);
  confirmed_ = true;
  switch (in_.Admit(psn, now, frame.has(wire::kFrameAckNow))) {
    case flow::Admission::kBeyond:
      return DropReason::k_channel_window;
    case flow::Admission::kDuplicate:
      return DropReason::k_channel_duplicate;
    case flow::Admission::kNew:
      break;
  }
  probes_heard_ = 0;
  if (ce_marked) in_.CountMarked(payload);
  hints_.OnFrame(hint, ce_marked, payload);
  return DropReason::kNone;
}

void Channel::Sink::OnFeedback(const flow::CcFeedback& feedback) {
  counts_.acked_bytes += feedback.acked_bytes;
  counts_.marked_bytes += feedback.marked_bytes;
  if (feedback.hint != 0) counts_.hinted_bytes += feedback.acked_bytes;
}

void Channel::OnAck(Psn next, const wire::ChannelAck& ack, flow::CcCounts& counts, TimePoint now) {
  if (state_ != ChannelState::kOpen && state_ != ChannelState::kClosing) return;
  confirmed_ = true;
  probes_heard_ = 0;
  Sink sink(counts);
  out_.OnAck({.next = next,
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
  const flow::RttEstimator& rtt = out_.rtt();
  return {.key = key(),
          .state = state_,
          .number = number(),
          .peer_number = peer_number(),
          .features = features_,
          .congestion = out_.cc_kind(),
          .window = state_ == ChannelState::kOpen ? out_.cc_window() : 0,
          .in_flight = out_.in_flight(),
          .rtt = rtt.has_sample() ? rtt.smoothed() : Duration{},
          .min_rtt = rtt.has_sample() ? rtt.minimum() : Duration{},
          .users = users_,
          .waiting = line_.size(),
          .lost = out_.lost(),
          .resent = out_.resent(),
          .spurious = out_.spurious(),
          .path_changes = repins_};
}

void Channel::OnControl(const wire::ChannelControl& control) {
  const bool same = control.channel == address_.channel.value && control.epoch == peer_epoch_;
  confirmed_ |= same;
  switch (control.kind) {
    case ControlKind::kProbe:
      if (!same) return;
      probe_answer_ = control.probe;
      in_.WantAck();
      // It hears nothing of what we send, and has nothing of its own to send us.
      if (++probes_heard_ % kProbesInVain == 0) ChangePath();
      return;
    case ControlKind::kClose:
      if (!same) return;
      // What somebody here uses stays: the answer says so.
      if (!quiet()) {
        due_ |= kDueOpened;
        return;
      }
      due_ |= kDueClosed;
      state_ = ChannelState::kClosing;
      return;
    case ControlKind::kClosed:
      if (same && state_ == ChannelState::kClosing) Abandon(ChannelReason::kIdle);
      return;
    case ControlKind::kRefused:
      if (state_ == ChannelState::kOpening) Abandon(control.reason);
      return;
    case ControlKind::kReset:
    case ControlKind::kOpen:
    case ControlKind::kOpened:
    case ControlKind::kCount:
      return;
  }
}

void Channel::Abandon(ChannelReason why) {
  state_ = ChannelState::kGone;
  why_ = why;
  due_ = 0;
  handshake_at_ = kNever;
}

TimePoint Channel::deadline(TimePoint now) const {
  if (state_ == ChannelState::kGone) return kNever;
  if (state_ == ChannelState::kOpening) return handshake_at_;
  TimePoint when = Earlier(handshake_at_, Earlier(in_.ack_deadline(now), out_.deadline()));
  if (!line_.empty() || out_.packets_lost() != 0) when = Earlier(when, out_.earliest());
  if (quiet() && state_ == ChannelState::kOpen) when = Earlier(when, idle_until());
  return when;
}

void Channel::OnDeadline(TimePoint now) {
  if (handshake_at_ <= now) {
    // Who does not answer has changed since discovery: its queue pairs go without a channel.
    if (state_ == ChannelState::kOpening && open_resend_ == kLastOpenResend)
      return Abandon(ChannelReason::kPathFailed);
    open_resend_ = std::min(open_resend_ * 2, kLastOpenResend);
    handshake_at_ = now + open_resend_;
    if (state_ == ChannelState::kOpening) due_ |= kDueOpen;
    if (state_ == ChannelState::kClosing) {
      // A peer that does not answer has forgotten it already.
      if (open_resend_ == kLastOpenResend) return Abandon(ChannelReason::kIdle);
      due_ |= kDueClose;
    }
  }
  if (state_ == ChannelState::kOpening || state_ == ChannelState::kGone) return;
  if (in_.ack_deadline(now) <= now) in_.WantAck();
  if (!quiet()) idle_since_ = now;
  if (state_ == ChannelState::kOpen && now >= idle_until()) {
    state_ = ChannelState::kClosing;
    due_ |= kDueClose;
    open_resend_ = kFirstOpenResend;
    handshake_at_ = now + open_resend_;
  }
  switch (out_.OnDeadline(now)) {
    case flow::FlowVerdict::kNothing:
      break;
    case flow::FlowVerdict::kPathSuspect:
      ChangePath();
      [[fallthrough]];
    case flow::FlowVerdict::kProbe:
      due_ |= kDueProbe;
      counters_->channel_probe_events.Add();
      break;
    case flow::FlowVerdict::kDead:
      Abandon(ChannelReason::kPathFailed);
      break;
  }
}

bool Channel::NextLost(Psn& psn, flow::FrameRef& frame, uint32_t& bytes, TimePoint now) const {
  return state_ == ChannelState::kOpen && out_.NextLost(psn, frame, bytes) &&
         out_.MaySend(bytes, now);
}

bool Channel::SendVoid(Owner& owner, Psn psn, TimePoint now) {
  wire::ChannelFrame nothing;
  if (!SendFrame(owner, psn, nothing)) return false;
  out_.OnResent(psn, now);
  return true;
}

bool Channel::SendFrame(Owner& owner, Psn psn, wire::ChannelFrame& frame) {
  port::TxPacket* packet = owner.NewChannelPacket(address_.device);
  if (packet == nullptr) return false;
  frame.epoch = address_.epoch;
  frame.flags |= address_.flags;
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kChannelFrame;
  headers.bth.dest_qpn = address_.channel;
  headers.bth.psn = psn;
  headers.bth.set_hint(address_.hint);
  size_t length = wire::EncodeHeaders(headers, packet->data);
  length += wire::EncodeFrame(frame, packet->data + length);
  Finish(*packet, length, address_.path, address_.number);
  owner.SendChannelPacket(address_.device, packet);
  return true;
}

bool Channel::SendAck(Owner& owner, TimePoint now) {
  port::TxPacket* packet = owner.NewChannelPacket(address_.device);
  if (packet == nullptr) return false;
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kChannelAck;
  headers.bth.dest_qpn = address_.channel;
  headers.bth.psn = in_.next();
  wire::ChannelAck ack;
  ack.epoch = address_.epoch;
  ack.marked_bytes = in_.marked_bytes();
  ack.duplicates = in_.duplicates();
  ack.hint = hints_.Take();
  ack.room = in_.room();
  ack.held_ns = static_cast<uint32_t>(std::min<int64_t>(in_.held(now).ns, UINT32_MAX));
  ack.probe = probe_answer_;
  ack.words = static_cast<uint16_t>(in_.FillBitmap(ack.bitmap));
  size_t length = wire::EncodeHeaders(headers, packet->data);
  length += wire::EncodeAck(ack, packet->data + length);
  Finish(*packet, length, address_.path, address_.number);
  // Unlike data, an acknowledgement is not to be marked.
  packet->path.traffic_class &= static_cast<uint8_t>(~wire::kEcnMask);
  owner.SendChannelPacket(address_.device, packet);
  counters_->channel_ack_tx_packets.Add();
  in_.OnAckSent();
  probe_answer_ = 0;
  return true;
}

bool Channel::SendControl(Owner& owner, ControlKind kind, Qpn to) {
  wire::ChannelControl control{.kind = kind,
                               .channel = address_.number.value,
                               .epoch = epoch_,
                               .peer_epoch = peer_epoch_,
                               .instance = instance_};
  if (kind == ControlKind::kOpen || kind == ControlKind::kOpened) {
    control.initial_psn = first_;
    control.traffic_class = class_;
    control.window = window_;
    control.path = path_;
    // Opened: what holds; open: what may.
    control.features =
        state_ == ChannelState::kOpening ? features_ : wire::AgreedOptions(features_);
    control.cc_kind = static_cast<uint8_t>(out_.cc_kind());
    control.worker = worker_;
  }
  if (kind == ControlKind::kProbe) control.probe = out_.probe_number();
  if (kind == ControlKind::kClose) control.reason = ChannelReason::kIdle;
  wire::Path path = address_.path;
  if (kind == ControlKind::kOpen)
    path.source_port = port::SourcePort(
        port::PathHash(address_.path.source, address_.path.destination, path_), to);
  return SendControlPacket(owner, address_.device, path, to, address_.number, control);
}

bool Channel::SendOwn(Owner& owner, TimePoint now) {
  const auto send = [&](DueBit due, ControlKind kind, Qpn to) {
    if ((due_ & due) == 0) return true;
    if (!SendControl(owner, kind, to)) return false;
    due_ &= static_cast<uint8_t>(~due);
    return true;
  };
  if (!send(kDueOpen, ControlKind::kOpen, acceptor_)) return false;
  if (!send(kDueOpened, ControlKind::kOpened, address_.channel)) return false;
  if (!send(kDueProbe, ControlKind::kProbe, address_.channel)) return false;
  if (!send(kDueClose, ControlKind::kClose, address_.channel)) return false;
  if ((due_ & kDueClosed) != 0) {
    if (!SendControl(owner, ControlKind::kClosed, address_.channel)) return false;
    Abandon(ChannelReason::kIdle);
    return true;
  }
  return !in_.ack_due() || SendAck(owner, now);
}

}  // namespace rocegw::channel
