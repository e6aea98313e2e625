// SPDX-License-Identifier: Apache-2.0
// RC connections: their end, lost and repeated messages, and peers that are silent.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/cm/connect_fixture.h"

namespace rocegw::cm {
namespace {

TEST_F(ConnectTest, Disconnect_EndsBothWithOneEventAndTimewait) {
  Established();
  ASSERT_EQ(client.Do(active, Disconnect{}), 0);
  Exchange(client, server);
  ASSERT_EQ(client.NextEvent()->type, EventType::kDisconnected);
  ASSERT_EQ(server.NextEvent()->type, EventType::kDisconnected);
  EXPECT_EQ(client.StateOf(active), "timewait");
  EXPECT_EQ(server.StateOf(passive), "timewait");
  ASSERT_EQ(client.actions.quarantined.size(), 1u);
  EXPECT_EQ(client.actions.quarantined[0].qpn, Qpn{0x111});
  EXPECT_EQ(client.actions.quarantined[0].until, client.now + Milliseconds(512));
  EXPECT_EQ(server.Do(passive, Disconnect{}), 0);
  EXPECT_TRUE(server.actions.mads.empty());
  Together(Milliseconds(511));
  EXPECT_FALSE(client.NextEvent().has_value());
  Together(Milliseconds(1));
  EXPECT_EQ(client.NextEvent()->type, EventType::kTimewaitExit);
  EXPECT_EQ(server.NextEvent()->type, EventType::kTimewaitExit);
  EXPECT_EQ(client.engine().connection_count(), 0u);
  EXPECT_EQ(server.engine().connection_count(), 0u);
  EXPECT_EQ(client.engine().deadline(), kNever);
}

TEST_F(ConnectTest, CrossingDisconnects_EndBothOnce) {
  Established();
  ASSERT_EQ(client.Do(active, Disconnect{}), 0);
  ASSERT_EQ(server.Do(passive, Disconnect{}), 0);
  Exchange(client, server);
  EXPECT_EQ(client.NextEvent()->type, EventType::kDisconnected);
  EXPECT_EQ(server.NextEvent()->type, EventType::kDisconnected);
  EXPECT_FALSE(client.NextEvent().has_value());
  EXPECT_FALSE(server.NextEvent().has_value());
}

TEST_F(ConnectTest, LostDisconnect_IsSentAgainSoon) {
  Established();
  ASSERT_EQ(client.Do(active, Disconnect{}), 0);
  client.actions.mads.clear();
  client.Advance(Milliseconds(199));
  EXPECT_TRUE(client.actions.mads.empty());
  client.Advance(Milliseconds(1));
  EXPECT_TRUE(client.Next<wire::CmDreq>().has_value());
}

TEST_F(ConnectTest, LostDisconnectReply_IsSentAgain) {
  Established();
  ASSERT_EQ(client.Do(active, Disconnect{}), 0);
  const SendMad dreq = client.actions.mads[0];
  server.Take(dreq);
  server.actions.mads.clear();
  EXPECT_EQ(server.Take(dreq), DropReason::kNone);
  EXPECT_TRUE(server.Next<wire::CmDrep>().has_value());
}

TEST_F(ConnectTest, SilentPeer_DisconnectEndsWithTimeout) {
  Established();
  ASSERT_EQ(client.Do(active, Disconnect{}), 0);
  for (int i = 0; i < 1000 && client.actions.events.empty(); ++i) client.Advance(Milliseconds(100));
  const auto event = client.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kDisconnected);
  EXPECT_EQ(event->status, -ETIMEDOUT);
}

TEST_F(ConnectTest, SilentPeer_IsReportedSoonAfterTheFirstResends) {
  Connect();
  const TimePoint start = client.now;
  for (int i = 0; i < 200 && client.actions.silent.empty(); ++i) client.Advance(Milliseconds(50));
  ASSERT_EQ(client.actions.silent.size(), 1u);
  EXPECT_GE((client.now - start).ns, Seconds(2).ns);
  EXPECT_LE((client.now - start).ns, Seconds(4).ns);
  EXPECT_TRUE(client.actions.events.empty()) << "the attempt goes on";
}

TEST_F(ConnectTest, PeerThatAnswers_IsNotReported) {
  Established();
  client.Advance(Seconds(10));
  EXPECT_TRUE(client.actions.silent.empty());
}

TEST_F(ConnectTest, SilentPeer_ConnectEndsUnreachableAfterTheProtocolsTime) {
  Connect();
  const TimePoint start = client.now;
  for (int i = 0; i < 2000 && client.actions.events.empty(); ++i) client.Advance(Milliseconds(50));
  const auto event = client.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kUnreachable);
  EXPECT_EQ(event->status, -ETIMEDOUT);
  EXPECT_GE((client.now - start).ns, Milliseconds(4608 * 16).ns);
  EXPECT_LE((client.now - start).ns, Milliseconds(4608 * 16 + 100).ns);
  // A REQ, resends at 0.2, 0.6, 1.4, 3.0, 6.2 s and every 4.608 s from there, finally a REJ for
  // the peer.
  const size_t requests = client.actions.mads.size() - 1;
  EXPECT_GE(requests, 19u);
  EXPECT_LE(requests, 21u);
  wire::CmMad last;
  ASSERT_EQ(wire::DecodeMad(client.actions.mads.back().bytes, last), DropReason::kNone);
  EXPECT_EQ(std::get<wire::CmRej>(last.body).reason, wire::RejectReason::kTimeout);
  EXPECT_EQ(client.engine().connection_count(), 0u);
}

TEST_F(ConnectTest, LostRequest_IsSentAgainAfter200ms) {
  Connect();
  const SendMad first = client.actions.mads[0];
  client.actions.mads.clear();
  EXPECT_EQ(client.engine().deadline(), client.now + Milliseconds(200));
  client.Advance(Milliseconds(200));
  ASSERT_EQ(client.actions.mads.size(), 1u);
  EXPECT_EQ(client.actions.mads[0].bytes, first.bytes);
  EXPECT_EQ(client.engine().deadline(), client.now + Milliseconds(400));
}

TEST_F(ConnectTest, RepeatedRequestWhileTheProgramThinks_AsksForTime) {
  Connect();
  const SendMad req = client.actions.mads[0];
  Exchange(client, server);
  server.Take(req);
  ASSERT_EQ(server.actions.events.size(), 1u);
  ASSERT_EQ(server.actions.mads.size(), 1u);
  client.Take(server.actions.mads[0]);
  EXPECT_EQ(client.StateOf(active), "REQ sent, peer asked for time");
  EXPECT_EQ(client.engine().deadline(), client.now + Milliseconds(65536 + 4608));
  client.Take(server.actions.mads[0]);
  EXPECT_EQ(client.engine().deadline(), client.now + Milliseconds(65536 + 4608));
}

TEST_F(ConnectTest, RepeatedRequestAfterReply_GetsTheReplyAgain) {
  Connect();
  const SendMad req = client.actions.mads[0];
  Exchange(client, server);
  passive = server.NextEvent()->id;
  ASSERT_EQ(server.Do(passive, Accept{Host::Params(0x222)}), 0);
  const SendMad rep = server.actions.mads[0];
  server.actions.mads.clear();
  server.Take(req);
  ASSERT_EQ(server.actions.mads.size(), 1u);
  EXPECT_EQ(server.actions.mads[0].bytes, rep.bytes);
}

TEST_F(ConnectTest, LostReadyToUse_IsSentAgainForARepeatedReply) {
  Respond();
  ASSERT_EQ(client.Do(active, Establish{}), 0);
  client.actions.mads.clear();
  server.Advance(Milliseconds(200));
  Exchange(client, server);
  EXPECT_EQ(server.NextEvent()->type, EventType::kEstablished);
}

TEST_F(ConnectTest, RepeatedReplyWhileTheProgramReadiesItsQp_AsksForTime) {
  Respond();
  server.Advance(Milliseconds(200));
  Exchange(client, server);
  EXPECT_FALSE(client.NextEvent().has_value());
  EXPECT_EQ(server.StateOf(passive), "REP sent, peer asked for time");
}

TEST_F(ConnectTest, ReadyToUseAfterAnMra_IsRepeatedAFewTimes) {
  Respond();
  server.Advance(Milliseconds(200));
  Exchange(client, server);
  ASSERT_EQ(client.Do(active, Establish{}), 0);
  int sent = 0;
  for (int i = 0; i < 100; ++i) {
    while (client.Next<wire::CmRtu>().has_value()) ++sent;
    client.Advance(Milliseconds(100));
  }
  EXPECT_EQ(sent, 4);
  EXPECT_EQ(client.StateOf(active), "established");
  EXPECT_EQ(client.engine().deadline(), kNever);
}

TEST_F(ConnectTest, DestroyWhileDisconnecting_ShortensTheWait) {
  CmConfig config;
  config.orphan_give_up = Seconds(1);
  Host hasty(V4(1), 9, config);
  listener = server.Listening(kPort);
  active = hasty.Routed(server.address, kPort);
  ASSERT_EQ(hasty.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  Exchange(hasty, server);
  ASSERT_EQ(server.Do(server.NextEvent()->id, Accept{Host::Params(0x222)}), 0);
  Exchange(hasty, server);
  ASSERT_EQ(hasty.Do(active, Establish{}), 0);
  ASSERT_EQ(hasty.Do(active, Disconnect{}), 0);
  for (int i = 0; i < 205; ++i) hasty.Advance(Milliseconds(100));
  ASSERT_EQ(hasty.StateOf(active), "DREQ sent");
  ASSERT_EQ(hasty.Do(active, DestroyId{}), 0);
  for (int i = 0; i < 16; ++i) hasty.Advance(Milliseconds(100));
  EXPECT_EQ(hasty.engine().connection_count(), 0u);
}

TEST_F(ConnectTest, CommEstablished_StandsInForTheReadyToUse) {
  Respond();
  ASSERT_EQ(server.Do(passive, CommEstablished{}), 0);
  EXPECT_EQ(server.NextEvent()->type, EventType::kEstablished);
  ASSERT_EQ(client.Do(active, Establish{}), 0);
  Exchange(client, server);
  EXPECT_FALSE(server.NextEvent().has_value());
}

TEST_F(ConnectTest, DisconnectBeforeTheReadyToUse_EndsThePassiveSide) {
  Respond();
  ASSERT_EQ(client.Do(active, Establish{}), 0);
  client.actions.mads.clear();
  ASSERT_EQ(client.Do(active, Disconnect{}), 0);
  Exchange(client, server);
  EXPECT_EQ(server.NextEvent()->type, EventType::kDisconnected);
  EXPECT_EQ(client.NextEvent()->type, EventType::kDisconnected);
}

}  // namespace
}  // namespace rocegw::cm
