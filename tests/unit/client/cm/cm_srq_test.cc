// SPDX-License-Identifier: Apache-2.0
// Shared receive queues of ids, and the completion queues that librdmacm creates for them.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/client/cm/cm_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(CmTest, SrqRefused_QueuesOfTheQueuePairStay) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = ResolvedWithQp(channel);
  ibv_cq* const receives = id->recv_cq;
  ibv_cq* const sends = id->send_cq;
  ASSERT_NE(nullptr, receives);
  ibv_srq_init_attr_ex attr{};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
  attr.srq_type = IBV_SRQT_TM;
  EXPECT_EQ(-1, rdma_create_srq_ex(id, &attr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_EQ(nullptr, id->srq);
  EXPECT_EQ(receives, id->recv_cq);
  EXPECT_EQ(sends, id->send_cq);
  End(channel, {id});
}

TEST_F(CmTest, SrqOfTheId_IsItsQueuePairs) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  ibv_srq_init_attr attr{};
  attr.attr = {8, 1, 0};
  ASSERT_EQ(0, rdma_create_srq(id, nullptr, &attr));
  ibv_qp_init_attr qp = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &qp));
  EXPECT_EQ(id->srq, qp.srq) << "rdma_post_recv posts there";
  EXPECT_EQ(id->srq, id->qp->srq);
  EXPECT_EQ(id->srq->handle, daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>().srq);
  rdma_destroy_qp(id);
  rdma_destroy_srq(id);
  End(channel, {id});
}

TEST_F(CmTest, CompletionQueueBesideTheIdsOwn_Refused) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  ibv_cq* const own = ibv_create_cq(id->verbs, 4, nullptr, nullptr, 0);
  ibv_cq* const other = ibv_create_cq(id->verbs, 4, nullptr, nullptr, 0);
  id->send_cq = own;
  ibv_qp_init_attr attr = QpAttr();
  attr.send_cq = other;
  EXPECT_EQ(-1, rdma_create_qp(id, nullptr, &attr));
  EXPECT_EQ(EINVAL, errno);
  attr.send_cq = nullptr;
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  EXPECT_EQ(own, id->qp->send_cq);
  EXPECT_EQ(id->recv_cq, id->qp->recv_cq);
  rdma_destroy_qp(id);  // also destroys the id's completion queues
  ibv_destroy_cq(other);
  End(channel, {id});
}

TEST_F(CmTest, SrqOfXrc_ItsCompletionQueueGoesWithIt_NotWithTheQueuePair) {
  sockaddr_in from = Address("10.0.0.1", 7174);
  rdma_addrinfo info{};
  info.ai_flags = RAI_PASSIVE;
  info.ai_port_space = RDMA_PS_TCP;
  info.ai_qp_type = IBV_QPT_XRC_RECV;
  info.ai_src_addr = Generic(from);
  info.ai_src_len = sizeof from;
  ibv_qp_init_attr none{};
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(0, rdma_create_ep(&listener, &info, nullptr, &none));
  ASSERT_EQ(0, rdma_listen(listener, 0));
  EmitRequest(500);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_get_request(listener, &id));
  ASSERT_NE(nullptr, id->qp);
  EXPECT_EQ(nullptr, id->recv_cq);

  ibv_srq_init_attr attr{};
  attr.attr = {8, 1, 0};
  ASSERT_EQ(0, rdma_create_srq(id, nullptr, &attr));
  uint32_t number = 0;
  EXPECT_EQ(0, ibv_get_srq_num(id->srq, &number)) << "the id says that it is one of XRC";
  ASSERT_NE(nullptr, id->recv_cq);
  const uint32_t completions = id->recv_cq->handle;
  rdma_destroy_qp(id);
  EXPECT_NE(nullptr, id->recv_cq) << "receives complete there";
  rdma_destroy_srq(id);
  EXPECT_EQ(nullptr, id->recv_cq);
  EXPECT_EQ(completions, daemon_->Last(ROCEGW_MSG_DESTROY_CQ).As<rocegw_object_request>().handle);
  rdma_destroy_ep(id);
  rdma_destroy_ep(listener);
}

}  // namespace
}  // namespace rocegw::testing
