// SPDX-License-Identifier: Apache-2.0
// Queue pair under test with a scripted peer behind another gateway: tests build frames field by
// field and get the queue pair's frames decoded. The carrier is scripted too: it passes everything
// until the test closes it. The rest is as in scripted_peer.h.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gateway/wire/channel_header.h"
#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing {

class ScriptedCarrier final : public flow::Carrier {
 public:
  flow::CarrierAddress address() const override { return to; }
  const wire::Gid& peer() const override { return to.path.destination; }
  Qpn number() const override { return own; }
  uint32_t max_payload() const override { return most; }
  bool MaySend(const flow::WindowWaiter&, flow::WaitEntry& entry, uint32_t, TimePoint) override {
    if (!open) entry.waiting = true;
    return open;
  }
  bool MaySendLast(TimePoint) override { return places; }
  Psn OnSent(const flow::WindowWaiter&, flow::WaitEntry&, const flow::FrameRef& frame, uint32_t,
             TimePoint) override {
    refs.push_back(frame);
    return Psn(static_cast<uint32_t>(refs.size() - 1));
  }
  bool HasArrived(Psn psn) const override { return PsnBefore(psn, acknowledged); }
  void ReportArrivals() override { tells = true; }
  void Hold() override { ++users; }
  void Release() override { --users; }

  flow::CarrierAddress to;
  Qpn own{0x2000};
  uint32_t most = wire::kMaxPayload;
  bool open = true;
  bool places = true;  // the receiver's window has space
  Psn acknowledged;    // all frames before this PSN have arrived
  bool tells = false;
  int users = 0;
  std::vector<flow::FrameRef> refs;  // by PSN
};

struct SentFrame {
  Psn psn;
  wire::ChannelFrame frame;
  std::vector<uint8_t> payload;
};

// Returns the frames in these packets. A packet without a frame fails the test.
inline std::vector<SentFrame> FramesIn(const std::vector<SentPacket>& packets) {
  std::vector<SentFrame> out;
  for (const SentPacket& packet : packets) {
    EXPECT_EQ(packet.opcode(), wire::Opcode::kChannelFrame);
    SentFrame sent{.psn = packet.headers.bth.psn};
    std::span<const uint8_t> payload;
    EXPECT_EQ(wire::DecodeFrame(packet.payload, sent.frame, payload), metrics::DropReason::kNone);
    sent.payload.assign(payload.begin(), payload.end());
    out.push_back(std::move(sent));
  }
  return out;
}

class FramePeer {
 public:
  static constexpr uint16_t kEpoch = 0x7777;
  using Options = ScriptedPeer::Options;

  explicit FramePeer(Options options = {}) : base_(UpToRtr(options)) {
    carrier.to.path = base_.attributes().path;
    carrier.to.channel = Qpn{ScriptedPeer::kQpn};
    carrier.to.epoch = kEpoch;
    if (options.state == verbs::QpState::kRtr) return;
    base_.host().qp().BindCarrier(carrier);
    EXPECT_EQ(base_.host().ToRts(base_.attributes()), 0);
  }

  ScriptedPeer& base() { return base_; }
  QpHost& host() { return base_.host(); }
  verbs::QpState state() { return host().context().state(); }

  // Delivers a request frame of the peer: a whole message unless the caller sets more fields.
  wire::ChannelFrame Frame(wire::FrameKind kind, uint32_t message, uint32_t length = 0) {
    wire::ChannelFrame frame{.kind = kind,
                             .flags = wire::kFrameLast,
                             .epoch = kEpoch,
                             .destination = host().context().config.qpn,
                             .source = Qpn{ScriptedPeer::kQpn},
                             .message = message,
                             .length = length};
    return frame;
  }
  wire::ChannelFrame Write(uint32_t message, uint64_t offset, uint32_t length) {
    wire::ChannelFrame frame = Frame(wire::FrameKind::kWrite, message, length);
    frame.address = host().Address(offset);
    frame.rkey = host().key();
    return frame;
  }
  wire::ChannelFrame Send(uint32_t message, uint32_t receive, uint32_t length) {
    wire::ChannelFrame frame = Frame(wire::FrameKind::kSend, message, length);
    frame.receive = receive;
    return frame;
  }
  metrics::DropReason Deliver(const wire::ChannelFrame& frame,
                              const std::vector<uint8_t>& payload = {}, bool refuse = false) {
    return DeliverBy(carrier, frame, payload, refuse);
  }
  metrics::DropReason DeliverBy(ScriptedCarrier& by, const wire::ChannelFrame& frame,
                                const std::vector<uint8_t>& payload = {}, bool refuse = false) {
    EXPECT_EQ(wire::ValidateFrame(frame, payload.size()), metrics::DropReason::kNone);
    std::vector<uint8_t> buffer = payload;
    const metrics::DropReason reason =
        host().qp().OnFrame(host(), by, frame, buffer, refuse, base_.now());
    // The port reuses its buffer.
    std::fill(buffer.begin(), buffer.end(), uint8_t{0xEE});
    return reason;
  }
  // Bytes [offset, offset + count) of a message that `frame` begins.
  metrics::DropReason DeliverPart(wire::ChannelFrame frame, const std::vector<uint8_t>& message,
                                  uint32_t offset, uint32_t count, bool refuse = false) {
    frame.offset = offset;
    if (offset + count != frame.length)
      frame.flags &= static_cast<uint8_t>(~unsigned{wire::kFrameLast});
    return Deliver(frame, {message.begin() + offset, message.begin() + offset + count}, refuse);
  }
  metrics::DropReason Reply(uint32_t message, uint8_t syndrome, uint8_t attempt = 0) {
    wire::ChannelFrame frame = Frame(wire::FrameKind::kReply, message);
    frame.flags = 0;
    frame.syndrome = syndrome;
    frame.attempt = attempt;
    return Deliver(frame);
  }

  std::vector<SentFrame> Out() { return FramesIn(base_.Out()); }
  std::vector<SentFrame> OutWithoutMemory() { return FramesIn(base_.OutWithoutMemory()); }
  std::vector<SentFrame> Advance(Duration by) { return FramesIn(base_.Advance(by)); }
  SentFrame OutOne() {
    std::vector<SentFrame> out = Out();
    EXPECT_EQ(out.size(), 1u);
    return out.empty() ? SentFrame{} : out.front();
  }
  // Reports the loss of the frame with that PSN.
  flow::Resend Lose(uint32_t psn) {
    return host().qp().Again(host(), carrier, carrier.refs.at(psn), Psn(psn));
  }

  ScriptedCarrier carrier;

 private:
  static Options UpToRtr(Options options) {
    options.state = verbs::QpState::kRtr;
    return options;
  }

  ScriptedPeer base_;
};

}  // namespace rocegw::testing
