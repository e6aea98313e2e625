// SPDX-License-Identifier: Apache-2.0
// Receives: which one a message takes, what its completion says, and the cases of no receive or a
// bad one.
#include <gtest/gtest.h>

#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::responder_receive {
namespace {

using metrics::DropReason;
using verbs::QpState;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kPeerPsn;
constexpr uint64_t kBuffer = 0x2000;
constexpr uint8_t kSuccess = 0;
constexpr uint8_t kLocalLength = 1;
constexpr uint8_t kLocalProtection = 4;
constexpr uint8_t kFlush = 5;

TEST(ResponderSend, OverThreePackets_FillsTheListInOrder) {
  ScriptedPeer peer;
  peer.host().PostReceive(7, {{kBuffer, 100}, {kBuffer + 0x1000, 0}, {kBuffer + 0x2000, 1000}});
  const auto data = ScriptedPeer::Bytes(600);
  peer.Deliver(peer.To(Opcode::kRcSendFirst, kPsn), {data.begin(), data.begin() + 256});
  peer.Deliver(peer.To(Opcode::kRcSendMiddle, kPsn + 1), {data.begin() + 256, data.begin() + 512});
  wire::Headers last = peer.To(Opcode::kRcSendLastImm, kPsn + 2, true);
  last.immediate = 0xA1B2C3D4;
  last.bth.solicited = true;
  peer.Deliver(last, {data.begin() + 512, data.end()});
  EXPECT_EQ(peer.OutOne().headers.aeth.msn, 1u);
  const rocegw_cqe cqe = peer.PollOne();
  EXPECT_EQ(cqe.wr_id, 7u);
  EXPECT_EQ(cqe.status, kSuccess);
  EXPECT_EQ(cqe.opcode, 128) << "IBV_WC_RECV";
  EXPECT_EQ(cqe.byte_length, 600u);
  EXPECT_EQ(cqe.imm_or_rkey, 0xA1B2C3D4u);
  EXPECT_EQ(cqe.source_qpn, ScriptedPeer::kQpn);
  EXPECT_EQ(cqe.qpn, 0x11u);
  EXPECT_EQ(cqe.flags, ROCEGW_CQE_RECEIVE | ROCEGW_CQE_WITH_IMM | ROCEGW_CQE_SOLICITED);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kBuffer], data.data(), 100), 0);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kBuffer + 0x2000], &data[100], 500), 0);
  EXPECT_EQ(peer.host().memory()[kBuffer + 100], 0);
  EXPECT_EQ(peer.host().context().rq().released(), 1u);
}

TEST(ResponderSend, ShortOne_TravelsInTheRing) {
  ScriptedPeer::Options options;
  options.host.rq_payload_stride = 64;
  ScriptedPeer peer(options);
  for (uint64_t id : {1, 2, 3}) peer.host().PostReceive(id, {{kBuffer, 200}});
  peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn), ScriptedPeer::Bytes(64));
  EXPECT_TRUE(peer.host().queued().empty());
  rocegw_cqe cqe = peer.PollOne();
  EXPECT_EQ(cqe.flags, ROCEGW_CQE_RECEIVE | ROCEGW_CQE_PAYLOAD_IN_RING);
  EXPECT_EQ(cqe.ring_slot, 0u);
  EXPECT_EQ(std::memcmp(peer.host().rings().rq_payload(0), ScriptedPeer::Bytes(64).data(), 64), 0);
  // A payload that is one byte too long is placed by a memory operation; an empty one needs no
  // placement.
  peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + 1), ScriptedPeer::Bytes(65));
  EXPECT_EQ(peer.host().queued().size(), 1u);
  peer.Out();
  EXPECT_EQ(peer.PollOne().flags, ROCEGW_CQE_RECEIVE);
  peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + 2), {});
  cqe = peer.PollOne();
  EXPECT_EQ(cqe.flags, ROCEGW_CQE_RECEIVE);
  EXPECT_EQ(cqe.byte_length, 0u);
}

TEST(ResponderSend, NoReceive_RnrNakWithTimer_ResumesWhenPosted) {
  ScriptedPeer::Options options;
  options.limits.min_rnr_timer = 19;
  ScriptedPeer peer(options);
  const wire::Headers send = peer.To(Opcode::kRcSendOnly, kPsn, true);
  EXPECT_EQ(peer.Deliver(send, ScriptedPeer::Bytes(8)), DropReason::k_rnr_wait);
  SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.opcode(), Opcode::kRcAck);
  EXPECT_EQ(nak.syndrome(), 0x20 | 19);
  EXPECT_EQ(nak.psn(), kPsn);
  EXPECT_EQ(nak.headers.aeth.msn, 0u);
  EXPECT_EQ(peer.host().qp().psns().expected.value, kPsn) << "not advanced";
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);

  // Packets behind it are dropped silently, because they were sent before the NAK arrived.
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + 1, true), ScriptedPeer::Bytes(8)),
            DropReason::k_rnr_wait);
  EXPECT_TRUE(peer.Out().empty());
  // Still no receive: the repeated packet gets one more NAK.
  EXPECT_EQ(peer.Deliver(send, ScriptedPeer::Bytes(8)), DropReason::k_rnr_wait);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x20 | 19);
  EXPECT_EQ(peer.host().counters().rnr_tx_packets.Read(), 2u);

  peer.PostReceive(kBuffer, 64);
  EXPECT_EQ(peer.Deliver(send, ScriptedPeer::Bytes(8)), DropReason::kNone);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x1F);
  EXPECT_EQ(peer.PollOne().status, kSuccess);
  // Afterwards, a gap is reported again.
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + 2), ScriptedPeer::Bytes(8)),
            DropReason::k_sequence_gap);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x60);
}

TEST(ResponderSend, RnrRepeatedBeforeTheFirstLeft_OneNak) {
  ScriptedPeer peer;
  peer.host().port_budget = 0;
  for (int i = 0; i < 50; ++i) {
    peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn, true), ScriptedPeer::Bytes(8));
    // A duplicate in between asks for an acknowledgement; the NAK covers it.
    peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn - 1, true), ScriptedPeer::Bytes(8));
  }
  peer.host().port_budget = 1000;
  EXPECT_LE(peer.Out().size(), 2u);
}

TEST(ResponderSend, LongerThanTheReceive_LengthErrorAndNak61) {
  for (bool second_packet : {false, true}) {
    ScriptedPeer peer;
    peer.PostReceive(kBuffer, second_packet ? 300 : 99);
    uint32_t psn = kPsn;
    if (second_packet) {
      peer.Deliver(peer.To(Opcode::kRcSendFirst, psn++), ScriptedPeer::Bytes(256));
      EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendLast, psn), ScriptedPeer::Bytes(45)),
                DropReason::k_invalid_request);
    } else {
      EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendOnly, psn), ScriptedPeer::Bytes(100)),
                DropReason::k_invalid_request);
    }
    const SentPacket nak = peer.OutOne();
    EXPECT_EQ(nak.syndrome(), 0x61);
    EXPECT_EQ(nak.psn(), psn);
    EXPECT_EQ(peer.PollOne().status, kLocalLength);
    EXPECT_EQ(peer.host().context().state(), QpState::kError);
  }
}

TEST(ResponderSend, ExactlyTheReceive_Fits) {
  ScriptedPeer peer;
  peer.PostReceive(kBuffer, 100);
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn), ScriptedPeer::Bytes(100)),
            DropReason::kNone);
  peer.Out();
  EXPECT_EQ(peer.PollOne().byte_length, 100u);
}

TEST(ResponderSend, ReceiveWithABadKey_ProtectionErrorAndNak63) {
  ScriptedPeer peer;
  peer.PostReceive(kBuffer, 64);
  peer.PostReceive(kBuffer, 64);
  ASSERT_TRUE(peer.host().regions().Unlink(MemoryKey{peer.host().key()}));
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn), ScriptedPeer::Bytes(8)),
            DropReason::k_operation_error);
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome(), 0x63);
  EXPECT_EQ(nak.psn(), kPsn);
  const std::vector<rocegw_cqe> cqes = peer.Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].status, kLocalProtection);
  EXPECT_EQ(cqes[1].status, kFlush);
  EXPECT_EQ(peer.host().events[0], verbs::AsyncEvent::kQpFatal);
}

// The whole list is checked, even if the message does not reach the bad entry.
TEST(ResponderSend, ReceiveWhoseLastKeyIsBad_ProtectionErrorForAShortMessage) {
  ScriptedPeer peer;
  ASSERT_TRUE(peer.host().rings().PostReceive(
      1, {{QpHost::kBase + kBuffer, 64, peer.host().key()},
          {QpHost::kBase + kBuffer + 64, 64, peer.host().key() + 1}}));
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn), ScriptedPeer::Bytes(8)),
            DropReason::k_operation_error);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x63);
  EXPECT_EQ(peer.PollOne().status, kLocalProtection);
}

TEST(ResponderSend, ReceiveInReadOnlyMemory_ProtectionError) {
  ScriptedPeer peer;
  verbs::RegionConfig region;
  region.key = MemoryKey{0x9999};
  region.session = SessionId{1};
  region.pd = 1;
  region.access = verbs::kAccessRemoteRead;
  region.iova = region.address = QpHost::kBase;
  region.length = 4096;
  ASSERT_TRUE(peer.host().regions().Link(region));
  ASSERT_TRUE(peer.host().rings().PostReceive(5, {{QpHost::kBase, 64, 0x9999}}));
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn), ScriptedPeer::Bytes(8)),
            DropReason::k_operation_error);
  EXPECT_EQ(peer.PollOne().status, kLocalProtection);
}

TEST(ResponderSend, RegionOfTheReceiveGoneBetweenPackets_ProtectionErrorAndNak63) {
  ScriptedPeer peer;
  peer.PostReceive(kBuffer, 1024);
  peer.Deliver(peer.To(Opcode::kRcSendFirst, kPsn), ScriptedPeer::Bytes(256));
  peer.Out();
  peer.host().regions().Unlink(MemoryKey{peer.host().key()});
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendLast, kPsn + 1), ScriptedPeer::Bytes(8)),
            DropReason::k_operation_error);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x63);
  EXPECT_EQ(peer.PollOne().status, kLocalProtection);
}

TEST(ResponderSend, MoreSgesThanTheQueueHas_OperationError) {
  ScriptedPeer peer;
  const rocegw_recv_wqe wqe{3, 200, 0};
  peer.PostReceive(kBuffer, 64);
  // The client changes the slot after posting.
  const verbs::QpConfig config = peer.host().rings().Qp();
  std::memcpy(const_cast<uint8_t*>(config.rq), &wqe, sizeof wqe);
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn), ScriptedPeer::Bytes(8)),
            DropReason::k_operation_error);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x63);
  const rocegw_cqe cqe = peer.PollOne();
  EXPECT_EQ(cqe.status, 2) << "IBV_WC_LOC_QP_OP_ERR";
  EXPECT_EQ(cqe.wr_id, 3u);
}

TEST(ResponderSend, ImpossibleReceiveIndex_ClientFault) {
  for (uint32_t index : {65u, 0x80000000u, 0xFFFFFFFFu}) {
    ScriptedPeer peer;
    peer.host().rings().control().rq_producer = index;
    peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn), ScriptedPeer::Bytes(8));
    EXPECT_EQ(peer.host().faults.size(), 1u);
    EXPECT_TRUE(peer.Out().empty());
    EXPECT_TRUE(peer.Poll().empty());
  }
}

TEST(ResponderWriteImm, TakesAReceive_ReportsLengthAndImmediate) {
  ScriptedPeer peer;
  peer.host().PostReceive(9, {});
  const auto data = ScriptedPeer::Bytes(300);
  peer.Deliver(peer.Write(Opcode::kRcWriteFirst, kPsn, kBuffer, 300),
               {data.begin(), data.begin() + 256});
  EXPECT_TRUE(peer.Poll().empty());
  wire::Headers last = peer.To(Opcode::kRcWriteLastImm, kPsn + 1, true);
  last.immediate = 77;
  peer.Deliver(last, {data.begin() + 256, data.end()});
  peer.OutOne();
  const rocegw_cqe cqe = peer.PollOne();
  EXPECT_EQ(cqe.opcode, 129) << "IBV_WC_RECV_RDMA_WITH_IMM";
  EXPECT_EQ(cqe.byte_length, 300u);
  EXPECT_EQ(cqe.imm_or_rkey, 77u);
  EXPECT_EQ(cqe.wr_id, 9u);
}

TEST(ResponderWriteImm, BuffersOfTheReceiveAreNotLookedAt) {
  ScriptedPeer peer;
  ASSERT_TRUE(peer.host().rings().PostReceive(5, {{1, 64, 0xBAD}}));
  EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnlyImm, kPsn, kBuffer, 4, true),
                         ScriptedPeer::Bytes(4)),
            DropReason::kNone);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x1F);
  EXPECT_EQ(peer.PollOne().status, kSuccess);
}

// IBTA 11.6.2: the receive that the immediate would have taken reports the error.
TEST(ResponderWriteImm, BadRKey_TheReceiveEndsWithALocalAccessError) {
  ScriptedPeer peer;
  peer.host().PostReceive(5, {});
  peer.host().PostReceive(6, {});
  wire::Headers write = peer.Write(Opcode::kRcWriteOnlyImm, kPsn, kBuffer, 4, true);
  write.reth.rkey ^= 0x100;
  EXPECT_EQ(peer.Deliver(write, ScriptedPeer::Bytes(4)), DropReason::k_access_error);
  EXPECT_EQ(peer.OutOne().syndrome(), wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  const std::vector<rocegw_cqe> ended = peer.Poll();
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].wr_id, 5u);
  EXPECT_EQ(ended[0].status, static_cast<uint8_t>(verbs::WcStatus::kLocalAccess));
  EXPECT_EQ(ended[1].status, static_cast<uint8_t>(verbs::WcStatus::kFlush));
}

TEST(ResponderWriteImm, NoReceive_RnrOnTheLastPacketOnly_NothingOfItWritten) {
  ScriptedPeer peer;
  const auto data = ScriptedPeer::Bytes(300);
  EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteFirst, kPsn, kBuffer, 300),
                         {data.begin(), data.begin() + 256}),
            DropReason::kNone);
  const wire::Headers last = peer.To(Opcode::kRcWriteLastImm, kPsn + 1, true);
  const std::vector<uint8_t> rest(data.begin() + 256, data.end());
  EXPECT_EQ(peer.Deliver(last, rest), DropReason::k_rnr_wait);
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome() & 0x60, 0x20);
  EXPECT_EQ(nak.psn(), kPsn + 1);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kBuffer], data.data(), 256), 0);
  EXPECT_EQ(peer.host().memory()[kBuffer + 256], 0);

  peer.host().PostReceive(1, {});
  EXPECT_EQ(peer.Deliver(last, rest), DropReason::kNone);
  EXPECT_EQ(peer.OutOne().headers.aeth.msn, 1u);
  EXPECT_EQ(peer.PollOne().byte_length, 300u);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kBuffer + 256], rest.data(), rest.size()), 0);
}

TEST(ResponderCq, Overrun_QpToErrorAndCqEventOnce) {
  ScriptedPeer::Options options;
  options.host.cq_entries = 2;
  ScriptedPeer peer(options);
  for (int i = 0; i < 5; ++i) peer.PostReceive(kBuffer, 64);
  for (uint32_t i = 0; i < 3; ++i) {
    peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + i), ScriptedPeer::Bytes(8));
    peer.Out();
  }
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  EXPECT_EQ(peer.host().counters().cq_overflow_events.Read(), 1u);
  ASSERT_EQ(peer.host().events.size(), 1u);
  EXPECT_EQ(peer.host().events[0], verbs::AsyncEvent::kCqError);
  EXPECT_EQ(peer.Poll().size(), 2u);
  // The queue stays broken even when it has space again.
  peer.Out();
  EXPECT_TRUE(peer.Poll().empty());
}

}  // namespace
}  // namespace rocegw::testing::responder_receive
