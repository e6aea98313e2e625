// SPDX-License-Identifier: Apache-2.0
// Endpoint under test with scripted peers: tests build frames field by field and get the endpoint's
// frames decoded. The carriers are scripted too (frame_peer.h). The test advances time.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "gateway/wire/gateway_mad.h"
#include "tests/support/qp/frame_peer.h"

namespace rocegw::testing {

class EndpointHost {
 public:
  static constexpr uint32_t kQpn = 0x11;
  static constexpr uint32_t kPeerQpn = 0x40022;
  static constexpr uint32_t kKey = 0x4711;      // key of the endpoint under test
  static constexpr uint32_t kPeerKey = 0x4712;  // key of its peer
  static constexpr uint32_t kPeer = 5;          // handle
  static constexpr uint16_t kEpoch = 0x7777;

  // `srq`: the daemon's part of `ring.shared`.
  explicit EndpointHost(RingOptions ring = {}, transport::SharedReceives* srq = nullptr)
      : host_(OptionsOf(ring, srq)) {
    host_.At(now_);
    host_.reach = {&carrier};
    transport::Peer peer;
    peer.endpoint = Qpn{kPeerQpn};
    peer.key = kPeerKey;
    peer.target.features =
        wire::kOptionEndpoints | wire::kOptionEndpointReads | wire::kOptionFetchOperate;
    peers.emplace(kPeer, peer);
    host_.context().peers = &peers;
    BringUp();
  }
  // Discards requests in progress and posted requests.
  void Restart() {
    EXPECT_EQ(host_.ToState(verbs::QpState::kReset), 0);
    BringUp();
  }

  QpHost& host() { return host_; }
  TimePoint now() const { return now_; }

  // Returns a request of another initiator in one frame.
  wire::ChannelFrame Request(wire::FrameKind kind, uint32_t message, uint64_t offset,
                             uint32_t length) {
    return {.kind = kind,
            .flags = wire::kFrameLast | wire::kFrameEndpoint | wire::kFrameRelaxed,
            .epoch = kEpoch,
            .destination = Qpn{kQpn},
            .source = Qpn{kPeerQpn},
            .message = message,
            .length = length,
            .receive = kKey,
            .address = host_.Address(offset),
            .rkey = host_.key()};
  }
  wire::ChannelFrame Read(uint32_t message, uint64_t offset, uint32_t length) {
    return Request(wire::FrameKind::kReadRequest, message, offset, length);
  }
  wire::ChannelFrame Add(uint32_t message, uint64_t offset, uint64_t add) {
    wire::ChannelFrame frame = Request(wire::FrameKind::kFetchAdd, message, offset, 0);
    frame.swap_or_add = add;
    return frame;
  }
  // Returns an answer of the peer.
  wire::ChannelFrame Answer(wire::FrameKind kind, uint32_t message) {
    return {.kind = kind,
            .epoch = kEpoch,
            .destination = Qpn{kQpn},
            .source = Qpn{kPeerQpn},
            .message = message};
  }
  // Delivers `count` bytes from `offset` on of a SEND by another initiator.
  metrics::DropReason DeliverPart(uint32_t message, const std::vector<uint8_t>& whole,
                                  uint32_t offset, uint32_t count, uint8_t attempt = 0) {
    wire::ChannelFrame frame =
        Request(wire::FrameKind::kSend, message, 0, static_cast<uint32_t>(whole.size()));
    frame.address = 0;
    frame.rkey = 0;
    frame.offset = offset;
    frame.attempt = attempt;
    if (offset + count != whole.size()) frame.flags &= static_cast<uint8_t>(~wire::kFrameLast);
    return Deliver(frame, {whole.begin() + offset, whole.begin() + offset + count});
  }
  metrics::DropReason DeliverWhole(uint32_t message, const std::vector<uint8_t>& whole) {
    return DeliverPart(message, whole, 0, static_cast<uint32_t>(whole.size()));
  }
  metrics::DropReason DeliverData(uint32_t message, const std::vector<uint8_t>& whole,
                                  uint32_t offset, uint32_t count) {
    wire::ChannelFrame frame = Answer(wire::FrameKind::kReadResponse, message);
    frame.offset = offset;
    frame.length = static_cast<uint32_t>(whole.size());
    if (offset + count == whole.size()) frame.flags |= wire::kFrameLast;
    return Deliver(frame, {whole.begin() + offset, whole.begin() + offset + count});
  }
  metrics::DropReason DeliverResult(uint32_t message, uint64_t original) {
    wire::ChannelFrame frame = Answer(wire::FrameKind::kAtomicResult, message);
    frame.flags = wire::kFrameLast;
    frame.original = original;
    return Deliver(frame);
  }
  metrics::DropReason DeliverReply(uint32_t message, uint8_t syndrome, uint8_t attempt = 0) {
    wire::ChannelFrame frame = Answer(wire::FrameKind::kReply, message);
    frame.flags = wire::kFrameRelaxed;
    frame.syndrome = syndrome;
    frame.attempt = attempt;
    return Deliver(frame);
  }
  metrics::DropReason Deliver(const wire::ChannelFrame& frame,
                              const std::vector<uint8_t>& payload = {}, bool refuse = false) {
    EXPECT_EQ(wire::ValidateFrame(frame, payload.size()), metrics::DropReason::kNone);
    std::vector<uint8_t> buffer = payload;
    return host_.qp().OnFrame(host_, carrier, frame, buffer, refuse, now_);
  }

  // Adds a peer behind another gateway, which `by` reaches.
  void AddPeer(uint32_t handle, ScriptedCarrier& by, const wire::Gid& gateway) {
    by.to.path.destination = gateway;
    transport::Peer peer = peers.at(kPeer);
    peer.path.destination = gateway;
    peers.emplace(handle, peer);
    host_.elsewhere.push_back(&by);
  }

  // Posts a request; local bytes at `offset`.
  void Post(uint8_t opcode, uint64_t offset, uint32_t length, uint16_t flags = 0,
            uint64_t compare_add = 0, uint64_t swap = 0) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = next_wr_id++;
    wqe.opcode = opcode;
    wqe.flags = static_cast<uint16_t>(ROCEGW_WQE_SIGNALED | flags);
    wqe.u.rdma = {0x7000, compare_add, swap, 0x1234, to};
    host_.PostSend(wqe, {{offset, length}});
  }

  // Pumps the endpoint and executes memory operations. Returns the frames that it sent.
  std::vector<SentFrame> Out() {
    do {
      host_.Pump(now_);
      host_.Settle();
    } while (!host_.queued().empty());
    host_.Pump(now_);
    host_.Settle();
    return FramesIn(TakeSent(host_));
  }
  std::vector<SentFrame> OutWithoutMemory() {
    host_.Pump(now_);
    host_.Collect();
    return FramesIn(TakeSent(host_));
  }
  // Advances time and delivers each deadline when it is due.
  void Advance(Duration by) {
    const TimePoint end = now_ + by;
    for (TimePoint due = host_.qp().deadline(); due <= end; due = host_.qp().deadline()) {
      now_ = due > now_ ? due : now_;
      host_.Deadline(now_);
    }
    now_ = end;
    host_.At(now_);
  }
  flow::Resend Lose(uint32_t psn) {
    return host_.qp().Again(host_, carrier, carrier.refs.at(psn), Psn(psn));
  }
  std::vector<rocegw_cqe> Poll() { return host_.Poll(); }
  // Returns completions as "WR_ID:STATUS", for example "100:0 101:9".
  std::string Ended() {
    std::string text;
    for (const rocegw_cqe& cqe : Poll())
      text +=
          (text.empty() ? "" : " ") + std::to_string(cqe.wr_id) + ":" + std::to_string(cqe.status);
    return text;
  }

  ScriptedCarrier carrier;
  transport::PeerTable peers;
  uint64_t next_wr_id = 100;
  uint32_t to = kPeer;  // peer of posted requests

 private:
  void BringUp() {
    verbs::QpAttributes want;
    want.qkey = kKey;
    const auto step = [&](verbs::QpState state, uint32_t mask) {
      want.state = state;
      EXPECT_EQ(host_.Modify(verbs::kAttrState | mask, want), 0);
    };
    step(verbs::QpState::kInit, verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrQkey);
    step(verbs::QpState::kRtr, 0);
    step(verbs::QpState::kRts, verbs::kAttrSqPsn);
  }
  static QpHost::Options OptionsOf(const RingOptions& ring, transport::SharedReceives* srq) {
    QpHost::Options options;
    options.srq = srq;
    static_cast<RingOptions&>(options) = ring;
    options.type = verbs::QpType::kEndpoint;
    options.qpn = kQpn;
    options.service_mode = ring.service_mode == verbs::ServiceMode::kByTarget
                               ? verbs::ServiceMode::kUnordered
                               : ring.service_mode;
    return options;
  }
  QpHost host_;
  TimePoint now_{1000000000};
};

}  // namespace rocegw::testing
