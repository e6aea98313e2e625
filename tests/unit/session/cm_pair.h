// SPDX-License-Identifier: Apache-2.0
// Two gateways and programs with everything that connections need; the test delivers the datagrams.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/session/cm/cm_records.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing::cm_pair {

enum Event : uint32_t {
  kAddrResolved = 0,
  kAddrError = 1,
  kRouteResolved = 2,
  kRouteError = 3,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kConnectError = 6,
  kUnreachable = 7,
  kRejected = 8,
  kEstablished = 9,
  kDisconnected = 10,
  kNoEvent = 1000,
};

constexpr uint32_t kTcp = 0x0106;
constexpr uint32_t kFirst = 0xC0000201;
constexpr uint32_t kSecond = 0xC0000202;

inline rocegw_sockaddr Address(uint32_t v4, uint16_t port) {
  rocegw_sockaddr address{};
  address.family = AF_INET;
  address.port = port;
  for (int i = 0; i < 4; ++i) address.address[i] = static_cast<uint8_t>(v4 >> (24 - 8 * i));
  return address;
}

inline session::Device DeviceAt(uint32_t v4) {
  session::Device device = SessionHost::MakeDevice();
  device.gids = {wire::Gid::FromV4(v4)};
  return device;
}

// Program with one of each object that a connection needs.
struct Program : TestProgram {
  explicit Program(SessionHost& host, const std::string& pool = session::kDefaultPool)
      : TestProgram(host, pool) {
    channel = client
                  .Call<rocegw_object_reply>(
                      TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CM_CREATE_CHANNEL))
                  .handle;
    events = std::move(client.received_fd);
  }
  uint32_t CreateId(uint64_t cookie = 0) {
    auto create = TestClient::Request<rocegw_cm_create_id>(ROCEGW_MSG_CM_CREATE_ID);
    create.channel = channel;
    create.port_space = kTcp;
    create.cookie = cookie;
    return client.Call<rocegw_object_reply>(create).handle;
  }
  rocegw_cm_id_reply Bind(uint32_t id, const rocegw_sockaddr& address) {
    auto bind = TestClient::Request<rocegw_cm_bind>(ROCEGW_MSG_CM_BIND);
    bind.id = id;
    bind.address = address;
    return client.Call<rocegw_cm_id_reply>(bind);
  }
  uint32_t Listen(uint32_t v4, uint16_t port, uint64_t cookie = 0, uint32_t backlog = 0) {
    const uint32_t id = CreateId(cookie);
    Bind(id, Address(v4, port));
    EXPECT_EQ(client.error(), 0);
    auto listen = TestClient::Request<rocegw_cm_listen>(ROCEGW_MSG_CM_LISTEN);
    listen.id = id;
    listen.backlog = backlog;
    client.Call<rocegw_cm_id_reply>(listen);
    EXPECT_EQ(client.error(), 0);
    return id;
  }
  rocegw_cm_id_reply ResolveAddr(uint32_t id, const rocegw_sockaddr& to) {
    auto resolve = TestClient::Request<rocegw_cm_resolve_addr>(ROCEGW_MSG_CM_RESOLVE_ADDR);
    resolve.id = id;
    resolve.timeout_ms = 2000;
    resolve.destination = to;
    return client.Call<rocegw_cm_id_reply>(resolve);
  }
  rocegw_cm_id_reply ResolveRoute(uint32_t id) {
    auto resolve = TestClient::Request<rocegw_cm_resolve_route>(ROCEGW_MSG_CM_RESOLVE_ROUTE);
    resolve.id = id;
    resolve.timeout_ms = 2000;
    return client.Call<rocegw_cm_id_reply>(resolve);
  }
  // Returns an id that is ready to connect.
  uint32_t Resolved(uint32_t v4, uint16_t port, uint64_t cookie = 0) {
    const uint32_t id = CreateId(cookie);
    ResolveAddr(id, Address(v4, port));
    EXPECT_EQ(client.error(), 0);
    EXPECT_EQ(NextEvent().type, kAddrResolved);
    ResolveRoute(id);
    EXPECT_EQ(client.error(), 0);
    EXPECT_EQ(NextEvent().type, kRouteResolved);
    return id;
  }
  int ConnectOrAccept(uint32_t type, uint32_t id, uint32_t qpn, std::string_view text = {},
                      uint64_t cookie = 0) {
    auto connect = TestClient::Request<rocegw_cm_connect>(type);
    connect.id = id;
    connect.cookie = cookie;
    connect.param.qpn = qpn;
    connect.param.responder_resources = 4;
    connect.param.initiator_depth = 2;
    connect.param.retry_count = 7;
    connect.param.rnr_retry_count = 7;
    connect.param.private_length = static_cast<uint8_t>(text.size());
    std::ranges::copy(text, connect.param.private_data);
    client.Call<rocegw_object_reply>(connect);
    return client.error();
  }
  int Simple(uint32_t type, uint32_t id) {
    client.Object(type, id);
    return client.error();
  }
  rocegw_cm_qp_attr_reply QpAttr(uint32_t id, uint32_t state) {
    auto init = TestClient::Request<rocegw_cm_init_qp_attr>(ROCEGW_MSG_CM_INIT_QP_ATTR);
    init.id = id;
    init.qp_state = state;
    return client.Call<rocegw_cm_qp_attr_reply>(init);
  }
  rocegw_qp_reply CreateQp() { return client.CreateQp(pd, cq); }

  // Returns kNoEvent if there is none.
  rocegw_cm_event NextEvent() { return NextEventOn(events); }
  static rocegw_cm_event NextEventOn(const UniqueFd& from) {
    rocegw_cm_event event{};
    event.type = kNoEvent;
    (void)!::recv(from.get(), &event, sizeof event, MSG_DONTWAIT);
    return event;
  }

  uint32_t channel = 0;
  UniqueFd events;
};

// Every address is reached directly.
inline StatusOr<wire::Gid> FirstAddress(const wire::Gid& destination, uint32_t) {
  if (destination == wire::Gid::FromV4(0x08080808)) return Status(ENETUNREACH, "no route");
  if (destination == wire::Gid::FromV4(0x08080809)) return wire::Gid::FromV4(0x01010101);
  return wire::Gid::FromV4(kFirst);
}
inline StatusOr<wire::Gid> SecondAddress(const wire::Gid&, uint32_t) {
  return wire::Gid::FromV4(kSecond);
}

class Cm : public ::testing::Test {
 protected:
  // Delivers datagrams until there are none.
  void Carry() {
    for (bool moved = true; moved;) {
      a.Settle();
      b.Settle();
      moved = CarryOne(a, b);
      moved = CarryOne(b, a) || moved;
    }
  }
  bool CarryOne(SessionHost& from, SessionHost& to) {
    auto& mads = from.workers[0]->mads;
    if (mads.empty()) return false;
    for (const worker::SendMad& mad : mads) {
      worker::MadReceived received;
      received.meta.source = mad.path.source;
      received.meta.destination = mad.path.destination;
      received.meta.source_port = mad.path.source_port;
      received.source_qpn = kGsiQpn;
      received.mad = mad.mad;
      ++carried;
      to.workers[0]->Raise({0, received});
    }
    mads.clear();
    return true;
  }
  void TearDown() override {
    EXPECT_EQ(a.BrokenRules(), std::vector<std::string>());
    EXPECT_EQ(b.BrokenRules(), std::vector<std::string>());
  }

  // Connects client and server; both get ESTABLISHED. Fills in client_id and server_id.
  void ConnectThem(Program& client, Program& server) {
    server.Listen(kSecond, 7000, 0x11);
    client_id = client.Resolved(kSecond, 7000, 0x22);
    client_qp = client.CreateQp();
    ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, client_id, client_qp.qpn, "hello"), 0);
    Carry();
    const rocegw_cm_event request = server.NextEvent();
    ASSERT_EQ(request.type, kConnectRequest);
    server_id = request.id;
    server_qp = server.CreateQp();
    ASSERT_EQ(
        server.ConnectOrAccept(ROCEGW_MSG_CM_ACCEPT, server_id, server_qp.qpn, "welcome", 0x33), 0);
    Carry();
    ASSERT_EQ(client.NextEvent().type, kConnectResponse);
    ASSERT_EQ(client.Simple(ROCEGW_MSG_CM_ESTABLISH, client_id), 0);
    Carry();
    const rocegw_cm_event established = server.NextEvent();
    ASSERT_EQ(established.type, kEstablished);
    EXPECT_EQ(established.cookie, 0x33u) << "as set by accept";
    EXPECT_EQ(established.id, server_id);
  }

  SessionHost a{2, {}, 4096, {DeviceAt(kFirst)}, FirstAddress};
  SessionHost b{2, {}, 4096, {DeviceAt(kSecond)}, SecondAddress};
  int carried = 0;
  uint32_t client_id = 0;
  uint32_t server_id = 0;
  rocegw_qp_reply client_qp{};
  rocegw_qp_reply server_qp{};
};

}  // namespace rocegw::testing::cm_pair
