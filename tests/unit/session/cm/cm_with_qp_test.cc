// SPDX-License-Identifier: Apache-2.0
// Connection requests that include their queue pair, and requests without an answer.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/session/cm_pair.h"

namespace rocegw::testing {
namespace {

using namespace cm_pair;  // NOLINT: the fixture's names are the test's own

constexpr auto kInit = static_cast<uint32_t>(verbs::QpState::kInit);
constexpr auto kRts = static_cast<uint32_t>(verbs::QpState::kRts);
constexpr auto kBroken = static_cast<uint32_t>(verbs::QpState::kError);

class CmWithQp : public Cm {
 protected:
  static rocegw_qp_attr AttributesOf(Program& program, const rocegw_qp_reply& qp) {
    auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
    query.handle = qp.handle;
    return program.client.Call<rocegw_query_qp_reply>(query).attr;
  }
  static rocegw_qp_reply CreateFor(Program& program, uint32_t id) {
    auto create = program.client.QpRequest(program.pd, program.cq);
    create.cm_id = id;
    return program.client.Call<rocegw_qp_reply>(create);
  }
  static int Step(Program& program, uint32_t type, uint32_t id) {
    auto step = TestClient::Request<rocegw_cm_step>(type);
    step.id = id;
    step.with_qp = 1;
    program.client.Call<rocegw_object_reply>(step);
    return program.client.error();
  }
  static int Accept(Program& program, uint32_t id, uint32_t qpn) {
    auto accept = TestClient::Request<rocegw_cm_connect>(ROCEGW_MSG_CM_ACCEPT);
    accept.id = id;
    accept.with_qp = 1;
    accept.param.qpn = qpn;
    accept.param.responder_resources = 3;
    accept.param.initiator_depth = 1;
    program.client.Call<rocegw_object_reply>(accept);
    return program.client.error();
  }
  // A request of the client is at the server; both have a queue pair in INIT.
  void Request(Program& client, Program& server) {
    server.Listen(kSecond, 7000);
    client_id = client.Resolved(kSecond, 7000);
    client_qp = CreateFor(client, client_id);
    ASSERT_EQ(client.client.error(), 0);
    ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, client_id, client_qp.qpn), 0);
    Carry();
    server_id = server.NextEvent().id;
    server_qp = CreateFor(server, server_id);
    ASSERT_EQ(server.client.error(), 0);
  }
};

TEST_F(CmWithQp, EveryStep_MovesTheQueuePairOfItsId) {
  Program client(a);
  Program server(b);
  Request(client, server);
  EXPECT_EQ(AttributesOf(client, client_qp).qp_state, kInit);
  EXPECT_EQ(AttributesOf(server, server_qp).qp_state, kInit);

  ASSERT_EQ(Accept(server, server_id, server_qp.qpn), 0);
  const rocegw_qp_attr passive = AttributesOf(server, server_qp);
  EXPECT_EQ(passive.qp_state, kRts);
  EXPECT_EQ(passive.dest_qpn, client_qp.qpn);
  EXPECT_EQ(passive.max_dest_rd_atomic, 3);
  EXPECT_EQ(passive.max_rd_atomic, 1);
  Carry();
  ASSERT_EQ(client.NextEvent().type, kConnectResponse);
  EXPECT_EQ(AttributesOf(client, client_qp).qp_state, kInit);
  ASSERT_EQ(Step(client, ROCEGW_MSG_CM_ESTABLISH, client_id), 0);
  const rocegw_qp_attr active = AttributesOf(client, client_qp);
  EXPECT_EQ(active.qp_state, kRts);
  EXPECT_EQ(active.dest_qpn, server_qp.qpn);
  Carry();
  EXPECT_EQ(server.NextEvent().type, kEstablished);

  ASSERT_EQ(Step(client, ROCEGW_MSG_CM_DISCONNECT, client_id), 0);
  EXPECT_EQ(AttributesOf(client, client_qp).qp_state, kBroken);
  EXPECT_EQ(AttributesOf(server, server_qp).qp_state, kRts);
  Carry();
  EXPECT_EQ(server.NextEvent().type, kDisconnected);
}

TEST_F(CmWithQp, QueuePairThatCannotGetReady_AcceptFailsAndThePeerHearsNothing) {
  Program client(a);
  Program server(b);
  Request(client, server);
  rocegw_qp_attr broken{};
  broken.qp_state = kBroken;
  ASSERT_EQ(server.client.Modify(server_qp.handle, verbs::kAttrState, broken), 0);
  const int before = carried;
  EXPECT_EQ(Accept(server, server_id, server_qp.qpn), EINVAL);
  Carry();
  EXPECT_EQ(carried, before);
  EXPECT_EQ(AttributesOf(server, server_qp).qp_state, kBroken);
}

TEST_F(CmWithQp, WrongIdsAndQueuePairs_AreRefused) {
  Program client(a);
  Program other(a);
  Program server(b);
  const uint32_t unbound = client.CreateId();
  CreateFor(client, unbound);
  EXPECT_EQ(client.client.error(), EINVAL) << "no device yet";
  EXPECT_EQ(a.server->services().pools.gateway().used(session::Resource::kQps), 0u);
  CreateFor(client, unbound + 1);
  EXPECT_EQ(client.client.error(), EINVAL) << "no such id";
  auto datagram = client.client.QpRequest(client.pd, client.cq);
  datagram.type = ROCEGW_QPT_UD;
  datagram.cm_id = unbound;
  client.client.Call<rocegw_qp_reply>(datagram);
  EXPECT_EQ(client.client.error(), EINVAL) << "connected ones only";

  Request(client, server);
  const auto stolen = other.CreateQp();
  EXPECT_EQ(Accept(server, server_id, stolen.qpn), EINVAL);
  EXPECT_EQ(Step(client, ROCEGW_MSG_CM_DISCONNECT, unbound), EINVAL) << "it connects none";
  ASSERT_EQ(client.Simple(ROCEGW_MSG_DESTROY_QP, client_qp.handle), 0);
  EXPECT_EQ(Step(client, ROCEGW_MSG_CM_DISCONNECT, client_id), EINVAL) << "it is gone";
}

TEST_F(CmWithQp, RequestNumberZero_IsCarriedOutAndNotAnswered) {
  Program client(a);
  Program server(b);
  const uint32_t listener = server.Listen(kSecond, 7000);
  client_id = client.Resolved(kSecond, 7000);
  client_qp = CreateFor(client, client_id);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, client_id, client_qp.qpn), 0);
  Carry();
  server_id = server.NextEvent().id;
  auto name = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CM_QUERY_ID);
  name.handle = server_id;
  name.header.request_id = 0;
  ASSERT_TRUE(server.client.SendRaw({reinterpret_cast<uint8_t*>(&name), sizeof name}));
  b.Settle();
  EXPECT_FALSE(server.client.Receive().has_value());
  // Used once, it outlives its listener.
  EXPECT_EQ(server.Simple(ROCEGW_MSG_CM_DESTROY_ID, listener), 0);
  server_qp = CreateFor(server, server_id);
  EXPECT_EQ(Accept(server, server_id, server_qp.qpn), 0);
}

// Sends a request without an answer, and expects none.
template <typename Request>
void Tell(SessionHost& host, Program& program, Request request) {
  request.header.request_id = 0;
  ASSERT_TRUE(program.client.SendRaw({reinterpret_cast<uint8_t*>(&request), sizeof request}));
  host.Settle();
  EXPECT_FALSE(program.client.Receive().has_value());
}

void ExpectFailure(const rocegw_cm_event& event, uint32_t type, uint32_t id, int error) {
  EXPECT_EQ(event.type, type);
  EXPECT_EQ(event.id, id);
  EXPECT_EQ(event.status, -error);
}

TEST_F(CmWithQp, StepsThatNobodyWaitsFor_FailAsEvents) {
  Program client(a);
  Program server(b);
  const uint32_t id = client.CreateId(0x77);
  auto address = TestClient::Request<rocegw_cm_resolve_addr>(ROCEGW_MSG_CM_RESOLVE_ADDR);
  address.id = id;
  Tell(a, client, address);
  const rocegw_cm_event first = client.NextEvent();
  ExpectFailure(first, kAddrError, id, EAFNOSUPPORT);
  EXPECT_EQ(first.cookie, 0x77u);
  auto route = TestClient::Request<rocegw_cm_resolve_route>(ROCEGW_MSG_CM_RESOLVE_ROUTE);
  route.id = id;
  Tell(a, client, route);
  ExpectFailure(client.NextEvent(), kRouteError, id, EINVAL);
  auto connect = TestClient::Request<rocegw_cm_connect>(ROCEGW_MSG_CM_CONNECT);
  connect.id = id;
  connect.param.qpn = 0x1234;
  Tell(a, client, connect);
  ExpectFailure(client.NextEvent(), kConnectError, id, EINVAL);
  auto disconnect = TestClient::Request<rocegw_cm_step>(ROCEGW_MSG_CM_DISCONNECT);
  disconnect.id = id;
  Tell(a, client, disconnect);
  EXPECT_EQ(client.NextEvent().type, kNoEvent);
  connect.id = id + 1;
  Tell(a, client, connect);
  EXPECT_EQ(client.NextEvent().type, kNoEvent) << "nobody's id";
}

TEST_F(CmWithQp, AcceptThatNobodyWaitsFor_Fails_ThePeerIsRefused) {
  Program client(a);
  Program server(b);
  Request(client, server);
  rocegw_qp_attr broken{};
  broken.qp_state = kBroken;
  ASSERT_EQ(server.client.Modify(server_qp.handle, verbs::kAttrState, broken), 0);
  auto accept = TestClient::Request<rocegw_cm_connect>(ROCEGW_MSG_CM_ACCEPT);
  accept.id = server_id;
  accept.with_qp = 1;
  accept.param.qpn = server_qp.qpn;
  Tell(b, server, accept);
  ExpectFailure(server.NextEvent(), kConnectError, server_id, EINVAL);
  Carry();
  EXPECT_EQ(client.NextEvent().type, kRejected);
}

}  // namespace
}  // namespace rocegw::testing
