// SPDX-License-Identifier: Apache-2.0
// rdma_cm calls against a scripted daemon: both roles, with and without a QP of the library's,
// waiting and not.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/client/fake_daemon.h"

namespace rocegw::testing {
namespace {

template <typename T>
std::vector<uint8_t> Bytes(const T& value) {
  const auto* from = reinterpret_cast<const uint8_t*>(&value);
  return {from, from + sizeof value};
}

sockaddr_in Address(const char* text, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}

sockaddr* Generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

rocegw_sockaddr Wire(const char* text, uint16_t port) {
  rocegw_sockaddr address{};
  address.family = AF_INET;
  address.port = port;
  inet_pton(AF_INET, text, address.address);
  return address;
}

class CmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    daemon_ = std::make_unique<FakeDaemon>();
    setenv("ROCEGW_SOCKET", daemon_->socket_path().c_str(), 1);
    daemon_->OnRequest(ROCEGW_MSG_CM_BIND, [](const RecordedRequest& request) {
      const auto asked = request.As<rocegw_cm_bind>();
      rocegw_cm_id_reply reply{};
      reply.source = asked.address;
      if (reply.source.port == 0) reply.source.port = 40000;
      const bool any = asked.address.address[0] == 0;
      reply.device = any ? -1 : 0;
      reply.header.length = sizeof reply;
      return Bytes(reply);
    });
    daemon_->OnRequest(ROCEGW_MSG_CM_QUERY_ID, [](const RecordedRequest&) {
      rocegw_cm_id_reply reply{};
      reply.device = -1;
      reply.source = Wire("0.0.0.0", 41000);
      return Bytes(reply);
    });
    daemon_->OnRequest(ROCEGW_MSG_CM_INIT_QP_ATTR, [](const RecordedRequest& request) {
      const auto asked = request.As<rocegw_cm_init_qp_attr>();
      rocegw_cm_qp_attr_reply reply{};
      reply.attr.port_num = 1;
      reply.attr.qp_state = asked.qp_state;
      switch (asked.qp_state) {
        case IBV_QPS_INIT:
          reply.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
          break;
        case IBV_QPS_RTR:
          reply.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
          reply.attr.dest_qpn = 0x4321;
          reply.attr.max_dest_rd_atomic = 16;
          reply.attr.av.dgid[15] = 2;
          break;
        default:
          reply.attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
          reply.attr.max_rd_atomic = 16;
          break;
      }
      return Bytes(reply);
    });
    // The daemon answers what it is asked at once, as if the network were infinitely fast.
    OnIdRequest(ROCEGW_MSG_CM_RESOLVE_ADDR, RDMA_CM_EVENT_ADDR_RESOLVED);
    OnIdRequest(ROCEGW_MSG_CM_RESOLVE_ROUTE, RDMA_CM_EVENT_ROUTE_RESOLVED);
    OnIdRequest(ROCEGW_MSG_CM_CONNECT, RDMA_CM_EVENT_CONNECT_RESPONSE);
    OnIdRequest(ROCEGW_MSG_CM_ACCEPT, RDMA_CM_EVENT_ESTABLISHED);
    OnIdRequest(ROCEGW_MSG_CM_DISCONNECT, RDMA_CM_EVENT_DISCONNECTED);
    daemon_->OnRequest(ROCEGW_MSG_CM_CREATE_ID, [this](const RecordedRequest& request) {
      const auto asked = request.As<rocegw_cm_create_id>();
      const std::lock_guard lock(mutex_);
      rocegw_object_reply reply{};
      reply.handle = next_id_++;
      ids_[reply.handle] = {asked.channel, asked.cookie};
      return Bytes(reply);
    });
    daemon_->OnRequest(ROCEGW_MSG_CM_MIGRATE, [this](const RecordedRequest& request) {
      const auto asked = request.As<rocegw_cm_migrate>();
      const std::lock_guard lock(mutex_);
      ids_[asked.id].channel = asked.channel;
      return Bytes(rocegw_object_reply{});
    });
  }
  void TearDown() override {
    if (daemon_ != nullptr) daemon_->Die();  // its thread uses the fixture
    daemon_.reset();
    unsetenv("ROCEGW_SOCKET");
  }

  struct KnownId {
    uint32_t channel = 0;
    uint64_t cookie = 0;
  };

  KnownId Known(uint32_t id) {
    const std::lock_guard lock(mutex_);
    return ids_[id];
  }
  uint32_t NewestId() {
    const std::lock_guard lock(mutex_);
    return next_id_ - 1;
  }

  // Requests whose body begins with the id's handle.
  void OnIdRequest(uint32_t type, rdma_cm_event_type event) {
    daemon_->OnRequest(type, [this, event](const RecordedRequest& request) {
      const uint32_t id = request.As<rocegw_object_request>().handle;
      if (request.type == ROCEGW_MSG_CM_ACCEPT) {
        const std::lock_guard lock(mutex_);
        ids_[id].cookie = request.As<rocegw_cm_connect>().cookie;
      }
      if (automatic_) Emit(id, event);
      return Bytes(rocegw_object_reply{});
    });
  }

  rocegw_cm_event Event(uint32_t id, rdma_cm_event_type type, int status = 0) {
    rocegw_cm_event event{};
    event.id = id;
    event.cookie = Known(id).cookie;
    event.type = type;
    event.status = status;
    event.device = 0;
    event.port_space = RDMA_PS_TCP;
    event.source = Wire("10.0.0.1", 1000);
    event.destination = Wire("10.0.0.2", 7174);
    event.dgid[15] = 2;
    event.sgid[15] = 1;
    event.path_mtu = type == RDMA_CM_EVENT_ADDR_RESOLVED ? 0 : IBV_MTU_1024;
    event.param.qpn = 0x4321;
    event.param.responder_resources = 5;
    event.param.initiator_depth = 6;
    if (type == RDMA_CM_EVENT_CONNECT_RESPONSE || type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      event.param.private_length = 56;
      strcpy(reinterpret_cast<char*>(event.param.private_data), "from the peer");
    }
    return event;
  }
  void Emit(uint32_t id, rdma_cm_event_type type, int status = 0) {
    daemon_->SendCmEvent(Known(id).channel, Event(id, type, status));
  }
  // A peer asks: returns the handle of the new id.
  uint32_t EmitRequest(uint32_t listener) {
    uint32_t id;
    {
      const std::lock_guard lock(mutex_);
      id = next_id_++;
      ids_[id] = {ids_[listener].channel, 0};
    }
    rocegw_cm_event event = Event(id, RDMA_CM_EVENT_CONNECT_REQUEST);
    event.listen_id = listener;
    event.cookie = Known(listener).cookie;
    daemon_->SendCmEvent(Known(listener).channel, event);
    return id;
  }

  // The next event, which must be of this type.
  rdma_cm_event* Expect(rdma_event_channel* channel, rdma_cm_event_type type) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel, &event) != 0) {
      ADD_FAILURE() << "no event: " << strerror(errno);
      return nullptr;
    }
    EXPECT_EQ(type, event->event);
    return event;
  }
  void ExpectAndAck(rdma_event_channel* channel, rdma_cm_event_type type) {
    rdma_cm_event* event = Expect(channel, type);
    ASSERT_NE(nullptr, event);
    EXPECT_EQ(0, event->status);
    EXPECT_EQ(0, rdma_ack_cm_event(event));
  }
  // An id that has gone as far as it goes without a peer.
  rdma_cm_id* Resolved(rdma_event_channel* channel) {
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel, &id, this, RDMA_PS_TCP) != 0) return nullptr;
    sockaddr_in to = Address("10.0.0.2", 7174);
    EXPECT_EQ(0, rdma_resolve_addr(id, nullptr, Generic(to), 2000));
    ExpectAndAck(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(0, rdma_resolve_route(id, 2000));
    ExpectAndAck(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
  }
  static ibv_qp_init_attr QpAttr() {
    ibv_qp_init_attr attr{};
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    return attr;
  }

  std::unique_ptr<FakeDaemon> daemon_;
  std::mutex
      mutex_;  // what follows: used by the daemon's thread too; never held over a call into it
  std::map<uint32_t, KnownId> ids_;
  uint32_t next_id_ = 500;
  std::atomic<bool> automatic_ = true;
};

TEST_F(CmTest, Channel_DescriptorIsTheProgramsOwn) {
  rdma_event_channel* channel = rdma_create_event_channel();
  ASSERT_NE(nullptr, channel);
  EXPECT_NE(0, fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
  fcntl(channel->fd, F_SETFL, O_NONBLOCK);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(-1, rdma_get_cm_event(channel, &event));
  EXPECT_EQ(EAGAIN, errno);
  rdma_destroy_event_channel(channel);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_CM_DESTROY_CHANNEL).size());
}

TEST_F(CmTest, Channel_WithoutGateway_IsTheInstalledLibrarysMatter) {
  setenv("ROCEGW_SOCKET", "/tmp/rocegw-there-is-none.sock", 1);
  daemon_.reset();
  errno = 0;
  EXPECT_EQ(nullptr, rdma_create_event_channel());
  EXPECT_NE(0, errno);
}

TEST_F(CmTest, CreateId_TellsChannelSpaceAndCookie) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, this, RDMA_PS_UDP));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_CREATE_ID).As<rocegw_cm_create_id>();
  EXPECT_EQ(static_cast<uint32_t>(RDMA_PS_UDP), asked.port_space);
  EXPECT_NE(0u, asked.channel);
  EXPECT_NE(0u, asked.cookie);
  EXPECT_EQ(this, id->context);
  EXPECT_EQ(channel, id->channel);
  EXPECT_EQ(IBV_QPT_UD, id->qp_type);
  EXPECT_EQ(nullptr, id->verbs);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, BindAddr_KnownAddress_BindsTheDevice) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  sockaddr_in address = Address("10.0.0.1", 0);
  ASSERT_EQ(0, rdma_bind_addr(id, Generic(address)));
  EXPECT_EQ(40000, ntohs(rdma_get_src_port(id)));
  EXPECT_EQ(1, id->port_num);
  ASSERT_NE(nullptr, id->verbs);
  EXPECT_NE(nullptr, id->pd);
  int count = 0;
  ibv_context** devices = rdma_get_devices(&count);
  ASSERT_NE(nullptr, devices);
  EXPECT_EQ(1, count);
  EXPECT_EQ(devices[0], id->verbs);
  EXPECT_EQ(nullptr, devices[1]);
  rdma_free_devices(devices);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, BindAddr_WildcardOtherFamiliesAndRefusals) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  sockaddr_in address = Address("0.0.0.0", 18515);
  ASSERT_EQ(0, rdma_bind_addr(id, Generic(address)));
  EXPECT_EQ(nullptr, id->verbs);
  EXPECT_EQ(18515, ntohs(rdma_get_src_port(id)));
  sockaddr_storage other{};
  other.ss_family = 27;  // AF_IB: librdmacm probes for it
  EXPECT_EQ(-1, rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&other)));
  daemon_->Fail(ROCEGW_MSG_CM_BIND, EADDRINUSE);
  EXPECT_EQ(-1, rdma_bind_addr(id, Generic(address)));
  EXPECT_EQ(EADDRINUSE, errno);
  daemon_->Fail(ROCEGW_MSG_CM_BIND, 0);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(99);
  six.sin6_scope_id = 3;
  inet_pton(AF_INET6, "fe80::1", &six.sin6_addr);
  ASSERT_EQ(0, rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&six)));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_BIND).As<rocegw_cm_bind>();
  EXPECT_EQ(AF_INET6, asked.address.family);
  EXPECT_EQ(99, asked.address.port);
  EXPECT_EQ(3u, asked.address.scope_id);
  EXPECT_EQ(0xfe, asked.address.address[0]);
  EXPECT_EQ(0, memcmp(&six.sin6_addr, &id->route.addr.src_sin6.sin6_addr, 16));
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, Active_WithQp_IsMadeReadyBeforeTheProgramHears) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  ASSERT_NE(nullptr, id);
  ASSERT_NE(nullptr, id->verbs);
  EXPECT_EQ(1, id->route.num_paths);
  EXPECT_EQ(IBV_MTU_1024, id->route.path_rec->mtu);
  EXPECT_EQ(7174, ntohs(rdma_get_dst_port(id)));
  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  ASSERT_NE(nullptr, id->qp);
  EXPECT_NE(nullptr, id->send_cq) << "queues are made where none are given";
  EXPECT_EQ(id, id->recv_cq->cq_context);
  EXPECT_EQ(IBV_QPS_INIT, id->qp->state);
  EXPECT_EQ(-1, rdma_create_qp(id, nullptr, &attr)) << "one is enough";
  rdma_conn_param param{};
  param.private_data = "hello";
  param.private_data_len = 5;
  param.responder_resources = 3;
  param.initiator_depth = 4;
  param.retry_count = 6;
  param.rnr_retry_count = 7;
  ASSERT_EQ(0, rdma_connect(id, &param));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_CONNECT).As<rocegw_cm_connect>();
  EXPECT_EQ(id->qp->qp_num, asked.param.qpn);
  EXPECT_EQ(IBV_QPT_RC, asked.param.qp_type);
  EXPECT_EQ(5, asked.param.private_length);
  EXPECT_EQ(0, memcmp(asked.param.private_data, "hello", 5));
  EXPECT_EQ(3, asked.param.responder_resources);
  EXPECT_EQ(4, asked.param.initiator_depth);
  EXPECT_EQ(6, asked.param.retry_count);
  EXPECT_EQ(7, asked.param.rnr_retry_count);

  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(id, event->id);
  EXPECT_EQ(56, event->param.conn.private_data_len);
  EXPECT_STREQ("from the peer", static_cast<const char*>(event->param.conn.private_data));
  EXPECT_EQ(5, event->param.conn.responder_resources);
  EXPECT_EQ(IBV_QPS_RTS, id->qp->state);
  EXPECT_EQ(0x4321u, [&] {
    const auto all = daemon_->Requests(ROCEGW_MSG_MODIFY_QP);
    return all[all.size() - 2].As<rocegw_modify_qp>().attr.dest_qpn;
  }());
  EXPECT_EQ(ROCEGW_MSG_CM_ESTABLISH, daemon_->History().back()) << "the peer is told last";
  EXPECT_EQ(0, rdma_ack_cm_event(event));

  ASSERT_EQ(0, rdma_disconnect(id));
  EXPECT_EQ(IBV_QPS_ERR, id->qp->state);
  ExpectAndAck(channel, RDMA_CM_EVENT_DISCONNECTED);
  rdma_destroy_qp(id);
  EXPECT_EQ(nullptr, id->qp);
  EXPECT_EQ(nullptr, id->send_cq);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, Active_QpCannotBeMadeReady_IsAConnectError) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  daemon_->Fail(ROCEGW_MSG_MODIFY_QP, EINVAL);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_CONNECT_ERROR);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(-EINVAL, event->status);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_CM_REJECT).size());
  EXPECT_TRUE(daemon_->Requests(ROCEGW_MSG_CM_ESTABLISH).empty());
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  rdma_destroy_qp(id);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, Active_QpOfTheProgram_IsLeftToTheProgram) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  rdma_conn_param param{};
  param.qp_num = 0x777;
  ASSERT_EQ(0, rdma_connect(id, &param));
  EXPECT_EQ(0x777u, daemon_->Last(ROCEGW_MSG_CM_CONNECT).As<rocegw_cm_connect>().param.qpn);
  ExpectAndAck(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  int mask = 0;
  ASSERT_EQ(0, rdma_init_qp_attr(id, &attr, &mask));
  EXPECT_NE(0, mask & IBV_QP_DEST_QPN);
  EXPECT_EQ(0x4321u, attr.dest_qp_num);
  EXPECT_EQ(1, attr.ah_attr.is_global);
  EXPECT_EQ(IBV_QPS_RTR, attr.qp_state);
  EXPECT_EQ(0, rdma_establish(id));
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_CM_ESTABLISH).size());
  EXPECT_EQ(0, rdma_notify(id, IBV_EVENT_COMM_EST));
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, Connect_TooMuchPrivateData_IsRefusedHere) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  char data[200] = {};
  rdma_conn_param param{};
  param.private_data = data;
  param.private_data_len = 57;
  EXPECT_EQ(-1, rdma_connect(id, &param));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(-1, rdma_reject(id, data, 149));
  param.private_data_len = 197;
  EXPECT_EQ(-1, rdma_accept(id, &param));
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, Rejected_BreaksTheQpAndCarriesReasonAndData) {
  automatic_ = true;
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  automatic_ = false;
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  const uint32_t handle = daemon_->Last(ROCEGW_MSG_CM_CONNECT).As<rocegw_cm_connect>().id;
  Emit(handle, RDMA_CM_EVENT_REJECTED, 28);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(28, event->status);
  EXPECT_EQ(IBV_QPS_ERR, id->qp->state);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  rdma_destroy_qp(id);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, Passive_RequestMakesAnIdThatCanBeAccepted) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &listener, this, RDMA_PS_TCP));
  ASSERT_EQ(0, rdma_listen(listener, 3));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_LISTEN).As<rocegw_cm_listen>();
  EXPECT_EQ(3u, asked.backlog);
  EXPECT_EQ(41000, ntohs(rdma_get_src_port(listener)));
  const uint32_t handle = EmitRequest(asked.id);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(nullptr, event);
  rdma_cm_id* id = event->id;
  EXPECT_NE(listener, id);
  EXPECT_EQ(listener, event->listen_id);
  EXPECT_EQ(this, id->context);
  EXPECT_EQ(channel, id->channel);
  EXPECT_NE(nullptr, id->verbs);
  EXPECT_EQ(7174, ntohs(rdma_get_dst_port(id)));
  EXPECT_STREQ("from the peer", static_cast<const char*>(event->param.conn.private_data));
  EXPECT_EQ(0, rdma_ack_cm_event(event));

  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  rdma_conn_param param{};
  param.responder_resources = 9;  // more than the peer will use
  param.initiator_depth = 2;
  ASSERT_EQ(0, rdma_accept(id, &param));
  EXPECT_EQ(ROCEGW_MSG_CM_ACCEPT, daemon_->History().back());
  const auto accept = daemon_->Last(ROCEGW_MSG_CM_ACCEPT).As<rocegw_cm_connect>();
  EXPECT_EQ(handle, accept.id);
  EXPECT_NE(0u, accept.cookie);
  EXPECT_EQ(5, accept.param.responder_resources);
  EXPECT_EQ(2, accept.param.initiator_depth);
  EXPECT_EQ(IBV_QPS_RTS, id->qp->state) << "ready before the peer hears";
  const auto modifies = daemon_->Requests(ROCEGW_MSG_MODIFY_QP);
  EXPECT_EQ(5, modifies[modifies.size() - 2].As<rocegw_modify_qp>().attr.max_dest_rd_atomic);
  EXPECT_EQ(2, modifies.back().As<rocegw_modify_qp>().attr.max_rd_atomic);
  event = Expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(id, event->id);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  rdma_destroy_qp(id);
  EXPECT_EQ(0, rdma_destroy_id(id));
  EXPECT_EQ(0, rdma_destroy_id(listener));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, Passive_RefusalAndDestroyBeforeTheAck) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &listener, this, RDMA_PS_TCP));
  ASSERT_EQ(0, rdma_listen(listener, 1));
  EmitRequest(daemon_->Last(ROCEGW_MSG_CM_LISTEN).As<rocegw_cm_listen>().id);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(0, rdma_reject(event->id, "no", 2));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_REJECT).As<rocegw_cm_reject>();
  EXPECT_EQ(2, asked.private_length);
  EXPECT_EQ('n', asked.private_data[0]);
  EXPECT_EQ(0, rdma_destroy_id(event->id)) << "the event counts on the listener";
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  EXPECT_EQ(0, rdma_destroy_id(listener));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, Datagram_QpIsReadyAtOnceAndEventsCarryAddresses) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_UDP));
  sockaddr_in address = Address("10.0.0.1", 0);
  ASSERT_EQ(0, rdma_bind_addr(id, Generic(address)));
  ibv_qp_init_attr attr = QpAttr();
  attr.qp_type = IBV_QPT_UD;
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  EXPECT_EQ(IBV_QPS_RTS, id->qp->state);
  const uint32_t handle = NewestId();
  rocegw_cm_event record = Event(handle, RDMA_CM_EVENT_ESTABLISHED);
  record.param.qkey = RDMA_UDP_QKEY;
  record.sgid_index = 2;
  record.dgid[14] = 7;
  daemon_->SendCmEvent(Known(handle).channel, record);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(static_cast<uint32_t>(RDMA_UDP_QKEY), event->param.ud.qkey);
  EXPECT_EQ(0x4321u, event->param.ud.qp_num);
  EXPECT_EQ(1, event->param.ud.ah_attr.is_global);
  EXPECT_EQ(2, event->param.ud.ah_attr.grh.sgid_index);
  EXPECT_EQ(7, event->param.ud.ah_attr.grh.dgid.raw[14]);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  rdma_destroy_qp(id);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

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
  // The daemon uses the handle again: the old event must not reach the new id.
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
  rdma_destroy_event_channel(first);
  Emit(500, RDMA_CM_EVENT_ADDR_RESOLVED);
  ExpectAndAck(second, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(second);
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
  char path[128] = {};
  EXPECT_EQ(0, rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof path));
  EXPECT_EQ(-1, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, path, sizeof path));
  EXPECT_EQ(-1, rdma_set_option(id, 9, 0, path, 1));
  ibv_ece ece = {1, 2, 0};
  EXPECT_EQ(0, rdma_set_local_ece(id, &ece));
  for (const ibv_ece& wrong : {ibv_ece{0, 2, 0}, ibv_ece{1, 2, 1}}) {
    ece = wrong;
    EXPECT_EQ(-1, rdma_set_local_ece(id, &ece));
    EXPECT_EQ(EINVAL, errno);
  }
  sockaddr_in group = Address("239.0.0.1", 0);
  EXPECT_EQ(-1, rdma_join_multicast(id, Generic(group), nullptr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, DaemonDies_WaitersWakeAndIdsCanBeDestroyed) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  std::thread waiter([&] {
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(-1, rdma_get_cm_event(channel, &event));
    EXPECT_EQ(EIO, errno);
  });
  daemon_->Die();
  waiter.join();
  EXPECT_EQ(-1, rdma_connect(id, nullptr));
  EXPECT_EQ(EIO, errno);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
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
  // Takes what arrives while the ids come and go; the last event ends it.
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
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
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
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

}  // namespace
}  // namespace rocegw::testing
