// SPDX-License-Identifier: Apache-2.0
// Ids that move to another channel, with and without their unread events.
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/session/cm_pair.h"

namespace rocegw::testing {
namespace {

using namespace cm_pair;  // NOLINT: the fixture's names are the test's own

// Another channel of a program, and an id that moves there with its unread events.
struct OtherChannel {
  explicit OtherChannel(Program& owner)
      : program(owner),
        handle(program.client.Object(ROCEGW_MSG_CM_CREATE_CHANNEL, 0).handle),
        events(std::move(program.client.received_fd)) {}
  int MoveHere(uint32_t id, int unread_in) {
    auto migrate = TestClient::Request<rocegw_cm_migrate>(ROCEGW_MSG_CM_MIGRATE);
    migrate.id = id;
    migrate.channel = handle;
    program.client.Call<rocegw_object_reply>(migrate, unread_in);
    return program.client.error();
  }
  rocegw_cm_event Next() const { return Program::NextEventOn(events); }

  Program& program;
  uint32_t handle;
  UniqueFd events;
};

TEST_F(Cm, Migrate_OlderClient_LaterEventsFollowTheId) {
  Program client(a);
  Program server(b);
  ConnectThem(client, server);
  OtherChannel other(client);
  ASSERT_EQ(other.MoveHere(client_id, -1), 0);
  ASSERT_EQ(server.Simple(ROCEGW_MSG_CM_DISCONNECT, server_id), 0);
  Carry();
  EXPECT_EQ(client.NextEvent().type, kNoEvent);
  EXPECT_EQ(other.Next().type, kDisconnected);
  EXPECT_EQ(client.Simple(ROCEGW_MSG_CM_DESTROY_CHANNEL, client.channel), 0);
  EXPECT_EQ(client.client.Object(ROCEGW_MSG_CM_DESTROY_ID, client_id).events_reported, 4u);
}

TEST_F(Cm, Migrate_UnreadEventsMoveWithTheirId_OthersStayInOrder) {
  Program client(a);
  const uint32_t moves = client.CreateId(0x22);
  const uint32_t stays = client.CreateId(0x33);
  client.ResolveAddr(stays, Address(kSecond, 7000));
  client.ResolveAddr(moves, Address(kSecond, 7000));
  client.ResolveRoute(moves);
  client.ResolveRoute(stays);
  OtherChannel other(client);
  ASSERT_EQ(other.MoveHere(moves, client.events.get()), 0);
  for (const uint32_t type : {kAddrResolved, kRouteResolved}) {
    rocegw_cm_event event = client.NextEvent();
    EXPECT_EQ(event.type, type);
    EXPECT_EQ(event.id, stays);
    event = other.Next();
    EXPECT_EQ(event.type, type);
    EXPECT_EQ(event.id, moves);
    EXPECT_EQ(event.cookie, 0x22u);
  }
  EXPECT_EQ(client.NextEvent().type, kNoEvent);
  EXPECT_EQ(other.Next().type, kNoEvent);
  EXPECT_EQ(client.client.Object(ROCEGW_MSG_CM_DESTROY_ID, moves).events_reported, 2u);
  EXPECT_EQ(client.client.Object(ROCEGW_MSG_CM_DESTROY_ID, stays).events_reported, 2u);
}

TEST_F(Cm, Migrate_WithADescriptorOfSomethingElse_LeavesWhatIsUnread) {
  Program client(a);
  const uint32_t id = client.CreateId();
  client.ResolveAddr(id, Address(kSecond, 7000));
  OtherChannel other(client);
  ASSERT_EQ(other.MoveHere(id, other.events.get()), 0);
  EXPECT_EQ(other.Next().type, kNoEvent);
  EXPECT_EQ(client.NextEvent().type, kAddrResolved);
}

TEST_F(Cm, Migrate_Listener_TakesUnreadRequestsAlong_WithWhatFollowsThem) {
  Program client(a);
  Program server(b);
  const uint32_t listener = server.Listen(kSecond, 7000, 0x11);
  const auto connect = [&] {
    const uint32_t id = client.Resolved(kSecond, 7000);
    EXPECT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, client.CreateQp().qpn), 0);
    Carry();
  };
  connect();
  const rocegw_cm_event read = server.NextEvent();
  ASSERT_EQ(read.type, kConnectRequest);
  connect();
  OtherChannel other(server);
  ASSERT_EQ(other.MoveHere(listener, server.events.get()), 0);
  EXPECT_EQ(server.NextEvent().type, kNoEvent);
  const rocegw_cm_event moved = other.Next();
  ASSERT_EQ(moved.type, kConnectRequest);
  EXPECT_EQ(moved.listen_id, listener);
  for (const rocegw_cm_event* request : {&read, &moved}) {
    const auto qp = server.CreateQp();
    ASSERT_EQ(server.ConnectOrAccept(ROCEGW_MSG_CM_ACCEPT, request->id, qp.qpn), 0);
    Carry();
  }
  for (rocegw_cm_event event = client.NextEvent(); event.type != kNoEvent;
       event = client.NextEvent()) {
    EXPECT_EQ(event.type, kConnectResponse);
    EXPECT_EQ(client.Simple(ROCEGW_MSG_CM_ESTABLISH, event.id), 0);
  }
  Carry();
  EXPECT_EQ(server.NextEvent().id, read.id) << "it is where it was read";
  const rocegw_cm_event established = other.Next();
  EXPECT_EQ(established.type, kEstablished);
  EXPECT_EQ(established.id, moved.id);
  connect();
  EXPECT_EQ(other.Next().type, kConnectRequest);
}

}  // namespace
}  // namespace rocegw::testing
