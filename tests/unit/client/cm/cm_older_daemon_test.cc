// SPDX-License-Identifier: Apache-2.0
// Connections with daemons of minor 6 or less: each step of a queue pair is a separate request; of
// 8 or less: each step waits for its answer.
#include <gtest/gtest.h>

#include "tests/unit/client/cm/cm_fixture.h"

namespace rocegw::testing {
namespace {

class CmOlderDaemonTest : public CmTest {
 protected:
  CmOlderDaemonTest() { options_.minor = 6; }

  std::vector<uint32_t> StatesAskedFor() {
    std::vector<uint32_t> states;
    for (const auto& request : daemon_->Requests(ROCEGW_MSG_MODIFY_QP))
      states.push_back(request.As<rocegw_modify_qp>().attr.qp_state);
    return states;
  }
};

TEST_F(CmOlderDaemonTest, Active_QpIsMadeReadyStepByStep) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = ResolvedWithQp(channel);
  EXPECT_EQ(IBV_QPS_INIT, id->qp->state);
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  ExpectAndAck(channel, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(IBV_QPS_RTS, id->qp->state);
  EXPECT_EQ(StatesAskedFor(),
            (std::vector<uint32_t>{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}));
  EXPECT_EQ(0x4321u,
            daemon_->Requests(ROCEGW_MSG_MODIFY_QP)[2].As<rocegw_modify_qp>().attr.dest_qpn);
  EXPECT_EQ(ROCEGW_MSG_CM_ESTABLISH, daemon_->History().back()) << "the peer is told last";
  ASSERT_EQ(0, rdma_disconnect(id));
  EXPECT_EQ(static_cast<uint32_t>(IBV_QPS_ERR), StatesAskedFor().back());
  EXPECT_EQ(IBV_QPS_ERR, id->qp->state);
  ExpectAndAck(channel, RDMA_CM_EVENT_DISCONNECTED);
  End(channel, {id});
}

TEST_F(CmOlderDaemonTest, Active_QpCannotBeMadeReady_IsAConnectError) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = ResolvedWithQp(channel);
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  daemon_->Fail(ROCEGW_MSG_MODIFY_QP, EINVAL);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_CONNECT_ERROR);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(-EINVAL, event->status);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_CM_REJECT).size());
  EXPECT_TRUE(daemon_->Requests(ROCEGW_MSG_CM_ESTABLISH).empty());
  End(channel, {id});
}

TEST_F(CmOlderDaemonTest, Passive_QpIsReadyBeforeTheAccept) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* listener = Listening(channel, 3);
  EmitRequest(daemon_->Last(ROCEGW_MSG_CM_LISTEN).As<rocegw_cm_listen>().id);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(nullptr, event);
  EXPECT_NE(0u, daemon_->Last(ROCEGW_MSG_CM_QUERY_ID).As<rocegw_request>().request_id)
      << "it answers everything";
  rdma_cm_id* id = event->id;
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  rdma_conn_param param{};
  param.responder_resources = 9;  // more than the peer will use
  param.initiator_depth = 2;
  ASSERT_EQ(0, rdma_accept(id, &param));
  EXPECT_EQ(ROCEGW_MSG_CM_ACCEPT, daemon_->History().back());
  EXPECT_EQ(IBV_QPS_RTS, id->qp->state);
  const auto modifies = daemon_->Requests(ROCEGW_MSG_MODIFY_QP);
  ASSERT_EQ(4u, modifies.size());
  EXPECT_EQ(5, modifies[2].As<rocegw_modify_qp>().attr.max_dest_rd_atomic);
  EXPECT_EQ(2, modifies[3].As<rocegw_modify_qp>().attr.max_rd_atomic);
  ExpectAndAck(channel, RDMA_CM_EVENT_ESTABLISHED);
  End(channel, {id, listener});
}

class CmAskedStepsTest : public CmTest {
 protected:
  CmAskedStepsTest() { options_.minor = 8; }
};

TEST_F(CmAskedStepsTest, Active_QpCannotBeMadeReady_IsAConnectError) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  daemon_->Fail(ROCEGW_MSG_CM_ESTABLISH, EINVAL);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_CONNECT_ERROR);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(-EINVAL, event->status);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_CM_REJECT).size());
  EXPECT_EQ(IBV_QPS_ERR, id->qp->state);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  rdma_destroy_qp(id);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

}  // namespace
}  // namespace rocegw::testing
