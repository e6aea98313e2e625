// SPDX-License-Identifier: Apache-2.0
// The ibv_wr_* calls leave the same in the send queue as ibv_post_send.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {
namespace {

constexpr uint64_t kAllOps = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                             IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                             IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                             IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

class SendBuilderTest : public AttachedTest {
 protected:
  void SetUp() override {
    AttachedTest::SetUp();
    if (HasFatalFailure()) return;
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    qp_ = Make(IBV_QPT_RC, kAllOps);
    ASSERT_NE(nullptr, qp_);
    ex_ = ibv_qp_to_qp_ex(qp_);
    ASSERT_NE(nullptr, ex_);
    ToReady(qp_);
  }
  void TearDown() override {
    EXPECT_EQ(0, ibv_destroy_qp(qp_));
    EXPECT_EQ(0, ibv_destroy_cq(cq_));
    AttachedTest::TearDown();
  }
  ibv_qp* Make(ibv_qp_type type, uint64_t ops) {
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = type;
    init.cap = {4, 1, 2, 1, 32};
    init.pd = pd_;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = ops;
    return ibv_create_qp_ex(context_, &init);
  }
  static void ToReady(ibv_qp* qp) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
  }
  void Next(uint64_t id, unsigned flags) {
    ex_->wr_id = id;
    ex_->wr_flags = flags;
  }
  FakeQp Fake() { return daemon_.Qp(qp_->qp_num); }

  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_qp_ex* ex_ = nullptr;
};

TEST_F(SendBuilderTest, EveryKindOfRequest_LiesInTheQueue_AndTheDaemonHearsOfItAtTheEnd) {
  ibv_wr_start(ex_);
  Next(1, IBV_SEND_SIGNALED);
  ibv_wr_rdma_write_imm(ex_, 11, 0x1000, 77);
  const ibv_sge two[2] = {{0x10, 5, 3}, {0x20, 6, 4}};
  ibv_wr_set_sge_list(ex_, 2, two);
  Next(2, IBV_SEND_FENCE);
  ibv_wr_rdma_read(ex_, 12, 0x2000);
  ibv_wr_set_sge(ex_, 5, 0x30, 9);
  Next(3, 0);
  ibv_wr_atomic_cmp_swp(ex_, 13, 0x3000, 100, 200);
  ibv_wr_set_sge(ex_, 5, 0x40, 8);
  Next(4, 0);
  ibv_wr_send(ex_);
  EXPECT_EQ(0u, Fake().control->sq_producer) << "nothing is posted yet";
  EXPECT_FALSE(Fake().DoorbellRang());
  EXPECT_EQ(0, ibv_wr_complete(ex_));
  EXPECT_EQ(4u, Fake().control->sq_producer);
  EXPECT_TRUE(Fake().DoorbellRang());

  const rocegw_send_wqe* wqe = Fake().SendSlot(0);
  EXPECT_EQ(ROCEGW_WR_RDMA_WRITE_WITH_IMM, wqe->opcode);
  EXPECT_EQ(1u, wqe->wr_id);
  EXPECT_EQ(77u, wqe->imm_or_rkey);
  EXPECT_EQ(0x1000u, wqe->u.rdma.remote_address);
  EXPECT_EQ(11u, wqe->u.rdma.rkey);
  EXPECT_EQ(ROCEGW_WQE_SIGNALED, wqe->flags);
  ASSERT_EQ(2, wqe->num_sge);
  EXPECT_EQ(0, memcmp(Fake().SendSges(0), two, sizeof two));
  wqe = Fake().SendSlot(1);
  EXPECT_EQ(ROCEGW_WR_RDMA_READ, wqe->opcode);
  EXPECT_EQ(ROCEGW_WQE_FENCE, wqe->flags);
  EXPECT_EQ(12u, wqe->u.rdma.rkey);
  EXPECT_EQ(0x30u, Fake().SendSges(1)->address);
  wqe = Fake().SendSlot(2);
  EXPECT_EQ(ROCEGW_WR_ATOMIC_CMP_AND_SWP, wqe->opcode);
  EXPECT_EQ(100u, wqe->u.rdma.compare_add);
  EXPECT_EQ(200u, wqe->u.rdma.swap);
  EXPECT_EQ(13u, wqe->u.rdma.rkey);
  wqe = Fake().SendSlot(3);
  EXPECT_EQ(ROCEGW_WR_SEND, wqe->opcode);
  EXPECT_EQ(0, wqe->num_sge);
}

TEST_F(SendBuilderTest, OtherKinds) {
  ibv_wr_start(ex_);
  ibv_wr_send_imm(ex_, 5);
  ibv_wr_rdma_write(ex_, 2, 3);
  ibv_wr_atomic_fetch_add(ex_, 7, 0x100, 9);
  ibv_wr_set_sge(ex_, 5, 0x40, 8);
  EXPECT_EQ(0, ibv_wr_complete(ex_));
  EXPECT_EQ(ROCEGW_WR_SEND_WITH_IMM, Fake().SendSlot(0)->opcode);
  EXPECT_EQ(5u, Fake().SendSlot(0)->imm_or_rkey);
  EXPECT_EQ(ROCEGW_WR_RDMA_WRITE, Fake().SendSlot(1)->opcode);
  EXPECT_EQ(3u, Fake().SendSlot(1)->u.rdma.remote_address);
  EXPECT_EQ(ROCEGW_WR_ATOMIC_FETCH_AND_ADD, Fake().SendSlot(2)->opcode);
  EXPECT_EQ(9u, Fake().SendSlot(2)->u.rdma.compare_add);
}

TEST_F(SendBuilderTest, InlineData_IsTakenWhenItIsNamed) {
  char one[] = "first ";
  char two[] = "second";
  const ibv_data_buf buffers[3] = {{one, 6}, {nullptr, 0}, {two, 6}};
  ibv_wr_start(ex_);
  ibv_wr_send(ex_);
  ibv_wr_set_inline_data_list(ex_, 3, buffers);
  memset(one, 'x', sizeof one);
  ibv_wr_send(ex_);
  ibv_wr_set_inline_data(ex_, two, 6);
  memset(two, 'x', sizeof two);
  EXPECT_EQ(0, ibv_wr_complete(ex_));
  EXPECT_EQ(ROCEGW_WQE_INLINE, Fake().SendSlot(0)->flags);
  EXPECT_EQ(0, memcmp(Fake().SendPayload(0), "first second", 12));
  EXPECT_EQ(12u, Fake().SendSges(0)->length);
  EXPECT_EQ(0, memcmp(Fake().SendPayload(1), "second", 6));
}

TEST_F(SendBuilderTest, OneThatIsWrong_NoneIsPosted_AndTheQueueGoesOn) {
  char much[64] = {};
  ibv_wr_start(ex_);
  ibv_wr_send(ex_);
  ibv_wr_send(ex_);
  ibv_wr_set_inline_data(ex_, much, 33);
  ibv_wr_send(ex_);
  EXPECT_EQ(ENOMEM, ibv_wr_complete(ex_));
  const ibv_sge three[3] = {};
  ibv_wr_start(ex_);
  ibv_wr_send(ex_);
  ibv_wr_set_sge_list(ex_, 3, three);
  EXPECT_EQ(EINVAL, ibv_wr_complete(ex_));
  ibv_wr_start(ex_);
  for (int i = 0; i < 5; ++i) ibv_wr_send(ex_);
  EXPECT_EQ(ENOMEM, ibv_wr_complete(ex_)) << "the queue has four places";
  EXPECT_EQ(0u, Fake().control->sq_producer);
  EXPECT_FALSE(Fake().DoorbellRang());
  ibv_wr_start(ex_);
  for (int i = 0; i < 4; ++i) ibv_wr_send(ex_);
  EXPECT_EQ(0, ibv_wr_complete(ex_));
  EXPECT_EQ(4u, Fake().control->sq_producer);
}

TEST_F(SendBuilderTest, Abort_PostsNothing_AndPlainPostsGoOn) {
  ibv_wr_start(ex_);
  ibv_wr_send(ex_);
  ibv_wr_send(ex_);
  ibv_wr_abort(ex_);
  EXPECT_EQ(0u, Fake().control->sq_producer);
  ibv_send_wr wr{};
  wr.wr_id = 9;
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(9u, Fake().SendSlot(0)->wr_id);
}

TEST_F(SendBuilderTest, NotReady_IsInvalid) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(0, ibv_modify_qp(qp_, &attr, IBV_QP_STATE));
  ibv_wr_start(ex_);
  ibv_wr_send(ex_);
  EXPECT_EQ(EINVAL, ibv_wr_complete(ex_));
}

TEST_F(SendBuilderTest, Datagrams_NameTheirDestination) {
  ibv_qp* const ud = Make(IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
  ASSERT_NE(nullptr, ud);
  ToReady(ud);
  ibv_ah_attr address{};
  address.is_global = 1;
  address.port_num = 1;
  address.grh.dgid.raw[15] = 42;
  address.grh.sgid_index = 0;
  ibv_ah* const ah = ibv_create_ah(pd_, &address);
  ASSERT_NE(nullptr, ah);
  ibv_qp_ex* const ex = ibv_qp_to_qp_ex(ud);
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_set_ud_addr(ex, ah, 0x1234, 0x55);
  EXPECT_EQ(0, ibv_wr_complete(ex));
  const FakeQp fake = daemon_.Qp(ud->qp_num);
  EXPECT_EQ(42, fake.SendSlot(0)->u.ud.av.dgid[15]);
  EXPECT_EQ(0x1234u, fake.SendSlot(0)->u.ud.remote_qpn);
  EXPECT_EQ(0x55u, fake.SendSlot(0)->u.ud.remote_qkey);
  EXPECT_EQ(0, ibv_destroy_ah(ah));
  EXPECT_EQ(0, ibv_destroy_qp(ud));
}

TEST_F(SendBuilderTest, OperationsThatThereAreNot_AreRefused_AndPlainQueuePairsHaveNone) {
  for (const uint64_t op :
       {uint64_t{IBV_QP_EX_WITH_TSO}, uint64_t{IBV_QP_EX_WITH_ATOMIC_WRITE}, uint64_t{1} << 40}) {
    errno = 0;
    EXPECT_EQ(nullptr, Make(IBV_QPT_RC, IBV_QP_EX_WITH_SEND | op));
    EXPECT_EQ(EOPNOTSUPP, errno);
  }
  EXPECT_EQ(nullptr, Make(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE));
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap = {1, 1, 1, 1, 0};
  ibv_qp* const plain = ibv_create_qp(pd_, &init);
  ASSERT_NE(nullptr, plain);
  EXPECT_EQ(nullptr, ibv_qp_to_qp_ex(plain));
  EXPECT_EQ(0, ibv_destroy_qp(plain));
}

}  // namespace
}  // namespace rocegw::testing
