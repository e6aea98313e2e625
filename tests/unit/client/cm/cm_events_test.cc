// SPDX-License-Identifier: Apache-2.0
// Events of rdma_cm ids: their receivers, calls that wait for them, endpoints, and the ends of
// waits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "gateway/client/cm/cm_channel.h"
#include "tests/unit/client/cm/cm_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(CmTest, DestroyId_WaitsForAcknowledgements) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  sockaddr_in to = Address("10.0.0.2", 1);
  ASSERT_EQ(0, rdma_resolve_addr(id, nullptr, Generic(to), 2000));
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_NE(nullptr, event);
  std::atomic<bool> acknowledged = false;
  std::atomic<bool> too_early = false;
  std::thread destroyer([&] {
    EXPECT_EQ(0, rdma_destroy_id(id));
    too_early = !acknowledged;
  });
  while (daemon_->Requests(ROCEGW_MSG_CM_DESTROY_ID).empty()) std::this_thread::yield();
  acknowledged = true;
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  destroyer.join();
  EXPECT_FALSE(too_early);
  rdma_destroy_event_channel(channel);
}

// Needed by librspreload.so for select(): its own descriptors of accepted sockets are newer than
// their channels.
TEST_F(CmTest, ChannelDescriptor_IsHigherThanThoseOfTheProgramThatComeLater) {
  rdma_event_channel* channel = rdma_create_event_channel();
  ASSERT_NE(nullptr, channel);
  const int later = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_LT(later, channel->fd);
  close(later);
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, Events_OfDestroyedIds_AreSkippedAndTheirRequestsDropped) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* gone = nullptr;
  rdma_cm_id* alive = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &gone, nullptr, RDMA_PS_TCP));
  ASSERT_EQ(0, rdma_create_id(channel, &alive, nullptr, RDMA_PS_TCP));
  const uint32_t gone_handle = 500;
  const uint32_t alive_handle = 501;
  Emit(gone_handle, RDMA_CM_EVENT_ADDR_RESOLVED);
  const uint32_t request = EmitRequest(gone_handle);
  ASSERT_EQ(0, rdma_destroy_id(gone));
  // The daemon reuses the handle: the old event must not reach the new id.
  rocegw_cm_event stale = Event(alive_handle, RDMA_CM_EVENT_DISCONNECTED);
  stale.cookie = Known(gone_handle).cookie;
  daemon_->SendCmEvent(Known(alive_handle).channel, stale);
  Emit(alive_handle, RDMA_CM_EVENT_ADDR_RESOLVED);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(alive, event->id);
  EXPECT_EQ(request, daemon_->Last(ROCEGW_MSG_CM_DESTROY_ID).As<rocegw_object_request>().handle);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  EXPECT_EQ(0, rdma_destroy_id(alive));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, MigrateId_LaterEventsComeOnTheNewChannel) {
  rdma_event_channel* first = rdma_create_event_channel();
  rdma_event_channel* second = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(first, &id, nullptr, RDMA_PS_TCP));
  ASSERT_EQ(0, rdma_migrate_id(id, second));
  EXPECT_EQ(second, id->channel);
  EXPECT_TRUE(daemon_->Last(ROCEGW_MSG_CM_MIGRATE).had_descriptor) << "for what is unread";
  rdma_destroy_event_channel(first);
  Emit(500, RDMA_CM_EVENT_ADDR_RESOLVED);
  ExpectAndAck(second, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(second);
}

TEST_F(CmTest, MigrateId_ToAChannelOfSomebodyElse_IsRefused) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  rdma_event_channel other = {STDIN_FILENO};
  EXPECT_EQ(-1, rdma_migrate_id(id, &other));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(channel, id->channel);
  End(channel, {id});
}

TEST_F(CmTest, Synchronous_CallsWaitAndKeepTheirEvent) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP));
  ASSERT_NE(nullptr, id->channel);
  sockaddr_in to = Address("10.0.0.2", 7174);
  ASSERT_EQ(0, rdma_resolve_addr(id, nullptr, Generic(to), 2000));
  ASSERT_NE(nullptr, id->event);
  EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED, id->event->event);
  ASSERT_EQ(0, rdma_resolve_route(id, 2000));
  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  EXPECT_EQ(RDMA_CM_EVENT_ESTABLISHED, id->event->event);
  ASSERT_EQ(0, rdma_disconnect(id));
  EXPECT_EQ(RDMA_CM_EVENT_DISCONNECTED, id->event->event);
  rdma_destroy_ep(id);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_CM_DESTROY_CHANNEL).size());
}

TEST_F(CmTest, Synchronous_Failures_BecomeErrno) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP));
  daemon_->OnRequest(ROCEGW_MSG_CM_RESOLVE_ADDR, [this](const RecordedRequest& request) {
    Emit(request.As<rocegw_object_request>().handle, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
    return Bytes(rocegw_object_reply{});
  });
  sockaddr_in to = Address("10.0.0.2", 7174);
  EXPECT_EQ(-1, rdma_resolve_addr(id, nullptr, Generic(to), 2000));
  EXPECT_EQ(EHOSTUNREACH, errno);
  daemon_->OnRequest(ROCEGW_MSG_CM_CONNECT, [this](const RecordedRequest& request) {
    Emit(request.As<rocegw_object_request>().handle, RDMA_CM_EVENT_REJECTED, 8);
    return Bytes(rocegw_object_reply{});
  });
  EXPECT_EQ(-1, rdma_connect(id, nullptr));
  EXPECT_EQ(ECONNREFUSED, errno);
  rdma_destroy_ep(id);
}

TEST_F(CmTest, Endpoint_Active_IsConnectedInOneGo) {
  sockaddr_in to = Address("10.0.0.2", 7174);
  rdma_addrinfo info{};
  info.ai_port_space = RDMA_PS_TCP;
  info.ai_qp_type = IBV_QPT_RC;
  info.ai_dst_addr = Generic(to);
  info.ai_dst_len = sizeof to;
  ibv_qp_init_attr attr = QpAttr();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_ep(&id, &info, nullptr, &attr));
  ASSERT_NE(nullptr, id->qp);
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  char buffer[64] = "posted";
  ibv_mr* mr = rdma_reg_msgs(id, buffer, sizeof buffer);
  ASSERT_NE(nullptr, mr);
  ASSERT_EQ(0, rdma_post_send(id, nullptr, buffer, sizeof buffer, mr, IBV_SEND_SIGNALED));
  EXPECT_EQ(1u, daemon_->LastQp().control->sq_producer);
  EXPECT_EQ(0, rdma_dereg_mr(mr));
  rdma_destroy_ep(id);
}

TEST_F(CmTest, Endpoint_Passive_HandsOutRequestsWithQps) {
  sockaddr_in from = Address("10.0.0.1", 7174);
  rdma_addrinfo info{};
  info.ai_flags = RAI_PASSIVE;
  info.ai_port_space = RDMA_PS_TCP;
  info.ai_qp_type = IBV_QPT_RC;
  info.ai_src_addr = Generic(from);
  info.ai_src_len = sizeof from;
  ibv_qp_init_attr attr = QpAttr();
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(0, rdma_create_ep(&listener, &info, nullptr, &attr));
  EXPECT_EQ(nullptr, listener->qp);
  ASSERT_EQ(0, rdma_listen(listener, 0));
  EmitRequest(500);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_get_request(listener, &id));
  ASSERT_NE(nullptr, id->qp);
  EXPECT_NE(listener->channel, id->channel);
  EXPECT_EQ(RDMA_CM_EVENT_CONNECT_REQUEST, id->event->event);
  ASSERT_EQ(0, rdma_accept(id, nullptr));
  EXPECT_EQ(RDMA_CM_EVENT_ESTABLISHED, id->event->event);
  rdma_destroy_ep(id);
  rdma_destroy_ep(listener);
}

TEST_F(CmTest, Endpoint_QpRefused_RequestFailsAndListenerLives) {
  rdma_cm_id* listener = nullptr;
  sockaddr_in from = Address("10.0.0.1", 7174);
  rdma_addrinfo info{};
  info.ai_flags = RAI_PASSIVE;
  info.ai_port_space = RDMA_PS_TCP;
  info.ai_src_addr = Generic(from);
  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_ep(&listener, &info, nullptr, &attr));
  EmitRequest(500);
  daemon_->Fail(ROCEGW_MSG_CREATE_QP, ENOMEM);
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(-1, rdma_get_request(listener, &id));
  EXPECT_EQ(ENOMEM, errno);
  daemon_->Fail(ROCEGW_MSG_CREATE_QP, 0);
  EmitRequest(500);
  ASSERT_EQ(0, rdma_get_request(listener, &id));
  rdma_destroy_ep(id);
  rdma_destroy_ep(listener);
}

TEST_F(CmTest, SetOption_PassesValuesAndAcceptsPaths) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  uint8_t tos = 104;
  EXPECT_EQ(0, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_SET_OPTION).As<rocegw_cm_set_option>();
  EXPECT_EQ(static_cast<uint32_t>(RDMA_OPTION_ID_TOS), asked.option);
  EXPECT_EQ(1u, asked.length);
  EXPECT_EQ(104, asked.value[0]);
  char path[sizeof(ibv_path_data)] = {};
  EXPECT_EQ(0, rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof path));
  EXPECT_EQ(-1, rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof path - 1));
  EXPECT_EQ(-1, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, path, sizeof path));
  EXPECT_EQ(-1, rdma_set_option(id, 9, 0, path, 1));
  ibv_ece ece = {1, 2, 0};
  EXPECT_EQ(0, rdma_set_local_ece(id, &ece));
  for (const ibv_ece& wrong : {ibv_ece{0, 2, 0}, ibv_ece{1, 2, 1}}) {
    ece = wrong;
    EXPECT_EQ(-1, rdma_set_local_ece(id, &ece));
    EXPECT_EQ(EINVAL, errno);
  }
  End(channel, {id});
}

TEST_F(CmTest, DaemonDies_WaitersWakeAndIdsCanBeDestroyed) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  std::thread waiter([&] {
    rdma_cm_event* event = nullptr;
    ASSERT_EQ(0, rdma_get_cm_event(channel, &event));
    EXPECT_EQ(RDMA_CM_EVENT_DEVICE_REMOVAL, event->event);
    EXPECT_EQ(id, event->id);
    EXPECT_EQ(0, rdma_ack_cm_event(event));
    ASSERT_EQ(0, fcntl(channel->fd, F_SETFL, O_NONBLOCK));
    EXPECT_EQ(-1, rdma_get_cm_event(channel, &event)) << "said once";
    EXPECT_EQ(EAGAIN, errno);
  });
  daemon_->Die();
  waiter.join();
  EXPECT_EQ(-1, rdma_connect(id, nullptr));
  EXPECT_EQ(EIO, errno);
  End(channel, {id});
}

// Its status is 0, like that of success.
TEST_F(CmTest, Synchronous_DeviceGone_IsAFailure) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP));
  sockaddr_in to = Address("10.0.0.2", 7174);
  ASSERT_EQ(0, rdma_resolve_addr(id, nullptr, Generic(to), 2000));
  daemon_->OnRequest(ROCEGW_MSG_CM_CONNECT, [this](const RecordedRequest& request) {
    Emit(request.As<rocegw_object_request>().handle, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    return Bytes(rocegw_object_reply{});
  });
  EXPECT_EQ(-1, rdma_connect(id, nullptr));
  EXPECT_EQ(ENODEV, errno);
  rdma_destroy_ep(id);
}

TEST_F(CmTest, ManyThreads_MakeAndDestroyIdsOnOneChannel) {
  rdma_event_channel* channel = rdma_create_event_channel();
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads + 1);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        rdma_cm_id* id = nullptr;
        sockaddr_in to = Address("10.0.0.2", 1);
        if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0 ||
            rdma_resolve_addr(id, nullptr, Generic(to), 1) != 0 || rdma_destroy_id(id) != 0) {
          ++failures;
        }
      }
    });
  }
  // Reads events while the ids come and go, until the last event.
  std::thread reader([&] {
    rdma_cm_event* event = nullptr;
    while (rdma_get_cm_event(channel, &event) == 0) {
      const bool last = event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT;
      rdma_ack_cm_event(event);
      if (last) return;
    }
  });
  for (std::thread& thread : threads) thread.join();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  Emit(NewestId(), RDMA_CM_EVENT_TIMEWAIT_EXIT);
  reader.join();
  EXPECT_EQ(0, failures);
  End(channel, {id});
}

TEST_F(CmTest, Fork_ChildStartsAnew) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  const pid_t child = fork();
  if (child == 0) {
    if (rdma_connect(id, nullptr) != -1 || errno != EIO) _exit(1);
    if (rdma_destroy_id(id) != 0) _exit(2);
    rdma_destroy_event_channel(channel);
    rdma_event_channel* own = rdma_create_event_channel();
    rdma_cm_id* own_id = nullptr;
    if (own == nullptr || rdma_create_id(own, &own_id, nullptr, RDMA_PS_TCP) != 0) _exit(3);
    _exit(rdma_destroy_id(own_id) == 0 ? 0 : 4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
  End(channel, {id});
}

TEST_F(CmTest, Fork_WhileAnotherThreadUsesTheTableOfChannels_ChildIsNotStuck) {
  rdma_event_channel* channel = rdma_create_event_channel();
  ASSERT_NE(nullptr, channel);
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) client::IsOpen(channel, channel->fd);
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(client::IsOpen(channel, channel->fd) ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(0, status);
  }
  stop = true;
  other.join();
  End(channel, {});
}

}  // namespace
}  // namespace rocegw::testing
