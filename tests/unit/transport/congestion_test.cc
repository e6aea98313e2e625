// SPDX-License-Identifier: Apache-2.0
// Congestion control on native connections: ECN bits of sent packets, the answer to a CE-marked
// packet, the effect of a CNP, and when a paced queue pair continues.
#include <gtest/gtest.h>

#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::congestion {
namespace {

using flow::CcKind;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kPeerPsn;
constexpr uint8_t kEct0 = 2;

class Congestion : public ::testing::Test {
 protected:
  Congestion() { profile.link_bits_per_second = 1'000'000'000; }
  ScriptedPeer::Options With(CcKind kind) {
    ScriptedPeer::Options options;
    options.host.cc = {.kind = kind, .window_bytes = 1 << 20, .profile = &profile};
    return options;
  }
  flow::CcProfile profile;
};

TEST_F(Congestion, AlgorithmThatUsesMarks_EveryPacketSaysSo) {
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.PostWrite(0, 600);
  peer.PostRead(0x1000, 100);
  peer.PostFetchAdd(0x2000, 1);
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, 0x3000, 10, true), ScriptedPeer::Bytes(10));
  peer.Deliver(peer.Read(kPsn + 1, 0x3000, 300));
  const auto out = peer.Out();
  EXPECT_GE(out.size(), 7u);
  for (const SentPacket& packet : out) EXPECT_EQ(packet.traffic_class & 3, kEct0);
}

TEST_F(Congestion, ApplicationsDscp_Stays) {
  ScriptedPeer::Options options = With(CcKind::kDcqcn);
  options.limits.path.traffic_class = 26 << 2 | 1;
  ScriptedPeer peer(options);
  peer.PostWrite(0, 60);
  EXPECT_EQ(peer.OutOne().traffic_class & 3, kEct0);
}

TEST_F(Congestion, AlgorithmWithoutMarks_SaysNothing) {
  for (const CcKind kind : {CcKind::kStatic, CcKind::kSwift}) {
    ScriptedPeer peer(With(kind));
    peer.PostWrite(0, 60);
    EXPECT_EQ(peer.OutOne().traffic_class & 3, 0);
  }
}

TEST_F(Congestion, EcnOff_SaysNothing) {
  profile.ecn = false;
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.PostWrite(0, 60);
  EXPECT_EQ(peer.OutOne().traffic_class & 3, 0);
}

TEST_F(Congestion, MarkedRequest_OneCnpPerInterval) {
  profile.cnp_interval = Microseconds(50);
  ScriptedPeer peer(With(CcKind::kStatic));
  const auto write = [&](uint32_t i) {
    return peer.DeliverMarked(peer.Write(Opcode::kRcWriteOnly, kPsn + i, 0x3000, 10),
                              ScriptedPeer::Bytes(10));
  };
  write(0);
  const SentPacket cnp = peer.OutOne();
  EXPECT_EQ(cnp.opcode(), Opcode::kCnp);
  EXPECT_TRUE(cnp.headers.bth.becn);
  EXPECT_FALSE(cnp.headers.bth.fecn);
  EXPECT_FALSE(cnp.headers.bth.migrated);
  EXPECT_FALSE(cnp.headers.bth.solicited);
  EXPECT_FALSE(cnp.headers.bth.ack_request);
  EXPECT_EQ(cnp.psn(), 0u);
  EXPECT_EQ(cnp.headers.bth.pkey, 0xFFFF);
  EXPECT_EQ(cnp.traffic_class, 48 << 2 | 2);
  EXPECT_TRUE(cnp.payload.empty());
  write(1);
  EXPECT_TRUE(peer.Out().empty()) << "too soon";
  peer.Advance(Microseconds(50));
  write(2);
  EXPECT_EQ(peer.OutOne().opcode(), Opcode::kCnp);
  EXPECT_EQ(peer.host().counters().cnp_tx_packets.Read(), 2u);
}

TEST_F(Congestion, MarkedReadResponse_Cnp) {
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.PostRead(0x1000, 100);
  peer.OutOne();
  peer.DeliverMarked(peer.ReadResponse(Opcode::kRcReadResponseOnly, ScriptedPeer::kHostPsn),
                     ScriptedPeer::Bytes(100));
  EXPECT_EQ(peer.OutOne().opcode(), Opcode::kCnp);
}

// The responder's data was marked; requests travel in the other direction.
TEST_F(Congestion, MarkedReadResponse_DoesNotSlowTheReadersRequests) {
  profile.Set(CcKind::kDcqcn, "initial_window", 65535);
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.PostRead(0x1000, 256 * 3);
  peer.OutOne();
  const Opcode kParts[] = {Opcode::kRcReadResponseFirst, Opcode::kRcReadResponseMiddle,
                           Opcode::kRcReadResponseLast};
  for (uint32_t i = 0; i < 3; ++i) {
    peer.Advance(Microseconds(10));
    peer.DeliverMarked(peer.ReadResponse(kParts[i], ScriptedPeer::kHostPsn + i),
                       ScriptedPeer::Bytes(256));
  }
  for (const SentPacket& packet : peer.Out()) EXPECT_EQ(packet.opcode(), Opcode::kCnp);
  EXPECT_EQ(peer.PollOne().status, 0);
  peer.PostWrite(0, 256 * 100);
  EXPECT_EQ(peer.Out().size(), 100u);
}

TEST_F(Congestion, MarkedAcknowledgement_NobodyToTell) {
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.PostWrite(0, 60);
  peer.OutOne();
  peer.DeliverMarked(peer.Ack(ScriptedPeer::kHostPsn));
  EXPECT_TRUE(peer.Out().empty());
}

TEST_F(Congestion, MarkedFromElsewhere_NoCnp) {
  ScriptedPeer peer(With(CcKind::kDcqcn));
  WirePacket packet =
      peer.Build(peer.Write(Opcode::kRcWriteOnly, kPsn, 0x3000, 10), ScriptedPeer::Bytes(10));
  packet.meta.traffic_class = 3;
  packet.meta.source_port = 0xC123;
  packet.meta.source = wire::Gid::FromV4(0x0A0A0A0A);
  peer.DeliverRaw(packet);
  EXPECT_TRUE(peer.Out().empty());
}

TEST_F(Congestion, CnpsOff_NoCnp) {
  profile.send_cnps = false;
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.DeliverMarked(peer.Write(Opcode::kRcWriteOnly, kPsn, 0x3000, 10), ScriptedPeer::Bytes(10));
  EXPECT_TRUE(peer.Out().empty());
}

TEST_F(Congestion, PortFull_CnpIsLostAndTheNextMarkTriesAgain) {
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.host().port_budget = 0;
  peer.DeliverMarked(peer.Write(Opcode::kRcWriteOnly, kPsn, 0x3000, 10), ScriptedPeer::Bytes(10));
  EXPECT_TRUE(peer.Out().empty());
  peer.host().port_budget = 100;
  peer.DeliverMarked(peer.Write(Opcode::kRcWriteOnly, kPsn + 1, 0x3000, 10),
                     ScriptedPeer::Bytes(10));
  EXPECT_EQ(peer.OutOne().opcode(), Opcode::kCnp);
}

wire::Headers Cnp(const ScriptedPeer& peer) {
  wire::Headers headers = peer.To(Opcode::kCnp, 0);
  headers.bth.becn = true;
  return headers;
}

// 256 bytes at 500 Mbit/s take 4.1 us. No packet is acknowledged, so a large initial window keeps
// the window of a new flow from interfering.
TEST_F(Congestion, Cnp_PacesRequests) {
  profile.Set(CcKind::kDcqcn, "initial_window", 65535);
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.Deliver(Cnp(peer));
  EXPECT_EQ(peer.host().counters().cnp_rx_packets.Read(), 1u);
  peer.PostWrite(0, 256 * 100);
  EXPECT_EQ(peer.Out().size(), 1u);
  const TimePoint due = peer.host().qp().deadline();
  EXPECT_GT(due, peer.now());
  EXPECT_LE(due, peer.now() + Microseconds(5));
  // Every deadline lets a packet leave, so there is no busy polling in between.
  size_t sent = 1;
  const TimePoint begin = peer.now();
  while (sent < 100) {
    const TimePoint next = peer.host().qp().deadline();
    ASSERT_GT(next, peer.now());
    const auto out = peer.Advance(next - peer.now());
    sent += out.size();
    ASSERT_LE(peer.now() - begin, Milliseconds(1));
  }
  EXPECT_GE(peer.now() - begin, Microseconds(300)) << "100 packets";
}

TEST_F(Congestion, Cnp_PacesReadResponses) {
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.Deliver(Cnp(peer));
  peer.Deliver(peer.Read(kPsn, 0, 256 * 50));
  size_t sent = peer.Out().size();
  EXPECT_EQ(sent, 1u);
  const TimePoint begin = peer.now();
  while (sent < 50) {
    const TimePoint next = peer.host().qp().deadline();
    ASSERT_GT(next, peer.now());
    ASSERT_NE(next, kNever);
    sent += peer.Advance(next - peer.now()).size();
  }
  EXPECT_GE(peer.now() - begin, Microseconds(150));
}

TEST_F(Congestion, Switched_ToStatic_GoesOnAtOnce) {
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.Deliver(Cnp(peer));
  peer.PostWrite(0, 256 * 20);
  EXPECT_EQ(peer.Out().size(), 1u);
  peer.host().qp().SwitchCc({.kind = CcKind::kStatic, .window_bytes = 1 << 20, .profile = &profile},
                            peer.now());
  const auto out = peer.Out();
  EXPECT_EQ(out.size(), 19u);
  for (const SentPacket& packet : out) EXPECT_EQ(packet.traffic_class & 3, 0);
}

TEST_F(Congestion, Reset_ForgetsThePace) {
  ScriptedPeer peer(With(CcKind::kDcqcn));
  peer.Deliver(Cnp(peer));
  peer.PostWrite(0, 256 * 20);
  peer.Out();
  peer.host().ToState(verbs::QpState::kReset);
  EXPECT_EQ(peer.host().qp().deadline(), kNever);
}

}  // namespace
}  // namespace rocegw::testing::congestion
