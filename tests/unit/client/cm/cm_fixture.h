// SPDX-License-Identifier: Apache-2.0
// rdma_cm calls against a scripted daemon that answers at once, as with an infinitely fast network.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {

template <typename T>
std::vector<uint8_t> Bytes(const T& value) {
  const auto* from = reinterpret_cast<const uint8_t*>(&value);
  return {from, from + sizeof value};
}

inline sockaddr_in Address(const char* text, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}

inline sockaddr* Generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

inline rocegw_sockaddr Wire(const char* text, uint16_t port) {
  rocegw_sockaddr address{};
  address.family = AF_INET;
  address.port = port;
  inet_pton(AF_INET, text, address.address);
  return address;
}

class CmTest : public ::testing::Test {
 protected:
  FakeOptions options_;

  void SetUp() override {
    daemon_ = std::make_unique<FakeDaemon>(options_);
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
    // The daemon answers requests at once, as with an infinitely fast network.
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

  // Expects that the last request of the type was about the id and included its queue pair.
  void ExpectStep(uint32_t type, const rdma_cm_id* id) {
    const auto step = daemon_->Last(type).As<rocegw_cm_step>();
    EXPECT_EQ(1u, step.with_qp);
    EXPECT_EQ(daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>().cm_id, step.id);
    EXPECT_NE(nullptr, id->qp);
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

  // Sets the event for requests whose body begins with the id's handle.
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
  // Emits a peer's request; returns the handle of the new id.
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

  // Returns the next event, which must be of this type.
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
  // Returns an id for datagrams with a local address.
  rdma_cm_id* BoundForDatagrams(rdma_event_channel* channel) {
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(0, rdma_create_id(channel, &id, this, RDMA_PS_UDP));
    sockaddr_in address = Address("10.0.0.1", 0);
    EXPECT_EQ(0, rdma_bind_addr(id, Generic(address)));
    return id;
  }
  // Returns an id in the last state before it needs a peer.
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
  // Returns the same with a queue pair of the library.
  rdma_cm_id* ResolvedWithQp(rdma_event_channel* channel) {
    rdma_cm_id* id = Resolved(channel);
    ibv_qp_init_attr attr = QpAttr();
    EXPECT_EQ(0, rdma_create_qp(id, nullptr, &attr));
    return id;
  }
  rdma_cm_id* Listening(rdma_event_channel* channel, int backlog) {
    rdma_cm_id* listener = nullptr;
    EXPECT_EQ(0, rdma_create_id(channel, &listener, this, RDMA_PS_TCP));
    EXPECT_EQ(0, rdma_listen(listener, backlog));
    return listener;
  }
  // Destroys the objects, ids with their queue pairs first.
  static void End(rdma_event_channel* channel, std::initializer_list<rdma_cm_id*> ids) {
    for (rdma_cm_id* id : ids) {
      if (id->qp != nullptr) rdma_destroy_qp(id);
      EXPECT_EQ(0, rdma_destroy_id(id));
    }
    rdma_destroy_event_channel(channel);
  }
  static ibv_qp_init_attr QpAttr() {
    ibv_qp_init_attr attr{};
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    return attr;
  }

  std::unique_ptr<FakeDaemon> daemon_;
  std::mutex mutex_;  // guards the fields below, which the daemon's thread uses too; never held
                      // during a call into it
  std::map<uint32_t, KnownId> ids_;
  uint32_t next_id_ = 500;
  std::atomic<bool> automatic_ = true;
};

}  // namespace rocegw::testing
