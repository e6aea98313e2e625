// SPDX-License-Identifier: Apache-2.0
// Events of queues and devices, and effects of the daemon's death on programs.
#include <gtest/gtest.h>

#include "tests/unit/client/verbs_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(QpTest, CompletionEvent_ReachesItsQueue) {
  ASSERT_EQ(0, ibv_req_notify_cq(cq_, 0));
  EXPECT_EQ(ROCEGW_CQ_ARM_ANY, daemon_->Cq(cq_->handle).control->arm);
  daemon_->SendCompletionEvent(cq_->handle);
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_, &which, &its_context));
  EXPECT_EQ(cq_, which);
  EXPECT_EQ(this, its_context);
  ibv_ack_cq_events(cq_, 1);
}

TEST_F(QpTest, CompletionEvent_NonBlocking_IsEagain) {
  fcntl(channel_->fd, F_SETFL, O_NONBLOCK);
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  EXPECT_EQ(-1, ibv_get_cq_event(channel_, &which, &its_context));
  EXPECT_EQ(EAGAIN, errno);
}

TEST_F(QpTest, CompletionEvent_OfADestroyedQueue_IsSkipped) {
  ibv_cq* other = ibv_create_cq(context_, 4, nullptr, channel_, 0);
  ASSERT_NE(nullptr, other);
  EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel_));
  daemon_->SendCompletionEvent(other->handle);
  daemon_->SendCompletionEvent(cq_->handle);
  ASSERT_EQ(0, ibv_destroy_cq(other)) << "an event that was never read needs no acknowledgement";
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_, &which, &its_context));
  EXPECT_EQ(cq_, which);
  ibv_ack_cq_events(cq_, 1);
}

TEST_F(QpTest, DestroyCq_WaitsForAcknowledgements) {
  ibv_cq* other = ibv_create_cq(context_, 4, nullptr, channel_, 0);
  ASSERT_NE(nullptr, other);
  daemon_->SendCompletionEvent(other->handle);
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_, &which, &its_context));
  const size_t destroyed_before = daemon_->Requests(ROCEGW_MSG_DESTROY_CQ).size();
  std::atomic<bool> acknowledged = false;
  std::atomic<bool> too_early = false;
  std::thread destroyer([&] {
    EXPECT_EQ(0, ibv_destroy_cq(other));
    too_early = !acknowledged;
  });
  while (daemon_->Requests(ROCEGW_MSG_DESTROY_CQ).size() == destroyed_before) {
    std::this_thread::yield();
  }
  acknowledged = true;
  ibv_ack_cq_events(other, 1);
  destroyer.join();
  EXPECT_FALSE(too_early);
}

TEST_F(QpTest, AsyncEvents_NameTheirObjects) {
  rocegw_async_event event{};
  event.type = IBV_EVENT_QP_FATAL;
  event.kind = ROCEGW_OBJECT_QP;
  event.cookie = Fake().cookie;
  daemon_->SendAsyncEvent(event);
  event.type = IBV_EVENT_QP_FATAL;
  event.cookie = 0x1234567800000000;  // no object has this cookie
  daemon_->SendAsyncEvent(event);
  event.type = IBV_EVENT_SQ_DRAINED;
  event.cookie = Fake().cookie;
  daemon_->SendAsyncEvent(event);
  event.type = IBV_EVENT_CQ_ERR;
  event.kind = ROCEGW_OBJECT_CQ;
  event.cookie = daemon_->Cq(cq_->handle).cookie;
  daemon_->SendAsyncEvent(event);
  event.type = IBV_EVENT_PORT_ERR;
  event.kind = ROCEGW_OBJECT_PORT;
  daemon_->SendAsyncEvent(event);

  ibv_async_event got;
  ASSERT_EQ(0, ibv_get_async_event(context_, &got));
  EXPECT_EQ(IBV_EVENT_QP_FATAL, got.event_type);
  EXPECT_EQ(qp_, got.element.qp);
  ibv_ack_async_event(&got);
  ASSERT_EQ(0, ibv_get_async_event(context_, &got));
  EXPECT_EQ(IBV_EVENT_SQ_DRAINED, got.event_type);
  EXPECT_EQ(qp_, got.element.qp);
  ibv_ack_async_event(&got);
  ASSERT_EQ(0, ibv_get_async_event(context_, &got));
  EXPECT_EQ(IBV_EVENT_CQ_ERR, got.event_type);
  EXPECT_EQ(cq_, got.element.cq);
  ibv_ack_async_event(&got);
  ASSERT_EQ(0, ibv_get_async_event(context_, &got));
  EXPECT_EQ(IBV_EVENT_PORT_ERR, got.event_type);
  EXPECT_EQ(1, got.element.port_num);
  ibv_ack_async_event(&got);
}

// A program that only polls notices it too: its open requests complete as flushed.
TEST_F(QpTest, DaemonDies_PollersGetTheirRequestsFlushed) {
  ToState(IBV_QPS_INIT);
  ToState(IBV_QPS_RTR);
  ToState(IBV_QPS_RTS);
  ibv_recv_wr receive{};
  receive.wr_id = 7;
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(0, ibv_post_recv(qp_, &receive, &bad_receive));
  ibv_send_wr send{};
  send.wr_id = 8;
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &send, &bad_send));
  daemon_->Die();
  std::vector<uint64_t> flushed;
  while (flushed.size() < 2) {
    ibv_wc wc[4];
    const int got = ibv_poll_cq(cq_, 4, wc);
    for (int i = 0; i < got; ++i) {
      EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc[i].status);
      flushed.push_back(wc[i].wr_id);
    }
  }
  EXPECT_EQ((std::vector<uint64_t>{8, 7}), flushed);
  ibv_wc wc;
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
}

// Programs that sleep until an event empty their queues once, and do not ask again.
TEST_F(QpTest, DaemonDies_WhoHearsOfItGetsWhatIsFlushedAtOnce) {
  ToState(IBV_QPS_INIT);
  for (const uint64_t id : {7u, 8u}) {
    ibv_recv_wr receive{};
    receive.wr_id = id;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(0, ibv_post_recv(qp_, &receive, &bad));
  }
  daemon_->Die();
  ibv_async_event event;
  ASSERT_EQ(0, ibv_get_async_event(context_, &event));
  EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, event.event_type);
  ibv_wc wc[4];
  ASSERT_EQ(2, ibv_poll_cq(cq_, 4, wc));
  EXPECT_EQ(7u, wc[0].wr_id);
  EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc[1].status);
  EXPECT_EQ(0, ibv_poll_cq(cq_, 4, wc));
}

TEST_F(QpTest, DaemonDies_WhoWaitsForCompletionsGetsWhatIsFlushedAtOnce) {
  ToState(IBV_QPS_INIT);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_recv(qp_, &receive, &bad));
  daemon_->Die();
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  ASSERT_EQ(-1, ibv_get_cq_event(channel_, &which, &its_context));
  EXPECT_EQ(EIO, errno);
  ibv_wc wc;
  EXPECT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
}

TEST_F(QpTest, DaemonDies_ProgramsLearnItAndCanCleanUp) {
  daemon_->Die();
  pollfd look = {context_->async_fd, POLLIN, 0};
  ASSERT_EQ(1, poll(&look, 1, 20000));
  ibv_async_event event;
  ASSERT_EQ(0, ibv_get_async_event(context_, &event));
  EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, event.event_type);
  EXPECT_EQ(-1, ibv_get_async_event(context_, &event));
  EXPECT_EQ(EIO, errno);
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  EXPECT_EQ(-1, ibv_get_cq_event(channel_, &which, &its_context));
  EXPECT_EQ(EIO, errno);
  EXPECT_EQ(nullptr, ibv_alloc_pd(context_));
  EXPECT_EQ(EIO, errno);
  ibv_qp_attr attr{};
  EXPECT_EQ(EIO, ibv_modify_qp(qp_, &attr, IBV_QP_STATE));
}

}  // namespace
}  // namespace rocegw::testing
