// SPDX-License-Identifier: Apache-2.0
// Shared receive queues as programs see them, against a scripted daemon.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {
namespace {

class SrqTest : public AttachedTest {
 protected:
  void SetUp() override {
    AttachedTest::SetUp();
    if (HasFatalFailure()) return;
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    mr_ = ibv_reg_mr(pd_, buffer_, sizeof buffer_, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(nullptr, mr_);
    ibv_srq_init_attr init{};
    init.srq_context = this;
    init.attr = {4, 2, 0};
    srq_ = ibv_create_srq(pd_, &init);
    ASSERT_NE(nullptr, srq_);
    EXPECT_EQ(4u, init.attr.max_wr);
    EXPECT_EQ(2u, init.attr.max_sge);
  }
  void TearDown() override {
    EXPECT_EQ(0, ibv_destroy_srq(srq_));
    EXPECT_EQ(0, ibv_destroy_cq(cq_));
    EXPECT_EQ(0, ibv_dereg_mr(mr_));
    AttachedTest::TearDown();
  }

  FakeSrq Fake() { return daemon_.Srq(srq_->handle); }
  ibv_qp* MakeQp() { return MakeQp(cq_); }
  ibv_qp* MakeQp(ibv_cq* cq) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.srq = srq_;
    init.qp_type = IBV_QPT_RC;
    init.cap = {4, 0, 1, 0, 0};
    ibv_qp* const qp = ibv_create_qp(pd_, &init);
    EXPECT_NE(nullptr, qp);
    return qp;
  }
  int Post(uint64_t id) {
    ibv_sge sge{reinterpret_cast<uint64_t>(buffer_) + id * 64, 64, mr_->lkey};
    ibv_recv_wr wr{id, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_srq_recv(srq_, &wr, &bad);
    EXPECT_EQ(error != 0 ? &wr : nullptr, bad);
    return error;
  }
  // Completes the receive in that slot at the queue pair.
  void Complete(ibv_qp* qp, uint32_t slot, const char* text = nullptr) {
    const FakeQp fake = daemon_.Qp(qp->qp_num);
    rocegw_cqe cqe{};
    cqe.wr_id = Fake().Receive(slot)->wr_id;
    cqe.opcode = IBV_WC_RECV;
    cqe.flags = ROCEGW_CQE_RECEIVE;
    cqe.ring_slot = slot;
    if (text != nullptr) {
      cqe.byte_length = static_cast<uint32_t>(strlen(text));
      cqe.flags |= ROCEGW_CQE_PAYLOAD_IN_RING;
      memcpy(Fake().payload + size_t{slot} * Fake().reply.payload_stride, text, cqe.byte_length);
    }
    daemon_.Complete(cq_->handle, fake.reply.worker, fake, cqe);
  }
  uint64_t PollOne() {
    ibv_wc wc{};
    EXPECT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    return wc.wr_id;
  }

  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_srq* srq_ = nullptr;
  char buffer_[4096] = {};
};

TEST_F(SrqTest, Create_FillsWhatProgramsRead_AndTellsTheDaemon) {
  EXPECT_EQ(context_, srq_->context);
  EXPECT_EQ(pd_, srq_->pd);
  EXPECT_EQ(this, srq_->srq_context);
  const rocegw_create_srq asked = Fake().request;
  EXPECT_EQ(pd_->handle, asked.pd);
  EXPECT_EQ(4u, asked.max_wr);
  EXPECT_EQ(2u, asked.max_sge);
  ibv_srq_init_attr_ex extended{};
  extended.attr = {8, 1, 0};
  extended.pd = pd_;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
  extended.srq_type = IBV_SRQT_BASIC;
  ibv_srq* const second = ibv_create_srq_ex(context_, &extended);
  ASSERT_NE(nullptr, second);
  EXPECT_EQ(0, ibv_destroy_srq(second));
  extended.srq_type = IBV_SRQT_TM;
  EXPECT_EQ(nullptr, ibv_create_srq_ex(context_, &extended));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(SrqTest, OlderDaemon_IsNotSupported) {
  daemon_.Fail(ROCEGW_MSG_CREATE_SRQ, ENOSYS);
  ibv_srq_init_attr init{};
  init.attr = {1, 1, 0};
  EXPECT_EQ(nullptr, ibv_create_srq(pd_, &init));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(SrqTest, QueuePair_NamesIt_AndTakesNoReceivesOfItsOwn) {
  ibv_qp* const qp = MakeQp();
  EXPECT_EQ(srq_, qp->srq);
  EXPECT_EQ(srq_->handle, daemon_.Qp(qp->qp_num).request.srq);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
  EXPECT_EQ(srq_, init.srq);
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_recv(qp, &wr, &bad));
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(SrqTest, Post_FillsSlotsAndTellsTheirOrder) {
  EXPECT_EQ(0, Post(7));
  EXPECT_EQ(0, Post(8));
  const FakeSrq fake = Fake();
  EXPECT_EQ(2u, fake.control->producer);
  EXPECT_EQ(7u, fake.Receive(fake.order[0])->wr_id);
  EXPECT_EQ(8u, fake.Receive(fake.order[1])->wr_id);
  EXPECT_EQ(0, Post(9));
  EXPECT_EQ(0, Post(10));
  EXPECT_EQ(ENOMEM, Post(11));
  ibv_sge many[3] = {};
  ibv_recv_wr wr{12, nullptr, many, 3};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ENOMEM, ibv_post_srq_recv(srq_, &wr, &bad));
}

TEST_F(SrqTest, TooManyPieces_Invalid_AndWhatStoodBeforeIsPosted) {
  ibv_sge many[3] = {};
  ibv_recv_wr second{2, nullptr, many, 3};
  ibv_recv_wr first{1, &second, many, 1};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_srq_recv(srq_, &first, &bad));
  EXPECT_EQ(&second, bad);
  EXPECT_EQ(1u, Fake().control->producer);
}

TEST_F(SrqTest, SlotIsFree_WhenItsCompletionIsPolled_WhateverTheOrder) {
  ibv_qp* const one = MakeQp();
  ibv_qp* const two = MakeQp();
  for (uint64_t id = 0; id < 4; ++id) EXPECT_EQ(0, Post(id));
  // The oldest receive stays; the others are reused again and again.
  const FakeSrq fake = Fake();
  std::set<uint32_t> used;
  for (uint32_t i = 1; i < 30; ++i) {
    const uint32_t slot = fake.order[i & 3];
    EXPECT_NE(fake.order[0 & 3], i < 4 ? slot : UINT32_MAX);
    const uint64_t id = fake.Receive(slot)->wr_id;
    Complete(i % 2 == 0 ? one : two, slot, "text");
    EXPECT_EQ(ENOMEM, Post(100));
    EXPECT_EQ(id, PollOne());
    EXPECT_STREQ("text", &buffer_[id * 64]);
    EXPECT_EQ(0, Post(id));
    EXPECT_NE(0u, fake.Receive(slot)->wr_id) << "nobody took the slot that is in use";
  }
  EXPECT_EQ(0, ibv_destroy_qp(one));
  EXPECT_EQ(0, ibv_destroy_qp(two));
}

TEST_F(SrqTest, CompletionsOfAQueuePairThatGoes_FreeTheirSlots) {
  ibv_qp* const qp = MakeQp();
  for (uint64_t id = 0; id < 4; ++id) EXPECT_EQ(0, Post(id));
  Complete(qp, Fake().order[0]);
  Complete(qp, Fake().order[1]);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
  EXPECT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE)) << "twice frees nothing twice";
  EXPECT_EQ(0, Post(4));
  Complete(qp, Fake().order[2]);
  EXPECT_EQ(0, ibv_destroy_qp(qp));
  EXPECT_EQ(0, Post(5));
  EXPECT_EQ(0, Post(6));
  EXPECT_EQ(ENOMEM, Post(7));
  ibv_wc wc{};
  EXPECT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(ENOMEM, Post(7)) << "polling frees nothing again";
}

TEST_F(SrqTest, DaemonIsGone_EveryReceiveIsFlushedOnce_ByWhicheverQueueIsPolled) {
  ibv_cq* const other = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp* const one = MakeQp(cq_);
  ibv_qp* const two = MakeQp(other);
  for (uint64_t id = 0; id < 4; ++id) EXPECT_EQ(0, Post(id));
  Complete(one, Fake().order[1]);
  EXPECT_EQ(1u, PollOne());
  daemon_.Die();
  std::multiset<uint64_t> flushed;
  ibv_cq* const queues[] = {cq_, other};
  for (int i = 0; i < 8192 && flushed.size() < 3; ++i) {
    ibv_wc wc{};
    if (ibv_poll_cq(queues[i % 2], 1, &wc) != 1) continue;
    EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
    EXPECT_EQ(IBV_WC_RECV, wc.opcode);
    EXPECT_EQ(i % 2 == 0 ? one->qp_num : two->qp_num, wc.qp_num);
    flushed.insert(wc.wr_id);
  }
  EXPECT_EQ((std::multiset<uint64_t>{0, 2, 3}), flushed);
  EXPECT_EQ(0, Post(9)) << "posting goes on";
  ibv_wc wc{};
  ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(9u, wc.wr_id);
  EXPECT_EQ(0, ibv_poll_cq(other, 1, &wc));
  EXPECT_EQ(0, ibv_destroy_qp(one));
  EXPECT_EQ(0, ibv_destroy_qp(two));
  EXPECT_EQ(0, ibv_destroy_cq(other));
}

TEST_F(SrqTest, Larger_WhatIsPostedStays_AndMoreFits) {
  ibv_qp* const qp = MakeQp(cq_);
  for (uint64_t id = 0; id < 4; ++id) EXPECT_EQ(0, Post(id));
  EXPECT_EQ(ENOMEM, Post(4));
  ibv_srq_attr attr{};
  attr.max_wr = 5;
  ASSERT_EQ(0, ibv_modify_srq(srq_, &attr, IBV_SRQ_MAX_WR));
  EXPECT_EQ(8u, daemon_.Last(ROCEGW_MSG_MODIFY_SRQ).As<rocegw_modify_srq>().max_wr);
  for (uint64_t id = 4; id < 8; ++id) EXPECT_EQ(0, Post(id));
  EXPECT_EQ(ENOMEM, Post(8));
  const FakeSrq fake = Fake();
  std::set<uint64_t> ids;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t slot = fake.order[i];
    ids.insert(fake.Receive(slot)->wr_id);
    Complete(qp, slot, slot < 4 ? "text" : nullptr);
  }
  EXPECT_EQ(8u, ids.size());
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(ids.contains(PollOne()));
  EXPECT_STREQ("text", &buffer_[0]);
  for (uint64_t id = 0; id < 8; ++id) EXPECT_EQ(0, Post(id));
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(SrqTest, Smaller_OnlyWhenLessIsPosted) {
  ibv_qp* const qp = MakeQp(cq_);
  for (uint64_t id = 0; id < 3; ++id) EXPECT_EQ(0, Post(id));
  ibv_srq_attr attr{};
  attr.max_wr = 2;
  EXPECT_EQ(EINVAL, ibv_modify_srq(srq_, &attr, IBV_SRQ_MAX_WR));
  Complete(qp, Fake().order[0]);
  PollOne();
  EXPECT_EQ(0, ibv_modify_srq(srq_, &attr, IBV_SRQ_MAX_WR));
  EXPECT_EQ(ENOMEM, Post(3));
  attr.max_wr = 0;
  EXPECT_EQ(EINVAL, ibv_modify_srq(srq_, &attr, IBV_SRQ_MAX_WR));
  daemon_.Fail(ROCEGW_MSG_MODIFY_SRQ, ENOMEM);
  attr.max_wr = 64;
  EXPECT_EQ(ENOMEM, ibv_modify_srq(srq_, &attr, IBV_SRQ_MAX_WR));
  EXPECT_EQ(ENOMEM, Post(3)) << "as before";
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(SrqTest, Limit_IsSetReadAndReported) {
  ibv_srq_attr attr{};
  attr.srq_limit = 3;
  EXPECT_EQ(0, ibv_modify_srq(srq_, &attr, IBV_SRQ_LIMIT));
  EXPECT_EQ(EINVAL, ibv_modify_srq(srq_, &attr, 64));
  ibv_srq_attr now{};
  EXPECT_EQ(0, ibv_query_srq(srq_, &now));
  EXPECT_EQ(4u, now.max_wr);
  EXPECT_EQ(2u, now.max_sge);
  EXPECT_EQ(3u, now.srq_limit);
  rocegw_async_event event{};
  event.type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.kind = ROCEGW_OBJECT_SRQ;
  event.cookie = Fake().cookie;
  daemon_.SendAsyncEvent(event);
  ibv_async_event got{};
  ASSERT_EQ(0, ibv_get_async_event(context_, &got));
  EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, got.event_type);
  EXPECT_EQ(srq_, got.element.srq);
  ibv_ack_async_event(&got);
}

}  // namespace
}  // namespace rocegw::testing
