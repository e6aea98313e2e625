// SPDX-License-Identifier: Apache-2.0
// Memory windows: the library's requests for them, and work requests that bind and invalidate.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing::client_windows {
namespace {

class WindowTest : public AttachedTest {
 protected:
  void SetUp() override {
    AttachedTest::SetUp();
    if (HasFatalFailure()) return;
    daemon_.OnRequest(ROCEGW_MSG_ALLOC_MW, [](const RecordedRequest&) {
      rocegw_mw_reply reply{};
      reply.handle = 31;
      reply.rkey = 0x5500FF;
      std::vector<uint8_t> bytes(sizeof reply);
      std::memcpy(bytes.data(), &reply, sizeof reply);
      return bytes;
    });
    daemon_.OnRequest(ROCEGW_MSG_DEALLOC_MW, [](const RecordedRequest&) {
      return std::vector<uint8_t>(sizeof(rocegw_object_reply));
    });
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    mr_ = ibv_reg_mr(pd_, buffer_, sizeof buffer_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    ASSERT_NE(nullptr, mr_);
    qp_ = Make(IBV_QPT_RC);
    ASSERT_NE(nullptr, qp_);
  }
  void TearDown() override {
    EXPECT_EQ(0, ibv_destroy_qp(qp_));
    EXPECT_EQ(0, ibv_dereg_mr(mr_));
    EXPECT_EQ(0, ibv_destroy_cq(cq_));
    AttachedTest::TearDown();
  }
  ibv_qp* Make(ibv_qp_type type) {
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = type;
    init.cap = {4, 1, 2, 1, 32};
    init.pd = pd_;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags =
        IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
    ibv_qp* qp = ibv_create_qp_ex(context_, &init);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    const int error = qp != nullptr ? ibv_modify_qp(qp, &attr, IBV_QP_STATE) : 0;
    EXPECT_EQ(0, error);
    return qp;
  }
  int Post(ibv_send_wr& wr) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp_, &wr, &bad);
  }
  rocegw_send_wqe Posted(uint32_t slot) { return *daemon_.Qp(qp_->qp_num).SendSlot(slot); }
  ibv_mw_bind_info Info(uint64_t offset, uint64_t length) {
    return {mr_, reinterpret_cast<uint64_t>(buffer_) + offset, length, IBV_ACCESS_REMOTE_WRITE};
  }

  uint8_t buffer_[256] = {};
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

TEST_F(WindowTest, Alloc_HasTheDaemonsHandleAndKey) {
  ibv_mw* mw = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
  ASSERT_NE(nullptr, mw);
  EXPECT_EQ(0x5500FFu, mw->rkey);
  EXPECT_EQ(IBV_MW_TYPE_2, mw->type);
  EXPECT_EQ(pd_, mw->pd);
  const auto asked = daemon_.Last(ROCEGW_MSG_ALLOC_MW).As<rocegw_alloc_mw>();
  EXPECT_EQ(pd_->handle, asked.pd);
  EXPECT_EQ(2u, asked.type);
  EXPECT_EQ(0, ibv_dealloc_mw(mw));
  EXPECT_EQ(31u, daemon_.Last(ROCEGW_MSG_DEALLOC_MW).As<rocegw_object_request>().handle);
}

TEST_F(WindowTest, Alloc_Refused_SaysWhy) {
  daemon_.Fail(ROCEGW_MSG_ALLOC_MW, ENOMEM);
  EXPECT_EQ(nullptr, ibv_alloc_mw(pd_, IBV_MW_TYPE_1));
  EXPECT_EQ(ENOMEM, errno);
  daemon_.Fail(ROCEGW_MSG_ALLOC_MW, ENOSYS);
  EXPECT_EQ(nullptr, ibv_alloc_mw(pd_, IBV_MW_TYPE_1));
  EXPECT_EQ(EOPNOTSUPP, errno) << "a daemon that does not know them";
}

TEST_F(WindowTest, Bind_Type1_GetsTheNextKeyAtOnce) {
  ibv_mw* mw = ibv_alloc_mw(pd_, IBV_MW_TYPE_1);
  ASSERT_NE(nullptr, mw);
  ibv_mw_bind bind{77, IBV_SEND_SIGNALED, Info(16, 32)};
  EXPECT_EQ(0, ibv_bind_mw(qp_, mw, &bind));
  EXPECT_EQ(0x550000u, mw->rkey) << "its low eight bits count";
  const rocegw_send_wqe wqe = Posted(0);
  EXPECT_EQ(77u, wqe.wr_id);
  EXPECT_EQ(ROCEGW_WR_BIND_MW, wqe.opcode);
  EXPECT_EQ(ROCEGW_WQE_SIGNALED, wqe.flags);
  EXPECT_EQ(0, wqe.num_sge);
  EXPECT_EQ(0x550000u, wqe.imm_or_rkey);
  EXPECT_EQ(0x5500FFu, wqe.u.bind.window);
  EXPECT_EQ(mr_->lkey, wqe.u.bind.lkey);
  EXPECT_EQ(reinterpret_cast<uint64_t>(buffer_) + 16, wqe.u.bind.address);
  EXPECT_EQ(32u, wqe.u.bind.length);
  EXPECT_EQ(uint32_t{IBV_ACCESS_REMOTE_WRITE}, wqe.u.bind.access);
  bind.bind_info = {nullptr, 0, 0, 0};
  EXPECT_EQ(0, ibv_bind_mw(qp_, mw, &bind)) << "to nothing";
  EXPECT_EQ(0u, Posted(1).u.bind.lkey);
  EXPECT_EQ(0, ibv_dealloc_mw(mw));
}

TEST_F(WindowTest, Requests_OfBothKindsOfCalls) {
  ibv_mw* mw = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
  ASSERT_NE(nullptr, mw);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw = {mw, 0x550001, Info(0, 8)};
  EXPECT_EQ(0, Post(wr));
  EXPECT_EQ(0x550001u, Posted(0).imm_or_rkey);
  EXPECT_EQ(0x5500FFu, mw->rkey) << "the program's to change";
  wr.bind_mw.bind_info.mr = nullptr;
  EXPECT_EQ(EINVAL, Post(wr));
  wr.bind_mw.mw = nullptr;
  EXPECT_EQ(EINVAL, Post(wr));
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp_);
  ASSERT_NE(nullptr, ex);
  const ibv_mw_bind_info info = Info(0, 8);
  ibv_wr_start(ex);
  ibv_wr_bind_mw(ex, mw, 0x550002, &info);
  ibv_wr_local_inv(ex, 0x550003);
  ibv_wr_send_inv(ex, 0x550004);
  EXPECT_EQ(0, ibv_wr_complete(ex));
  EXPECT_EQ(0x550002u, Posted(1).imm_or_rkey);
  EXPECT_EQ(8u, Posted(1).u.bind.length);
  EXPECT_EQ(ROCEGW_WR_LOCAL_INV, Posted(2).opcode);
  EXPECT_EQ(0x550003u, Posted(2).imm_or_rkey);
  EXPECT_EQ(ROCEGW_WR_SEND_WITH_INV, Posted(3).opcode);
  EXPECT_EQ(0x550004u, Posted(3).imm_or_rkey);
  EXPECT_EQ(0, ibv_dealloc_mw(mw));
}

TEST_F(WindowTest, QueuePairsThatHaveThemNot_Refuse) {
  EXPECT_EQ(nullptr, Make(IBV_QPT_UD));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_EQ(nullptr, Make(IBV_QPT_UC)) << "no SEND with invalidation";
}

TEST_F(WindowTest, Device_SaysWhatItHas) {
  ibv_device_attr attr;
  ASSERT_EQ(0, ibv_query_device(context_, &attr));
  EXPECT_EQ(128, attr.max_mw);
  const unsigned both = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  EXPECT_EQ(both, attr.device_cap_flags & both);
}

}  // namespace
}  // namespace rocegw::testing::client_windows
