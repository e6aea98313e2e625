// SPDX-License-Identifier: Apache-2.0
// RC connections: ids that are destroyed, programs that die, stale connections.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/cm/connect_fixture.h"

namespace rocegw::cm {
namespace {

TEST_F(ConnectTest, DestroyedActiveId_WithdrawsItsRequest) {
  Request();
  ASSERT_EQ(client.Do(active, DestroyId{}), 0);
  Exchange(client, server);
  const auto event = server.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kRejected);
  EXPECT_EQ(event->status, 4);
  EXPECT_EQ(server.Do(passive, Accept{Host::Params(0x222)}), EINVAL);
}

TEST_F(ConnectTest, AcceptOfAWithdrawnRequest_IsToldSo) {
  Request();
  ASSERT_EQ(client.Do(active, DestroyId{}), 0);
  client.actions.mads.clear();
  ASSERT_EQ(server.Do(passive, Accept{Host::Params(0x222)}), 0);
  Exchange(client, server);
  const auto event = server.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kRejected);
  EXPECT_EQ(event->status, 6);
}

TEST_F(ConnectTest, DestroyedIds_InEveryState_LeaveNothingBehind) {
  for (int stage = 0; stage < 6; ++stage) {
    SCOPED_TRACE(stage);
    if (stage == 0) Connect();
    if (stage == 1) Request();
    if (stage == 2) Respond();
    if (stage == 3) Established();
    if (stage >= 4) {
      Established();
      ASSERT_EQ(client.Do(active, Disconnect{}), 0);
      if (stage == 5) Exchange(client, server);
    }
    ASSERT_EQ(client.Do(active, DestroyId{}), 0);
    if (passive.value != 0 && stage > 0) {
      ASSERT_EQ(server.Do(passive, DestroyId{}), 0);
    }
    ASSERT_EQ(server.Do(listener, DestroyId{}), 0);
    Exchange(client, server);
    for (int i = 0; i < 200; ++i) {
      Together(Milliseconds(200));
      Exchange(client, server);
    }
    client.actions.Clear();
    server.actions.Clear();
    EXPECT_EQ(client.engine().connection_count(), 0u);
    EXPECT_EQ(server.engine().connection_count(), 0u);
    EXPECT_EQ(client.engine().id_count(), 0u);
    EXPECT_EQ(server.engine().id_count(), 0u);
    EXPECT_EQ(client.engine().port_count(), 0u);
    EXPECT_EQ(client.engine().deadline(), kNever);
    EXPECT_EQ(server.engine().deadline(), kNever);
  }
}

TEST_F(ConnectTest, DeadProgram_DisconnectsItsPeers) {
  Established();
  client.engine().DropOwner(kProgram, client.now, client.actions);
  EXPECT_EQ(client.engine().id_count(), 0u);
  Exchange(client, server);
  EXPECT_EQ(server.NextEvent()->type, EventType::kDisconnected);
  EXPECT_FALSE(client.NextEvent().has_value());
}

TEST_F(ConnectTest, DeadProgramWithASilentPeer_GivesUpSoon) {
  Established();
  client.engine().DropOwner(kProgram, client.now, client.actions);
  client.actions.Clear();
  for (int i = 0; i < 210; ++i) client.Advance(Milliseconds(100));
  EXPECT_GE(client.actions.mads.size(), 4u);
  EXPECT_EQ(client.engine().connection_count(), 0u);
}

TEST_F(ConnectTest, DeadQp_TellsBothPrograms) {
  Established();
  ASSERT_EQ(client.Do(active, QpFailed{}), 0);
  const auto event = client.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kDisconnected);
  Exchange(client, server);
  EXPECT_EQ(server.NextEvent()->type, EventType::kDisconnected);
  EXPECT_FALSE(client.NextEvent().has_value());
}

TEST_F(ConnectTest, SameQpnAgain_IsStaleAndEndsTheOldConnection) {
  Established();
  Host again(V4(1), 1);  // the client's host after a restart that kept its GUID and QPN
  const CmHandle id = again.Routed(server.address, kPort);
  ASSERT_EQ(again.Do(id, cm::Connect{Host::Params(0x111)}), 0);
  auto req = again.NextMad();
  ASSERT_TRUE(req.has_value());
  auto& body = std::get<wire::CmReq>(req->body);
  body.local_ca_guid = client.engine().CaGuidFor(server.address);
  body.local_comm_id ^= 0x55555555;
  EXPECT_EQ(server.Take(*req, V4(1)), DropReason::kNone);
  bool dreq = false, rej = false;
  while (auto mad = server.NextMad()) {
    dreq |= std::holds_alternative<wire::CmDreq>(mad->body);
    if (const auto* m = std::get_if<wire::CmRej>(&mad->body); m != nullptr) {
      rej = m->reason == wire::RejectReason::kStaleConnection;
    }
  }
  EXPECT_TRUE(dreq);
  EXPECT_TRUE(rej);
}

TEST_F(ConnectTest, PeerWithASmallerLink_GetsASmallerPathMtu) {
  client.SetMtu(9000);
  listener = server.Listening(kPort);
  active = client.Routed(server.address, kPort);
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  Exchange(client, server);
  EXPECT_FALSE(client.NextEvent().has_value()) << "not rejected";
  const auto request = server.NextEvent();
  ASSERT_TRUE(request.has_value());
  ASSERT_EQ(request->type, EventType::kConnectRequest);
  ASSERT_EQ(server.Do(request->id, Accept{Host::Params(0x222)}), 0);
  Exchange(client, server);
  for (const auto& row : client.engine().Connections()) EXPECT_EQ(row.path_mtu, 1024u);
  for (const auto& row : server.engine().Connections()) EXPECT_EQ(row.path_mtu, 1024u);
  EXPECT_EQ(client.engine().Connections().size(), 1u);
}

// Returns a REQ as the client would send it after forgetting its connection.
wire::CmReq StaleClaim(const wire::Gid& from, Host& server, uint64_t guid) {
  Host claimant(from, 1);
  const CmHandle id = claimant.Routed(server.address, kPort);
  EXPECT_EQ(claimant.Do(id, cm::Connect{Host::Params(0x111)}), 0);
  wire::CmReq req = *claimant.Next<wire::CmReq>();
  req.local_ca_guid = guid;
  req.local_comm_id ^= 0x55555555;
  return req;
}

TEST_F(ConnectTest, StaleClaim_WithTheGuidThatOthersKnow_EndsNothing) {
  Established();
  const uint64_t told_to_others = client.engine().CaGuidFor(V4(3));
  EXPECT_NE(told_to_others, client.engine().CaGuidFor(server.address));
  server.Take({1, 0, StaleClaim(V4(1), server, told_to_others)}, V4(1));
  EXPECT_FALSE(server.Next<wire::CmDreq>().has_value());
  EXPECT_EQ(server.engine().counters().stale, 0u);
}

TEST_F(ConnectTest, StaleClaim_FromAnotherAddress_NeitherEndsNorHidesTheConnection) {
  Established();
  const uint64_t guid = client.engine().CaGuidFor(server.address);
  wire::CmReq elsewhere = StaleClaim(V4(9), server, guid);
  server.Take({1, 0, elsewhere}, V4(9));
  EXPECT_EQ(server.engine().counters().stale, 0u);
  server.actions.mads.clear();
  wire::CmReq own = StaleClaim(V4(1), server, guid);
  own.local_comm_id ^= 1;
  server.Take({2, 0, own}, V4(1));
  EXPECT_EQ(server.engine().counters().stale, 1u) << "the client itself still ends it";
}

TEST_F(ConnectTest, PrivateDataBeyondTheLimits_IsRefused) {
  listener = server.Listening(kPort);
  active = client.Routed(server.address, kPort);
  ConnectParams param = Host::Params(0x111);
  param.private_data.length = 57;
  EXPECT_EQ(client.Do(active, cm::Connect{param}), EINVAL);
  param.private_data.length = 56;
  EXPECT_EQ(client.Do(active, cm::Connect{param}), 0);
  Exchange(client, server);
  passive = server.NextEvent()->id;
  Reject reject;
  reject.private_data.length = 149;
  EXPECT_EQ(server.Do(passive, reject), EINVAL);
  param.private_data.length = 197;
  EXPECT_EQ(server.Do(passive, Accept{param}), EINVAL);
  param.private_data.length = 196;
  EXPECT_EQ(server.Do(passive, Accept{param}), 0);
}

TEST_F(ConnectTest, LoopbackAddress_ConnectsInsideOneEngine) {
  listener = server.Listening(kPort);
  active = server.Create();
  ResolveAddress resolve;
  resolve.destination = {wire::Gid::FromV4(0x7F000001), kPort};
  AddressResolved route;
  route.source = server.address;
  route.destination = server.address;
  ASSERT_EQ(server.Do(active, resolve), 0);
  ASSERT_EQ(server.Do(active, route), 0);
  ASSERT_EQ(server.Do(active, ResolveRoute{}), 0);
  ASSERT_EQ(server.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  server.actions.events.clear();
  Exchange(server, client);
  const auto request = server.NextEvent();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->info.remote.address, wire::Gid::FromV4(0x7F000001));
  ASSERT_EQ(server.Do(request->id, Accept{Host::Params(0x222)}), 0);
  Exchange(server, client);
  ASSERT_EQ(server.NextEvent()->type, EventType::kConnectResponse);
  ASSERT_EQ(server.Do(active, Establish{}), 0);
  Exchange(server, client);
  EXPECT_EQ(server.NextEvent()->type, EventType::kEstablished);
  ASSERT_EQ(server.Do(request->id, Disconnect{}), 0);
  Exchange(server, client);
  EXPECT_EQ(server.NextEvent()->type, EventType::kDisconnected);
  EXPECT_EQ(server.NextEvent()->type, EventType::kDisconnected);
}

}  // namespace
}  // namespace rocegw::cm
