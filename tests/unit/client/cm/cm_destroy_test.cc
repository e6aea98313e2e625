// SPDX-License-Identifier: Apache-2.0
// rdma_destroy_id waits for the daemon only if another program may want what the id holds.
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/client/cm/cm_fixture.h"

namespace rocegw::testing {
namespace {

class CmDestroyTest : public CmTest {
 protected:
  // Returns if the library asked for an answer when it destroyed the only id.
  bool AnswerWasAwaited() {
    while (daemon_->Requests(ROCEGW_MSG_CM_DESTROY_ID).empty()) std::this_thread::yield();
    EXPECT_EQ(daemon_->Requests(ROCEGW_MSG_CM_DESTROY_ID).size(), 1u);
    return daemon_->Last(ROCEGW_MSG_CM_DESTROY_ID).As<rocegw_object_request>().header.request_id !=
           0;
  }
  rdma_cm_id* Created(rdma_event_channel* channel) {
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
    return id;
  }
};

TEST_F(CmDestroyTest, ActiveSide_IsNotAwaited) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = ResolvedWithQp(channel);
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  ExpectAndAck(channel, RDMA_CM_EVENT_ESTABLISHED);
  rdma_destroy_qp(id);
  EXPECT_EQ(0, rdma_destroy_id(id));
  EXPECT_FALSE(AnswerWasAwaited());
  rdma_destroy_event_channel(channel);
}

TEST_F(CmDestroyTest, BoundId_IsAwaited) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Created(channel);
  sockaddr_in address = Address("10.0.0.1", 7000);
  ASSERT_EQ(0, rdma_bind_addr(id, Generic(address)));
  EXPECT_EQ(0, rdma_destroy_id(id));
  EXPECT_TRUE(AnswerWasAwaited());
  rdma_destroy_event_channel(channel);
}

TEST_F(CmDestroyTest, Listener_IsAwaited) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Created(channel);
  ASSERT_EQ(0, rdma_listen(id, 3));
  EXPECT_EQ(0, rdma_destroy_id(id));
  EXPECT_TRUE(AnswerWasAwaited());
  rdma_destroy_event_channel(channel);
}

TEST_F(CmDestroyTest, PortOfTheSource_IsAwaited) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Created(channel);
  sockaddr_in source = Address("10.0.0.1", 7000);
  sockaddr_in destination = Address("10.0.0.2", 7001);
  ASSERT_EQ(0, rdma_resolve_addr(id, Generic(source), Generic(destination), 1000));
  ExpectAndAck(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(0, rdma_destroy_id(id));
  EXPECT_TRUE(AnswerWasAwaited());
  rdma_destroy_event_channel(channel);
}

class CmDestroyAtAnOlderDaemonTest : public CmDestroyTest {
 protected:
  CmDestroyAtAnOlderDaemonTest() { options_.minor = 6; }
};

TEST_F(CmDestroyAtAnOlderDaemonTest, IsAwaited) {
  rdma_event_channel* channel = rdma_create_event_channel();
  EXPECT_EQ(0, rdma_destroy_id(Created(channel)));
  EXPECT_TRUE(AnswerWasAwaited());
  rdma_destroy_event_channel(channel);
}

}  // namespace
}  // namespace rocegw::testing
