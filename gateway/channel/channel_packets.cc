// SPDX-License-Identifier: Apache-2.0
// Packets that a channel sends itself: acknowledgements, control packets, and frames without a
// queue pair.
#include <algorithm>
#include <utility>

#include "gateway/channel/channel.h"
#include "gateway/port/steering.h"
#include "gateway/wire/authentication.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::channel {

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

bool SendControlPacket(ChannelShared& shared, uint32_t device, const wire::Path& path, Qpn to,
                       Qpn from, wire::ChannelControl control) {
  port::TxPacket* packet = shared.owner.NewChannelPacket(device);
  if (packet == nullptr) return false;
  control.tagged = control.tagged && shared.keys.active();
  control.seals = control.seals && control.tagged;
  if (control.tagged) control.sequence = ++shared.sequence;
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kChannelControl;
  headers.bth.dest_qpn = to;
  size_t length = wire::EncodeHeaders(headers, packet->data);
  const std::span body(packet->data + length, wire::EncodeControl(control, packet->data + length));
  if (control.tagged)
    wire::SealControl(shared.keys.signer(), path.source, path.destination, to, body);
  Finish(*packet, length + body.size(), path, from);
  shared.owner.SendChannelPacket(device, packet);
  return true;
}

bool Channel::SendVoid(Psn psn, TimePoint now) {
  wire::ChannelFrame nothing;
  if (!SendFrame(psn, nothing)) return false;
  awake_->out.OnResent(psn, now);
  return true;
}

bool Channel::SendFrame(Psn psn, wire::ChannelFrame& frame) {
  port::TxPacket* packet = shared_.owner.NewChannelPacket(device_);
  if (packet == nullptr) return false;
  const flow::CarrierAddress to = address();
  frame.epoch = to.epoch;
  frame.flags |= to.flags;
  size_t length = to.EncodeBth(psn, 0, packet->data);
  length += wire::EncodeFrame(frame, packet->data + length);
  Finish(*packet, length, to.path, number());
  packet->bundles = to.bundles;
  packet->seal = to.seal;
  shared_.owner.SendChannelPacket(device_, packet);
  return true;
}

bool Channel::SendAck(TimePoint now) {
  port::TxPacket* packet = shared_.owner.NewChannelPacket(device_);
  if (packet == nullptr) return false;
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kChannelAck;
  headers.bth.dest_qpn = peer_number();
  headers.bth.psn = awake_->in.next();
  wire::ChannelAck ack;
  ack.epoch = peer_epoch16_;
  ack.marked_bytes = awake_->in.marked_bytes();
  ack.duplicates = awake_->in.duplicates();
  ack.hint = awake_->hints.Take();
  ack.room = awake_->in.room();
  if (std::exchange(awake_->narrow, false)) ack.room = std::min(ack.room, kNarrowRoom);
  ack.held_ns = static_cast<uint32_t>(std::min<int64_t>(awake_->in.held(now).ns, UINT32_MAX));
  if (awake_->answers_probe) ack.probe = awake_->probe_answer;
  ack.words = static_cast<uint16_t>(awake_->in.FillBitmap(ack.bitmap));
  size_t length = wire::EncodeHeaders(headers, packet->data);
  length += wire::EncodeAck(ack, packet->data + length);
  // Acknowledgements get the ECN bits of data frames, although their marks are not counted: a
  // switch drops packets it cannot mark, and a port joins into one segmented send only packets with
  // equal headers.
  Finish(*packet, length, address().path, number());
  packet->bundles = bundles();
  packet->seal = seal();
  shared_.owner.SendChannelPacket(device_, packet);
  shared_.counters.channel_ack_tx_packets.Add();
  awake_->in.OnAckSent();
  awake_->answers_probe = false;
  return true;
}

bool Channel::SendControl(ControlKind kind, Qpn to) {
  wire::ChannelControl control{.kind = kind,
                               .channel = number().value,
                               .epoch = epoch(),
                               .peer_epoch = peer_epoch(),
                               .instance = shared_.instance,
                               .tagged = authenticated_};
  if (kind == ControlKind::kOpen || kind == ControlKind::kOpened) {
    control.initial_psn = awake_->first;
    control.traffic_class = wire::WithoutEcn(class_);
    control.window = shared_.window;
    control.path = static_cast<uint8_t>(path_);
    // An answer states the agreed options, an opening the possible ones.
    control.features =
        state_ == ChannelState::kOpening ? features_ : wire::AgreedOptions(features_);
    control.cc_kind = static_cast<uint8_t>(awake_->out.cc_kind());
    control.worker = shared_.worker;
    control.seals = sealed_;
    if (sealed_) control.seal = shared_.protections.At(slot_)->offer();
  }
  if (kind == ControlKind::kProbe) control.probe = awake_->out.probe_number();
  if (kind == ControlKind::kClose) control.reason = ChannelReason::kIdle;
  wire::Path path = address().path;
  if (kind == ControlKind::kOpen)
    path.source_port = port::SourcePort(port::PathHash(path.source, path.destination, path_), to);
  return SendControlPacket(shared_, device_, path, to, number(), control);
}

bool Channel::SendOwn(TimePoint now, Acks acks) {
  if (rests()) return true;
  return (awake_->due == 0 || SendDue()) &&
         (!awake_->in.ack_due() || (acks == Acks::kNow && SendAck(now)));
}

bool Channel::SendDue() {
  const auto send = [&](DueBit due, ControlKind kind, Qpn to) {
    if ((awake_->due & due) == 0) return true;
    if (!SendControl(kind, to)) return false;
    awake_->due &= static_cast<uint8_t>(~due);
    return true;
  };
  if (!send(kDueOpen, ControlKind::kOpen, acceptor())) return false;
  if (!send(kDueOpened, ControlKind::kOpened, peer_number())) return false;
  if (!send(kDueProbe, ControlKind::kProbe, peer_number())) return false;
  if (!send(kDueClose, ControlKind::kClose, peer_number())) return false;
  if ((awake_->due & kDueClosed) != 0) {
    if (!SendControl(ControlKind::kClosed, peer_number())) return false;
    Abandon(ChannelReason::kIdle);
  }
  return true;
}

}  // namespace rocegw::channel
