// SPDX-License-Identifier: Apache-2.0
// Extended completion queues: ibv_start_poll and related calls return the same as ibv_poll_cq, and
// the creation time of completions.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <ctime>
#include <set>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {
namespace {

class PollCallsTest : public AttachedTest {
 protected:
  void SetUp() override {
    AttachedTest::SetUp();
    if (HasFatalFailure()) return;
    ibv_cq_init_attr_ex attr = Attr();
    cq_ = ibv_create_cq_ex(context_, &attr);
    ASSERT_NE(nullptr, cq_);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq_);
    init.qp_type = IBV_QPT_RC;
    init.cap = {4, 4, 1, 1, 0};
    qp_ = ibv_create_qp(pd_, &init);
    ASSERT_NE(nullptr, qp_);
  }
  void TearDown() override {
    EXPECT_EQ(0, ibv_destroy_qp(qp_));
    EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq_)));
    AttachedTest::TearDown();
  }
  ibv_cq_init_attr_ex Attr() {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 16;
    attr.cq_context = this;
    attr.wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    return attr;
  }
  void Complete(uint64_t id, uint8_t status, uint64_t at_ns) {
    const FakeQp fake = daemon_.Qp(qp_->qp_num);
    rocegw_cqe cqe{};
    cqe.wr_id = id;
    cqe.status = status;
    cqe.opcode = IBV_WC_RECV;
    cqe.flags = ROCEGW_CQE_RECEIVE | ROCEGW_CQE_WITH_IMM;
    cqe.imm_or_rkey = static_cast<uint32_t>(id + 1);
    cqe.byte_length = static_cast<uint32_t>(id + 2);
    cqe.source_qpn = 77;
    cqe.vendor_error = 5;
    cqe.timestamp_ns = at_ns;
    cqe.ring_slot = static_cast<uint32_t>(id);
    daemon_.Complete(cq_->handle, fake.reply.worker, fake, cqe);
  }

  ibv_cq_ex* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

TEST_F(PollCallsTest, Empty_IsEnoent_AgainAndAgain) {
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ENOENT, ibv_start_poll(cq_, &attr));
  EXPECT_EQ(ENOENT, ibv_start_poll(cq_, &attr));
  attr.comp_mask = 1;
  EXPECT_EQ(EINVAL, ibv_start_poll(cq_, &attr));
}

TEST_F(PollCallsTest, OneAfterTheOther_WithAllThatIsKnown) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t at = static_cast<uint64_t>(now.tv_sec) * 1000000000u;
  Complete(0, IBV_WC_SUCCESS, at);
  Complete(1, IBV_WC_RETRY_EXC_ERR, at + 1000);
  ibv_poll_cq_attr attr{};
  ASSERT_EQ(0, ibv_start_poll(cq_, &attr));
  EXPECT_EQ(0u, cq_->wr_id);
  EXPECT_EQ(IBV_WC_SUCCESS, cq_->status);
  EXPECT_EQ(IBV_WC_RECV, ibv_wc_read_opcode(cq_));
  EXPECT_EQ(1u, ibv_wc_read_imm_data(cq_));
  EXPECT_EQ(2u, ibv_wc_read_byte_len(cq_));
  EXPECT_EQ(qp_->qp_num, ibv_wc_read_qp_num(cq_));
  EXPECT_EQ(77u, ibv_wc_read_src_qp(cq_));
  EXPECT_EQ(unsigned{IBV_WC_WITH_IMM}, ibv_wc_read_wc_flags(cq_));
  EXPECT_EQ(5u, ibv_wc_read_vendor_err(cq_));
  EXPECT_EQ(0u, ibv_wc_read_slid(cq_));
  EXPECT_EQ(0, ibv_wc_read_sl(cq_));
  EXPECT_EQ(0, ibv_wc_read_dlid_path_bits(cq_));
  EXPECT_EQ(at, ibv_wc_read_completion_ts(cq_));
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  const uint64_t wall_ns =
      static_cast<uint64_t>(wall.tv_sec) * 1000000000u + static_cast<uint64_t>(wall.tv_nsec);
  EXPECT_LE(ibv_wc_read_completion_wallclock_ns(cq_), wall_ns);
  ASSERT_EQ(0, ibv_next_poll(cq_));
  EXPECT_EQ(1u, cq_->wr_id);
  EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, cq_->status);
  EXPECT_EQ(at + 1000, ibv_wc_read_completion_ts(cq_));
  EXPECT_EQ(ENOENT, ibv_next_poll(cq_));
  ibv_end_poll(cq_);
  // The plain call sees the same queue.
  Complete(2, IBV_WC_SUCCESS, at);
  ibv_wc wc{};
  EXPECT_EQ(1, ibv_poll_cq(ibv_cq_ex_to_cq(cq_), 1, &wc));
  EXPECT_EQ(2u, wc.wr_id);
}

TEST_F(PollCallsTest, WhatThereIsNot_IsRefused) {
  for (const uint64_t flag : {uint64_t{IBV_WC_EX_WITH_CVLAN}, uint64_t{IBV_WC_EX_WITH_FLOW_TAG},
                              uint64_t{IBV_WC_EX_WITH_TM_INFO}, uint64_t{1} << 40}) {
    ibv_cq_init_attr_ex attr = Attr();
    attr.wc_flags |= flag;
    EXPECT_EQ(nullptr, ibv_create_cq_ex(context_, &attr));
    EXPECT_EQ(EOPNOTSUPP, errno);
  }
  ibv_cq_init_attr_ex attr = Attr();
  attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  EXPECT_EQ(nullptr, ibv_create_cq_ex(context_, &attr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  attr = Attr();
  attr.cqe = 0;
  EXPECT_EQ(nullptr, ibv_create_cq_ex(context_, &attr));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(PollCallsTest, WallClock_OfOneCompletion_IsOneTime) {
  Complete(1, IBV_WC_SUCCESS, 5'000'000'000);
  ibv_poll_cq_attr attr{};
  ASSERT_EQ(0, ibv_start_poll(cq_, &attr));
  std::set<uint64_t> read;
  for (int i = 0; i < 100'000; ++i) read.insert(ibv_wc_read_completion_wallclock_ns(cq_));
  EXPECT_EQ(1u, read.size());
  ibv_end_poll(cq_);
}

TEST_F(PollCallsTest, WallClock_LaterCompletions_KeepTheirDistance) {
  ibv_poll_cq_attr attr{};
  uint64_t first = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    Complete(i, IBV_WC_SUCCESS, 5'000'000'000 + i * 1000);
    ASSERT_EQ(0, ibv_start_poll(cq_, &attr));
    const uint64_t at = ibv_wc_read_completion_wallclock_ns(cq_);
    ibv_end_poll(cq_);
    if (i == 0) first = at;
    // The clocks drift by far less meanwhile.
    EXPECT_NEAR(static_cast<double>(i) * 1000, static_cast<double>(at - first), 500) << i;
  }
}

}  // namespace
}  // namespace rocegw::testing
