// SPDX-License-Identifier: Apache-2.0
// XRC as programs see it, against a scripted daemon.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {
namespace {

class XrcTest : public AttachedTest {
 protected:
  void SetUp() override {
    AttachedTest::SetUp();
    if (HasFatalFailure()) return;
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    ibv_xrcd_init_attr own{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
    xrcd_ = ibv_open_xrcd(context_, &own);
    ASSERT_NE(nullptr, xrcd_);
  }
  void TearDown() override {
    EXPECT_EQ(0, ibv_close_xrcd(xrcd_));
    EXPECT_EQ(0, ibv_destroy_cq(cq_));
    AttachedTest::TearDown();
  }
  int OpenError(uint32_t mask, int fd, int flags) {
    ibv_xrcd_init_attr attr{mask, fd, flags};
    errno = 0;
    ibv_xrcd* const opened = ibv_open_xrcd(context_, &attr);
    const int error = errno;
    if (opened != nullptr) {
      EXPECT_EQ(0, ibv_close_xrcd(opened));
    }
    return opened != nullptr ? 0 : error;
  }
  ibv_srq_init_attr_ex SrqAttr() const {
    ibv_srq_init_attr_ex attr{};
    attr.attr = {4, 1, 0};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.pd = pd_;
    attr.xrcd = xrcd_;
    attr.cq = cq_;
    return attr;
  }
  ibv_qp* MakeReceiver() {
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = IBV_QPT_XRC_RECV;
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = xrcd_;
    return ibv_create_qp_ex(context_, &attr);
  }

  ibv_cq* cq_ = nullptr;
  ibv_xrcd* xrcd_ = nullptr;
};

TEST_F(XrcTest, Open_WantsWhatTheManualPageWants) {
  constexpr uint32_t kBoth = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  EXPECT_EQ(EINVAL, OpenError(IBV_XRCD_INIT_ATTR_FD, -1, O_CREAT));
  EXPECT_EQ(EINVAL, OpenError(IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT));
  EXPECT_EQ(EOPNOTSUPP, OpenError(kBoth | IBV_XRCD_INIT_ATTR_RESERVED, -1, O_CREAT));
  EXPECT_EQ(EINVAL, OpenError(kBoth, -1, O_CREAT | O_APPEND));
  EXPECT_EQ(EBADF, OpenError(kBoth, 9999, O_CREAT));
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(0, OpenError(kBoth, fd, O_CREAT | O_EXCL));
  close(fd);
}

TEST_F(XrcTest, OlderDaemon_IsNotSupported) {
  daemon_.Fail(ROCEGW_MSG_OPEN_XRCD, ENOSYS);
  EXPECT_EQ(EOPNOTSUPP, OpenError(IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT));
}

TEST_F(XrcTest, Queue_NeedsDomainAndCompletionQueue_AndHasANumber) {
  for (const uint32_t missing :
       {IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ}) {
    ibv_srq_init_attr_ex attr = SrqAttr();
    attr.comp_mask &= ~missing;
    EXPECT_EQ(nullptr, ibv_create_srq_ex(context_, &attr)) << missing;
    EXPECT_EQ(EINVAL, errno);
  }
  ibv_srq_init_attr_ex attr = SrqAttr();
  ibv_srq* const srq = ibv_create_srq_ex(context_, &attr);
  ASSERT_NE(nullptr, srq);
  const FakeSrq fake = daemon_.Srq(srq->handle);
  EXPECT_NE(0u, fake.request.xrcd);
  EXPECT_EQ(cq_->handle, fake.request.cq);
  uint32_t number = 0;
  EXPECT_EQ(0, ibv_get_srq_num(srq, &number));
  EXPECT_EQ(kFakeSrqNumber, number);
  EXPECT_EQ(0, ibv_destroy_srq(srq));
  ibv_srq_init_attr basic{nullptr, {4, 1, 0}};
  ibv_srq* const plain = ibv_create_srq(pd_, &basic);
  EXPECT_EQ(EINVAL, ibv_get_srq_num(plain, &number));
  EXPECT_EQ(0, ibv_destroy_srq(plain));
}

TEST_F(XrcTest, Completion_IsOfTheQueue_WhicheverQueuePairHasGotIt) {
  ibv_srq_init_attr_ex attr = SrqAttr();
  ibv_srq* const srq = ibv_create_srq_ex(context_, &attr);
  ASSERT_NE(nullptr, srq);
  ibv_recv_wr wr{77, nullptr, nullptr, 0};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
  FakeQp of_another_process;
  of_another_process.handle = srq->handle;
  of_another_process.reply.qpn = 0xABCDE;
  rocegw_cqe cqe{};
  cqe.wr_id = 77;
  cqe.opcode = IBV_WC_RECV;
  cqe.byte_length = 8;
  cqe.flags = ROCEGW_CQE_RECEIVE | ROCEGW_CQE_XRC;
  daemon_.Complete(cq_->handle, 0, of_another_process, cqe);
  ibv_wc wc{};
  ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(77u, wc.wr_id);
  EXPECT_EQ(0xABCDEu, wc.qp_num);
  // Its slot is free again: as many receives may be posted as before.
  for (int i = 0; i < 4; ++i) EXPECT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
  EXPECT_EQ(ENOMEM, ibv_post_srq_recv(srq, &wr, &bad));
  EXPECT_EQ(0, ibv_destroy_srq(srq));
  daemon_.Complete(cq_->handle, 0, of_another_process, cqe);
  EXPECT_EQ(0, ibv_poll_cq(cq_, 1, &wc)) << "nobody's any more";
}

TEST_F(XrcTest, Receiver_HasNoQueues) {
  ibv_qp* const qp = MakeReceiver();
  ASSERT_NE(nullptr, qp);
  EXPECT_EQ(nullptr, qp->send_cq);
  EXPECT_EQ(nullptr, qp->recv_cq);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_recv(qp, &receive, &bad_receive));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  EXPECT_EQ(0, ibv_modify_qp(qp, &attr,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  ibv_send_wr send{};
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_send(qp, &send, &bad_send));
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));

  ibv_qp_open_attr open{};
  open.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  open.qp_num = qp->qp_num;
  open.xrcd = xrcd_;
  open.qp_type = IBV_QPT_RC;
  EXPECT_EQ(nullptr, ibv_open_qp(context_, &open));
  EXPECT_EQ(EINVAL, errno);
  open.qp_type = IBV_QPT_XRC_RECV;
  open.comp_mask &= ~uint32_t{IBV_QP_OPEN_ATTR_NUM};
  EXPECT_EQ(nullptr, ibv_open_qp(context_, &open));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(XrcTest, Receiver_NeedsADomain) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_XRC_RECV;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd_;
  EXPECT_EQ(nullptr, ibv_create_qp_ex(context_, &attr));
  EXPECT_EQ(EINVAL, errno);
  ibv_qp_init_attr plain{};
  plain.qp_type = IBV_QPT_XRC_RECV;
  plain.send_cq = plain.recv_cq = cq_;
  EXPECT_EQ(nullptr, ibv_create_qp(pd_, &plain));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(XrcTest, Sender_NamesTheQueueInEveryRequest) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_XRC_SEND;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = pd_;
  attr.send_cq = cq_;
  attr.cap = {4, 0, 1, 0, 0};
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ;
  ibv_qp* const qp = ibv_create_qp_ex(context_, &attr);
  ASSERT_NE(nullptr, qp);
  EXPECT_EQ(nullptr, qp->recv_cq);
  ibv_qp_attr states{};
  states.ah_attr.is_global = 1;
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    states.qp_state = state;
    // Attributes of a receiving QP only are ignored, as the kernel does.
    states.min_rnr_timer = 12;
    states.retry_cnt = 7;
    ASSERT_EQ(0,
              ibv_modify_qp(qp, &states, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_RETRY_CNT));
    EXPECT_EQ(0u, daemon_.Qp(qp->qp_num).attr.min_rnr_timer);
    EXPECT_EQ(7u, daemon_.Qp(qp->qp_num).attr.retry_cnt);
  }
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.qp_type.xrc.remote_srqn = 0x123456;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp, &wr, &bad));
  ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp);
  ibv_wr_start(extended);
  ibv_wr_rdma_read(extended, 1, 2);
  ibv_wr_set_xrc_srqn(extended, 0x654321);
  ASSERT_EQ(0, ibv_wr_complete(extended));
  EXPECT_EQ(0x123456u, daemon_.Qp(qp->qp_num).SendSlot(0)->u.rdma.peer);
  EXPECT_EQ(0x654321u, daemon_.Qp(qp->qp_num).SendSlot(1)->u.rdma.peer);
  EXPECT_EQ(2u, daemon_.Qp(qp->qp_num).SendSlot(1)->u.rdma.remote_address);
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

}  // namespace
}  // namespace rocegw::testing
