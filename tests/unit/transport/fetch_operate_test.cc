// SPDX-License-Identifier: Apache-2.0
// Atomics beyond those of verbs (swap, load, store, and, or, xor, subtract) of connected queue
// pairs: they leave only on channels whose peer has them.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/qp/frame_peer.h"

namespace rocegw::testing::fetch_operate {
namespace {

using metrics::DropReason;
using wire::AtomicOperation;
using wire::FrameKind;

constexpr uint64_t kSource = 0x4000;
constexpr uint64_t kTarget = 0x8000;
constexpr uint8_t kLocalQpOperation = 2;
constexpr uint8_t kFetchAdded = 4;  // IBV_WC_FETCH_ADD

uint64_t WordAt(QpHost& host, uint64_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, &host.memory()[offset], sizeof word);
  return word;
}
void SetWord(QpHost& host, uint64_t offset, uint64_t word) {
  std::memcpy(&host.memory()[offset], &word, sizeof word);
}

void Post(QpHost& host, uint8_t opcode, uint64_t operand, uint32_t length = 8) {
  rocegw_send_wqe wqe{};
  wqe.wr_id = opcode;
  wqe.opcode = opcode;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  wqe.u.rdma = {0x7000, operand, 0xBAD, 0x1234, 0};
  host.PostSend(wqe, {{kSource, length}});
}

class FetchOperateOnChannel : public ::testing::Test {
 protected:
  FetchOperateOnChannel() { peer.host().context().peer_operates = true; }
  wire::ChannelFrame Operate(uint32_t message, AtomicOperation operation, uint64_t operand,
                             uint64_t offset = kTarget) {
    wire::ChannelFrame frame = peer.Frame(FrameKind::kFetchOperate, message);
    frame.flags |= wire::kFrameLast;
    frame.address = peer.host().Address(offset);
    frame.rkey = peer.host().key();
    frame.operation = operation;
    frame.swap_or_add = operand;
    return frame;
  }
  FramePeer peer;
};

TEST_F(FetchOperateOnChannel, Requests_CarryOperationAndOperand) {
  const struct {
    uint8_t opcode;
    AtomicOperation operation;
    uint64_t operand;
  } cases[] = {{ROCEGW_WR_ATOMIC_SWAP, AtomicOperation::kSwap, 9},
               {ROCEGW_WR_ATOMIC_LOAD, AtomicOperation::kLoad, 0},
               {ROCEGW_WR_ATOMIC_STORE, AtomicOperation::kStore, 9},
               {ROCEGW_WR_ATOMIC_FETCH_AND, AtomicOperation::kAnd, 9},
               {ROCEGW_WR_ATOMIC_FETCH_OR, AtomicOperation::kOr, 9},
               {ROCEGW_WR_ATOMIC_FETCH_XOR, AtomicOperation::kXor, 9},
               {ROCEGW_WR_ATOMIC_FETCH_SUB, AtomicOperation::kSubtract, 9}};
  uint32_t message = 0;
  for (const auto& c : cases) {
    Post(peer.host(), c.opcode, 9);
    const SentFrame out = peer.OutOne();
    EXPECT_EQ(out.frame.kind, FrameKind::kFetchOperate);
    EXPECT_EQ(out.frame.operation, c.operation);
    EXPECT_EQ(out.frame.swap_or_add, c.operand);
    EXPECT_EQ(out.frame.compare, 0u);
    EXPECT_EQ(out.frame.length, 0u);
    EXPECT_EQ(out.frame.address, 0x7000u);
    EXPECT_EQ(wire::ValidateFrame(out.frame, 0), DropReason::kNone);
    wire::ChannelFrame result = peer.Frame(FrameKind::kAtomicResult, message++);
    result.flags = wire::kFrameLast;
    result.original = 1000 + message;
    EXPECT_EQ(peer.Deliver(result), DropReason::kNone);
    peer.Out();
    const rocegw_cqe done = peer.base().PollOne();
    EXPECT_EQ(done.status, 0);
    EXPECT_EQ(done.opcode, kFetchAdded);
    EXPECT_EQ(WordAt(peer.host(), kSource), 1000 + message);
  }
}

TEST_F(FetchOperateOnChannel, Responder_ChangesTheWord_AndAnswersWithWhatItWas) {
  SetWord(peer.host(), kTarget, 0xF0);
  const struct {
    AtomicOperation operation;
    uint64_t operand;
    uint64_t after;
  } steps[] = {{AtomicOperation::kLoad, 0, 0xF0},     {AtomicOperation::kOr, 0x0F, 0xFF},
               {AtomicOperation::kAnd, 0x3C, 0x3C},   {AtomicOperation::kXor, 0xFF, 0xC3},
               {AtomicOperation::kSubtract, 3, 0xC0}, {AtomicOperation::kStore, 7, 7},
               {AtomicOperation::kSwap, 11, 11}};
  uint64_t before = 0xF0;
  uint32_t message = 0;
  for (const auto& step : steps) {
    EXPECT_EQ(peer.Deliver(Operate(message, step.operation, step.operand)), DropReason::kNone);
    const SentFrame answer = peer.OutOne();
    EXPECT_EQ(answer.frame.kind, FrameKind::kAtomicResult);
    EXPECT_EQ(answer.frame.message, message++);
    EXPECT_EQ(answer.frame.original, before);
    EXPECT_EQ(WordAt(peer.host(), kTarget), step.after);
    before = step.after;
  }
}

TEST_F(FetchOperateOnChannel, Misaligned_InvalidRequest) {
  peer.Deliver(Operate(0, AtomicOperation::kStore, 7, kTarget + 4));
  EXPECT_EQ(peer.OutOne().frame.syndrome, 0x61);
  EXPECT_EQ(WordAt(peer.host(), kTarget), 0u);
}

TEST_F(FetchOperateOnChannel, WrongKey_RemoteAccess) {
  wire::ChannelFrame load = Operate(0, AtomicOperation::kLoad, 0);
  load.rkey ^= 0x5A;
  peer.Deliver(load);
  EXPECT_EQ(peer.OutOne().frame.syndrome, 0x62);
}

TEST_F(FetchOperateOnChannel, PeerThatHasNone_FailsHere) {
  peer.host().context().peer_operates = false;
  Post(peer.host(), ROCEGW_WR_ATOMIC_SWAP, 1);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.base().PollOne().status, kLocalQpOperation);
}

TEST(FetchOperateNatively, FailsBeforeItLeaves) {
  ScriptedPeer peer;
  Post(peer.host(), ROCEGW_WR_ATOMIC_FETCH_OR, 1);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.PollOne().status, kLocalQpOperation);
}

}  // namespace
}  // namespace rocegw::testing::fetch_operate
