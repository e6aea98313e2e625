// SPDX-License-Identifier: Apache-2.0
// Unreliable connections: sending, receiving, and messages with lost, repeated or invalid packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "gateway/wire/codec.h"
#include "tests/support/qp/qp_host.h"

namespace rocegw::testing::unreliable {
namespace {

using metrics::DropReason;
using wire::Opcode;

constexpr uint32_t kMtu = 256;
constexpr uint8_t kMtuCode = 1;
constexpr uint64_t kTarget = 0x40000;
constexpr uint64_t kReceives = 0x80000;
constexpr uint32_t kReceiveSize = 2048;

class UnreliableTest : public ::testing::Test {
 protected:
  explicit UnreliableTest(uint32_t payload_stride = 0)
      : from_(Side(0x11, 1, 0)), to_(Side(0x12, 2, payload_stride)) {
    verbs::QpAttributes limits = QpHost::DefaultLimits();
    QpHost::Connect(from_, to_, kMtuCode, 0xFFFFFE, 77, limits);
  }
  static QpHost::Options Side(uint32_t qpn, uint32_t address, uint32_t payload_stride) {
    QpHost::Options options;
    options.type = verbs::QpType::kUc;
    options.qpn = qpn;
    options.gid = wire::Gid::FromV4(0xC0000200 + address);
    options.rq_payload_stride = payload_stride;
    return options;
  }

  std::deque<WirePacket> Post(uint8_t opcode, uint32_t length, uint64_t id = 1, uint32_t rkey = 0) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = id;
    wqe.opcode = opcode;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.imm_or_rkey = static_cast<uint32_t>(0x1000 + id);
    wqe.u.rdma.remote_address = to_.Address(kTarget);
    wqe.u.rdma.rkey = rkey != 0 ? rkey : to_.key();
    for (uint32_t i = 0; i < length; ++i) from_.memory()[i] = static_cast<uint8_t>(id * 31 + i);
    from_.PostSend(wqe, {{0, length}});
    from_.Pump(now_);
    from_.Settle();
    std::deque<WirePacket> packets;
    packets.swap(from_.sent);
    return packets;
  }
  DropReason Deliver(const WirePacket& packet) {
    to_.Deliver(packet, now_);
    to_.Settle();
    return to_.last_drop;
  }
  void DeliverAll(const std::deque<WirePacket>& packets) {
    for (const WirePacket& packet : packets) EXPECT_EQ(Deliver(packet), DropReason::kNone);
  }
  void PostReceive(uint64_t id) {
    to_.PostReceive(id, {{kReceives + id * kReceiveSize, kReceiveSize}});
  }
  bool Holds(uint64_t at, uint32_t length, uint64_t id) {
    for (uint32_t i = 0; i < length; ++i)
      if (to_.memory()[at + i] != static_cast<uint8_t>(id * 31 + i)) return false;
    return true;
  }
  static Opcode OpcodeOf(const WirePacket& packet) { return static_cast<Opcode>(packet.bytes[0]); }

  QpHost from_;
  QpHost to_;
  TimePoint now_{1000000};
};

class WithPayloadInRing : public UnreliableTest {
 protected:
  WithPayloadInRing() : UnreliableTest(128) {}
};

TEST_F(UnreliableTest, Messages_AreCutLikeReliableOnes_AndCompleteWhenTheyHaveLeft) {
  const auto write = Post(ROCEGW_WR_RDMA_WRITE, 3 * kMtu);
  ASSERT_EQ(write.size(), 3u);
  EXPECT_EQ(OpcodeOf(write[0]), Opcode::kUcWriteFirst);
  EXPECT_EQ(OpcodeOf(write[1]), Opcode::kUcWriteMiddle);
  EXPECT_EQ(OpcodeOf(write[2]), Opcode::kUcWriteLast);
  EXPECT_EQ(OpcodeOf(Post(ROCEGW_WR_RDMA_WRITE, 0)[0]), Opcode::kUcWriteOnly);
  EXPECT_EQ(OpcodeOf(Post(ROCEGW_WR_RDMA_WRITE_WITH_IMM, 5)[0]), Opcode::kUcWriteOnlyImm);
  EXPECT_EQ(OpcodeOf(Post(ROCEGW_WR_SEND, 5)[0]), Opcode::kUcSendOnly);
  EXPECT_EQ(OpcodeOf(Post(ROCEGW_WR_SEND_WITH_IMM, kMtu + 1)[1]), Opcode::kUcSendLastImm);
  const auto done = from_.Poll();
  ASSERT_EQ(done.size(), 5u);
  for (const rocegw_cqe& cqe : done) EXPECT_EQ(cqe.status, 0);
  EXPECT_EQ(from_.qp().outstanding(), 0u);
  EXPECT_EQ(from_.qp().deadline(), kNever) << "nothing is waited for";
}

TEST_F(UnreliableTest, CompletionWaitsUntilTheBuffersAreRead) {
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_SEND;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  from_.PostSend(wqe, {{0, 2 * kMtu}});
  from_.Pump(now_);
  EXPECT_TRUE(from_.Poll().empty());
  from_.RunMemory(1);
  EXPECT_TRUE(from_.Poll().empty());
  from_.Settle();
  EXPECT_EQ(from_.Poll().size(), 1u);
}

TEST_F(UnreliableTest, SendAndWrite_Arrive) {
  PostReceive(0);
  PostReceive(1);
  DeliverAll(Post(ROCEGW_WR_SEND_WITH_IMM, 2 * kMtu + 3, 5));
  DeliverAll(Post(ROCEGW_WR_RDMA_WRITE_WITH_IMM, kMtu + 9, 6));
  DeliverAll(Post(ROCEGW_WR_RDMA_WRITE, 10, 7));
  const auto got = to_.Poll();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].wr_id, 0u);
  EXPECT_EQ(got[0].byte_length, 2 * kMtu + 3);
  EXPECT_EQ(got[0].imm_or_rkey, 0x1005u);
  EXPECT_EQ(got[0].source_qpn, 0x11u);
  EXPECT_TRUE(Holds(kReceives, 2 * kMtu + 3, 5));
  EXPECT_EQ(got[1].opcode, uint8_t(verbs::WcOpcode::kReceiveRdmaWithImm));
  EXPECT_EQ(got[1].byte_length, kMtu + 9);
  EXPECT_TRUE(Holds(kTarget, 10, 7));
  EXPECT_TRUE(to_.sent.empty()) << "nothing is ever answered";
  EXPECT_EQ(to_.events, std::vector<verbs::AsyncEvent>());
}

// Each packet of three messages is lost once.
TEST_F(UnreliableTest, OnePacketLost_ItsMessageIsDropped_TheOthersArrive_AndNoReceiveIsLost) {
  for (size_t lost = 0; lost < 9; ++lost) {
    for (uint64_t id = 0; id < 3; ++id) PostReceive(id);
    for (uint64_t id = 0; id < 3; ++id) {
      const auto packets = Post(ROCEGW_WR_SEND, 3 * kMtu, 10 + id);
      ASSERT_EQ(packets.size(), 3u);
      for (size_t i = 0; i < 3; ++i)
        if (id * 3 + i != lost) Deliver(packets[i]);
    }
    auto got = to_.Poll();
    ASSERT_EQ(got.size(), 2u) << lost;
    uint64_t receive = 0;
    for (uint64_t id = 0; id < 3; ++id) {
      if (id == lost / 3) continue;
      EXPECT_EQ(got[receive].wr_id, receive) << "the dropped message's receive is the next one's";
      EXPECT_EQ(got[receive].byte_length, 3 * kMtu);
      EXPECT_TRUE(Holds(kReceives + receive * kReceiveSize, 3 * kMtu, 10 + id)) << lost;
      ++receive;
    }
    // A last message takes the third receive, so that the next round starts without receives.
    DeliverAll(Post(ROCEGW_WR_SEND, 1, 3));
    ASSERT_EQ(to_.Poll().size(), 1u);
  }
}

TEST_F(UnreliableTest, LostAndRepeatedAtRandom_OnlyWholeMessagesArrive_InOrder) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    UnreliableTest::from_.Poll();
    std::vector<uint64_t> whole;
    std::vector<rocegw_cqe> got;
    for (uint64_t id = 0; id < 30; ++id) {
      if (id < 8) PostReceive(id % 8);
      const auto length = static_cast<uint32_t>(random() % (5 * kMtu));
      const auto packets =
          Post(random() % 2 == 0 ? ROCEGW_WR_SEND : ROCEGW_WR_SEND_WITH_IMM, length, id);
      bool complete = true;
      for (const WirePacket& packet : packets) {
        if (random() % 10 == 0) {
          complete = false;
          continue;
        }
        Deliver(packet);
      }
      if (complete) whole.push_back(length);
      for (const rocegw_cqe& cqe : to_.Poll()) {
        EXPECT_EQ(cqe.status, 0);
        EXPECT_TRUE(Holds(kReceives + cqe.wr_id * kReceiveSize, cqe.byte_length, id)) << seed;
        got.push_back(cqe);
        PostReceive(cqe.wr_id);
      }
      from_.Poll();
    }
    ASSERT_EQ(got.size(), whole.size()) << seed;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].byte_length, whole[i]);
    // Resets both ends, so that no receive remains for the next seed.
    verbs::QpAttributes limits = QpHost::DefaultLimits();
    ASSERT_EQ(to_.ToState(verbs::QpState::kReset), 0);
    ASSERT_EQ(from_.ToState(verbs::QpState::kReset), 0);
    QpHost::Connect(from_, to_, kMtuCode, seed, seed + 5, limits);
  }
}

TEST_F(UnreliableTest, RepeatedPacket_DropsWhatItCutsInto) {
  PostReceive(0);
  const auto packets = Post(ROCEGW_WR_SEND, 3 * kMtu, 4);
  EXPECT_EQ(Deliver(packets[0]), DropReason::kNone);
  EXPECT_EQ(Deliver(packets[1]), DropReason::kNone);
  EXPECT_EQ(Deliver(packets[1]), DropReason::k_sequence_gap);
  EXPECT_EQ(Deliver(packets[2]), DropReason::k_sequence_gap) << "until a message begins";
  EXPECT_TRUE(to_.Poll().empty());
  DeliverAll(Post(ROCEGW_WR_SEND, 8, 5));
  const auto got = to_.Poll();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].byte_length, 8u);
}

TEST_F(UnreliableTest, NoReceive_TooSmall_OrNoRight_TheMessageIsDropped_TheQueuePairGoesOn) {
  EXPECT_EQ(Deliver(Post(ROCEGW_WR_SEND, 5)[0]), DropReason::k_ud_no_receive);
  to_.PostReceive(3, {{kReceives, 4}});
  EXPECT_EQ(Deliver(Post(ROCEGW_WR_SEND, 5)[0]), DropReason::k_invalid_request);
  EXPECT_EQ(Deliver(Post(ROCEGW_WR_RDMA_WRITE, 5, 1, 0xBAD)[0]), DropReason::k_access_error);
  verbs::QpAttributes none;
  none.access = 0;
  ASSERT_EQ(to_.Modify(verbs::kAttrAccessFlags | verbs::kAttrState,
                       [&] {
                         none.state = verbs::QpState::kRts;
                         return none;
                       }()),
            0);
  EXPECT_EQ(Deliver(Post(ROCEGW_WR_RDMA_WRITE, 5)[0]), DropReason::k_invalid_request);
  EXPECT_EQ(to_.context().state(), verbs::QpState::kRts);
  EXPECT_EQ(to_.events, std::vector<verbs::AsyncEvent>());
  EXPECT_EQ(to_.memory()[kTarget], 0);
  DeliverAll(Post(ROCEGW_WR_SEND, 4));
  ASSERT_EQ(to_.Poll().size(), 1u) << "the receive was kept";
}

TEST_F(UnreliableTest, ReadsAndAtomics_AreRefused) {
  EXPECT_TRUE(Post(ROCEGW_WR_RDMA_READ, 8).empty());
  const auto done = from_.Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint8_t>(verbs::WcStatus::kLocalQpOperation));
  EXPECT_EQ(from_.context().state(), verbs::QpState::kError);
}

TEST_F(UnreliableTest, BuffersThatAreGone_EndTheQueuePair) {
  from_.Poison(0, 4096);
  Post(ROCEGW_WR_SEND, 8);
  const auto done = from_.Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint8_t>(verbs::WcStatus::kLocalProtection));
}

TEST_F(UnreliableTest, ReceiveBuffersThatAreGone_AreTold) {
  PostReceive(0);
  PostReceive(1);
  to_.Poison(kReceives, 4096);
  Deliver(Post(ROCEGW_WR_SEND, 8)[0]);
  const auto got = to_.Poll();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].status, static_cast<uint8_t>(verbs::WcStatus::kLocalProtection));
  EXPECT_EQ(got[1].status, static_cast<uint8_t>(verbs::WcStatus::kFlush));
}

TEST_F(WithPayloadInRing, ShortMessage_BehindADroppedOne_LiesInTheRing) {
  PostReceive(0);
  const auto packets = Post(ROCEGW_WR_SEND, 2 * kMtu, 4);
  EXPECT_EQ(Deliver(packets[0]), DropReason::kNone);
  DeliverAll(Post(ROCEGW_WR_SEND, 16, 5));
  const auto got = to_.Poll();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].byte_length, 16u);
  EXPECT_NE(got[0].flags & ROCEGW_CQE_PAYLOAD_IN_RING, 0);
}

}  // namespace
}  // namespace rocegw::testing::unreliable
