// SPDX-License-Identifier: Apache-2.0
// Faults of client memory while an RC responder accesses it: the NAK, the completions, and that
// nothing after the fault takes effect.
#include <gtest/gtest.h>

#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::responder_memory {
namespace {

using transport::AccessPurpose;
using verbs::QpState;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kPeerPsn;
constexpr uint64_t kGood = 0x1000;
constexpr uint64_t kBad = 0x9000;
constexpr uint8_t kSuccess = 0;
constexpr uint8_t kLocalProtection = 4;
constexpr uint8_t kFlush = 5;

class ResponderMemory : public ::testing::Test {
 protected:
  ResponderMemory() { peer.host().Poison(kBad, 0x100); }
  void WriteTo(uint64_t offset, uint32_t psn) {
    peer.Deliver(peer.Write(Opcode::kRcWriteOnly, psn, offset, 8, true), ScriptedPeer::Bytes(8));
  }
  void SendIt(uint32_t psn, uint32_t length = 8) {
    peer.Deliver(peer.To(Opcode::kRcSendOnly, psn, true), ScriptedPeer::Bytes(length));
  }
  std::vector<uint8_t> Statuses() {
    std::vector<uint8_t> out;
    for (const rocegw_cqe& cqe : peer.Poll()) out.push_back(cqe.status);
    return out;
  }
  ScriptedPeer peer;
};

TEST_F(ResponderMemory, Write_Nak62AtItsPsn_WhatCameBeforeIsAcknowledgedByIt) {
  WriteTo(kGood, kPsn);
  WriteTo(kBad, kPsn + 1);
  WriteTo(kGood + 64, kPsn + 2);
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome(), 0x62);
  EXPECT_EQ(nak.psn(), kPsn + 1);
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  EXPECT_EQ(peer.host().events[0], verbs::AsyncEvent::kQpAccessError);
  EXPECT_EQ(peer.host().counters().memory_fault_operations.Read(), 1u);
  EXPECT_EQ(peer.host().memory()[kGood], 1);
}

TEST_F(ResponderMemory, Receive_Nak63_ProtectionErrorForItAndFlushForLaterOnes) {
  peer.PostReceive(kGood, 64);
  peer.PostReceive(kBad, 64);
  peer.PostReceive(kGood + 64, 64);
  peer.PostReceive(kGood + 128, 64);
  for (uint32_t i = 0; i < 3; ++i) SendIt(kPsn + i);
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome(), 0x63);
  EXPECT_EQ(nak.psn(), kPsn + 1);
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kSuccess, kLocalProtection, kFlush, kFlush}));
  EXPECT_EQ(peer.host().events[0], verbs::AsyncEvent::kQpFatal);
}

TEST_F(ResponderMemory, ReceiveInProgress_ProtectionError) {
  peer.PostReceive(kBad, 1024);
  peer.PostReceive(kGood, 64);
  peer.Deliver(peer.To(Opcode::kRcSendFirst, kPsn), ScriptedPeer::Bytes(256));
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome(), 0x63);
  EXPECT_EQ(nak.psn(), kPsn);
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kLocalProtection, kFlush}));
}

TEST_F(ResponderMemory, ReceiveBehindAFaultingWrite_FlushedNotWell) {
  peer.PostReceive(kGood, 64);
  WriteTo(kBad, kPsn);
  SendIt(kPsn + 1);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x62);
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kFlush}));
}

TEST_F(ResponderMemory, EmptySendBehindAFaultingWrite_FlushedNotWell) {
  peer.PostReceive(kGood, 64);
  WriteTo(kBad, kPsn);
  SendIt(kPsn + 1, 0);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x62);
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kFlush}));
}

TEST_F(ResponderMemory, WriteWithImmediate_ItsReceiveIsFlushed) {
  peer.host().PostReceive(4, {});
  peer.Deliver(peer.Write(Opcode::kRcWriteOnlyImm, kPsn, kBad, 8, true), ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.OutOne().syndrome(), 0x62);
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kFlush}));
}

TEST_F(ResponderMemory, TwoFaults_OnlyTheFirstIsTold) {
  peer.PostReceive(kBad, 64);
  peer.PostReceive(kBad, 64);
  SendIt(kPsn);
  SendIt(kPsn + 1);
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.psn(), kPsn);
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kLocalProtection, kFlush}));
  EXPECT_EQ(peer.host().counters().qp_error_events.Read(), 1u);
}

TEST_F(ResponderMemory, CompletionsBehindAFault_WaitForWritesStillOnTheirWay) {
  peer.PostReceive(kBad, 64);
  peer.PostReceive(kGood, 64);
  SendIt(kPsn);
  SendIt(kPsn + 1);
  peer.host().RunMemory(1);
  peer.OutWithoutMemory();
  // The second receive's bytes are not placed yet, so its buffer still belongs to the device.
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kLocalProtection}));
  peer.host().RunMemory(1);
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kFlush}));
}

TEST_F(ResponderMemory, ReceiveInProgressAtAFault_CompletesAfterItsOwnWrites) {
  peer.PostReceive(kGood, 1024);
  WriteTo(kBad, kPsn);
  peer.Deliver(peer.To(Opcode::kRcSendFirst, kPsn + 1), ScriptedPeer::Bytes(256));
  peer.host().RunMemory(1);
  peer.OutWithoutMemory();
  EXPECT_TRUE(Statuses().empty());
  peer.host().RunMemory(1);
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kFlush}));
}

TEST_F(ResponderMemory, Read_NakAtThePacketThatFaulted) {
  peer.host().Poison(kGood + 512, 1);
  peer.Deliver(peer.Read(kPsn, kGood, 1024));
  const auto out = peer.Out();
  // The packet that could not be filled never leaves; the one behind it was built already.
  ASSERT_GE(out.size(), 3u);
  EXPECT_EQ(out[0].psn(), kPsn);
  EXPECT_EQ(out[1].psn(), kPsn + 1);
  for (size_t i = 2; i + 1 < out.size(); ++i) EXPECT_EQ(out[i].psn(), kPsn + 3);
  EXPECT_EQ(out.back().syndrome(), 0x62);
  EXPECT_EQ(out.back().psn(), kPsn + 2);
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
}

TEST_F(ResponderMemory, ReadBehindAFaultingWrite_NeverAnswered) {
  WriteTo(kBad, kPsn);
  peer.Deliver(peer.Read(kPsn + 1, kGood, 8));
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome(), 0x62);
  EXPECT_EQ(nak.psn(), kPsn);
}

TEST_F(ResponderMemory, Atomic_Nak62AndNoAnswer) {
  peer.Deliver(peer.FetchAdd(kPsn, kBad, 1));
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.opcode(), Opcode::kRcAck);
  EXPECT_EQ(nak.syndrome(), 0x62);
  EXPECT_EQ(nak.psn(), kPsn);
}

TEST_F(ResponderMemory, FaultAfterTheClientsOwnError_NoSecondNak_ReceiveNotWell) {
  peer.PostReceive(kBad, 64);
  SendIt(kPsn);
  ASSERT_EQ(peer.host().ToState(QpState::kError), 0);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kLocalProtection}));
  EXPECT_TRUE(peer.host().events.empty());
}

TEST_F(ResponderMemory, FaultAfterReset_ChangesNothing) {
  peer.PostReceive(kBad, 64);
  SendIt(kPsn);
  WriteTo(kBad, kPsn + 1);
  peer.Deliver(peer.FetchAdd(kPsn + 2, kBad, 1));
  ASSERT_EQ(peer.host().ToState(QpState::kReset), 0);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_TRUE(Statuses().empty());
  EXPECT_EQ(peer.host().context().state(), QpState::kReset);
  // The queue pair can be used again.
  EXPECT_EQ(peer.host().ToInit(peer.attributes()), 0);
  EXPECT_EQ(peer.host().ToRtr(peer.attributes()), 0);
  peer.PostReceive(kGood, 64);
  SendIt(kPsn);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x1F);
  EXPECT_EQ(Statuses(), (std::vector<uint8_t>{kSuccess}));
}

TEST_F(ResponderMemory, Publish_OnlyTheLastPieceOfAWrite) {
  peer.Deliver(peer.Write(Opcode::kRcWriteFirst, kPsn, kGood, 300), ScriptedPeer::Bytes(256));
  peer.Deliver(peer.To(Opcode::kRcWriteLast, kPsn + 1), ScriptedPeer::Bytes(44));
  ASSERT_EQ(peer.host().queued().size(), 2u);
  EXPECT_FALSE(peer.host().queued()[0].op.publish);
  EXPECT_TRUE(peer.host().queued()[1].op.publish);
  EXPECT_EQ(peer.host().queued()[1].tag.purpose, AccessPurpose::kWrite);
}

TEST_F(ResponderMemory, RemappedRegion_BothAddressesGiven) {
  std::vector<uint8_t> mapping(4096);
  verbs::RegionConfig region;
  region.key = MemoryKey{0x9999};
  region.session = SessionId{1};
  region.pd = 1;
  region.access = 15;
  region.iova = 0x500000;
  region.address = QpHost::kBase + 0x4000;
  region.length = 4096;
  region.direct = mapping.data();
  region.direct_length = region.length;
  ASSERT_TRUE(peer.host().regions().Link(region));
  wire::Headers write = peer.Write(Opcode::kRcWriteOnly, kPsn, 0, 8);
  write.reth.address = 0x500010;
  write.reth.rkey = 0x9999;
  peer.Deliver(write, ScriptedPeer::Bytes(8));
  ASSERT_EQ(peer.host().queued().size(), 1u);
  EXPECT_EQ(peer.host().queued()[0].op.address, QpHost::kBase + 0x4010);
  EXPECT_EQ(peer.host().queued()[0].op.direct, mapping.data() + 16);
  // READ and atomic use the mapping as well.
  wire::Headers atomic = peer.FetchAdd(kPsn + 1, 0, 1);
  atomic.atomic.address = 0x500020;
  atomic.atomic.rkey = 0x9999;
  peer.Deliver(atomic);
  EXPECT_EQ(peer.host().queued()[1].op.direct, mapping.data() + 32);
  EXPECT_EQ(peer.host().queued()[1].op.address, QpHost::kBase + 0x4020);
}

// Only whole pages of a registration are mapped. An access that crosses their edge is copied as a
// whole.
TEST_F(ResponderMemory, PartlyRemappedRegion_OnlyWhatLiesWhollyInside) {
  std::vector<uint8_t> mapping(4096);
  verbs::RegionConfig region;
  region.key = MemoryKey{0x9999};
  region.session = SessionId{1};
  region.pd = 1;
  region.access = 15;
  region.iova = 0x500000;
  region.address = QpHost::kBase + 0x4000 - 16;
  region.length = 16 + 4096 + 100;
  region.direct = mapping.data();
  region.direct_from = 16;
  region.direct_length = 4096;
  ASSERT_TRUE(peer.host().regions().Link(region));
  struct Expected {
    uint64_t offset;
    uint8_t* direct;
  };
  const std::vector<Expected> writes = {{0, nullptr},         {9, nullptr},
                                        {16, mapping.data()}, {16 + 4088, mapping.data() + 4088},
                                        {16 + 4089, nullptr}, {16 + 4096 + 92, nullptr}};
  uint32_t n = 0;
  for (const Expected& expected : writes) {
    wire::Headers write = peer.Write(Opcode::kRcWriteOnly, kPsn + n, 0, 8);
    write.reth.address = 0x500000 + expected.offset;
    write.reth.rkey = 0x9999;
    peer.Deliver(write, ScriptedPeer::Bytes(8));
    ASSERT_EQ(peer.host().queued().size(), ++n);
    EXPECT_EQ(peer.host().queued()[n - 1].op.direct, expected.direct) << expected.offset;
    EXPECT_EQ(peer.host().queued()[n - 1].op.address,
              QpHost::kBase + 0x4000 - 16 + expected.offset);
  }
}

}  // namespace
}  // namespace rocegw::testing::responder_memory
