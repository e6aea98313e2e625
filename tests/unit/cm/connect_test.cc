// SPDX-License-Identifier: Apache-2.0
// RC connections between two engines, and between an engine and hand-made messages: establishing,
// refusing, ending.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

using metrics::DropReason;
using testing::Exchange;
using testing::Host;
using testing::kOtherProgram;
using testing::kPort;
using testing::kProgram;
using testing::TextOf;
using testing::V4;

class ConnectTest : public ::testing::Test {
 protected:
  // Client has sent its REQ; the server has not received it.
  void Connect() {
    listener = server.Listening(kPort);
    active = client.Routed(server.address, kPort);
    ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111, "hello")}), 0);
  }
  // The server's program has the request.
  void Request() {
    Connect();
    Exchange(client, server);
    const auto event = server.NextEvent();
    ASSERT_TRUE(event.has_value());
    ASSERT_EQ(event->type, EventType::kConnectRequest);
    passive = event->id;
  }
  // The client has the REP.
  void Respond() {
    Request();
    ASSERT_EQ(server.Do(passive, Accept{Host::Params(0x222, "welcome")}), 0);
    Exchange(client, server);
    response = client.NextEvent();
    ASSERT_TRUE(response.has_value());
    ASSERT_EQ(response->type, EventType::kConnectResponse);
  }
  void Established() {
    Respond();
    ASSERT_EQ(client.Do(active, Establish{}), 0);
    Exchange(client, server);
    const auto event = server.NextEvent();
    ASSERT_TRUE(event.has_value());
    ASSERT_EQ(event->type, EventType::kEstablished);
    ASSERT_EQ(client.StateOf(active), "established");
    ASSERT_EQ(server.StateOf(passive), "established");
  }
  void Together(Duration by) {
    client.Advance(by);
    server.Advance(by);
  }

  Host client{V4(1), 1};
  Host server{V4(2), 2};
  CmHandle listener, active, passive;
  std::optional<CmEvent> response;
};

TEST_F(ConnectTest, Request_IsWhatLinuxWouldSend) {
  client.SetMtu(1500);
  Connect();
  ASSERT_EQ(client.actions.mads.size(), 1u);
  const SendMad sent = client.actions.mads[0];
  EXPECT_EQ(sent.path.source, V4(1));
  EXPECT_EQ(sent.path.destination, V4(2));
  EXPECT_EQ(sent.destination, kGsiQpn);
  const auto mad = client.NextMad();
  ASSERT_TRUE(mad.has_value());
  EXPECT_EQ(mad->attribute_modifier, 0u);
  const auto& req = std::get<wire::CmReq>(mad->body);
  EXPECT_NE(req.local_comm_id, 0u);
  EXPECT_EQ(req.vendor_id, 0u);
  EXPECT_EQ(req.service_id, 0x0000000001061d2fu);
  EXPECT_EQ(req.local_ca_guid, client.engine().CaGuidFor(server.address));
  EXPECT_EQ(req.local_qpn, Qpn{0x111});
  EXPECT_EQ(req.responder_resources, 4);
  EXPECT_EQ(req.initiator_depth, 2);
  EXPECT_EQ(req.local_response_timeout, 20);
  EXPECT_EQ(req.remote_response_timeout, 20);
  EXPECT_EQ(req.max_cm_retries, 15);
  EXPECT_EQ(req.retry_count, 7);
  EXPECT_EQ(req.rnr_retry_count, 6);
  EXPECT_EQ(req.pkey, 0xFFFF);
  EXPECT_EQ(req.path_mtu, 3);
  EXPECT_EQ(req.primary.local_lid, 0xFFFF);
  EXPECT_EQ(req.primary.remote_lid, 0xFFFF);
  EXPECT_EQ(req.primary.local_gid, V4(1));
  EXPECT_EQ(req.primary.remote_gid, V4(2));
  EXPECT_EQ(req.primary.hop_limit, 64);
  EXPECT_FALSE(req.primary.subnet_local);
  EXPECT_EQ(req.primary.local_ack_timeout, 17);
  EXPECT_EQ(req.alternate, wire::CmPath{});
  wire::IpCmHeader header;
  ASSERT_TRUE(wire::DecodeIpCm(std::span(req.private_data).first<36>(), header));
  EXPECT_EQ(header.source, V4(1));
  EXPECT_EQ(header.destination, V4(2));
  EXPECT_GE(header.source_port, 32768);
  EXPECT_EQ(req.primary.flow_label, (header.source_port * 31u + kPort) & 0xFFFFF);
  EXPECT_EQ(req.private_data[36], 'h');
  EXPECT_EQ(req.private_data[41], 0);
}

TEST_F(ConnectTest, RequestEvent_IsFromTheReceiversPointOfView) {
  Connect();
  Exchange(client, server);
  const auto event = server.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kConnectRequest);
  EXPECT_EQ(event->owner, kProgram);
  EXPECT_EQ(event->listener, listener);
  EXPECT_NE(event->id, listener);
  EXPECT_NE(event->id.value & kEngineHandleBit, 0u);
  EXPECT_EQ(event->param.qpn, Qpn{0x111});
  EXPECT_EQ(event->param.responder_resources, 2);
  EXPECT_EQ(event->param.initiator_depth, 4);
  EXPECT_EQ(event->param.private_data.length, kMaxConnectData);
  EXPECT_EQ(TextOf(event->param.private_data), "hello");
  EXPECT_EQ(event->info.local.address, V4(2));
  EXPECT_EQ(event->info.local.port, kPort);
  EXPECT_EQ(event->info.remote.address, V4(1));
  EXPECT_EQ(event->info.destination_gid, V4(1));
  EXPECT_EQ(event->info.source_gid_index, 3);
  EXPECT_EQ(event->info.path_mtu, 3);
  EXPECT_EQ(event->info.device, 0);
}

TEST_F(ConnectTest, Reply_SwapsDepthsAndCarriesTheWholeArea) {
  Respond();
  EXPECT_EQ(response->param.qpn, Qpn{0x222});
  EXPECT_EQ(response->param.responder_resources, 2);
  EXPECT_EQ(response->param.initiator_depth, 4);
  EXPECT_EQ(response->param.private_data.length, kMaxAcceptData);
  EXPECT_EQ(TextOf(response->param.private_data), "welcome");
}

TEST_F(ConnectTest, FourWays_LeaveBothEstablished) { Established(); }

TEST_F(ConnectTest, Attributes_OfBothSides_FitEachOther) {
  Established();
  QpAttributes rtr[2], rts[2], init[2];
  ASSERT_EQ(client.engine().InitQpAttributes(kProgram, active, QpState::kInit, init[0]), 0);
  ASSERT_EQ(server.engine().InitQpAttributes(kProgram, passive, QpState::kInit, init[1]), 0);
  ASSERT_EQ(client.engine().InitQpAttributes(kProgram, active, QpState::kRtr, rtr[0]), 0);
  ASSERT_EQ(server.engine().InitQpAttributes(kProgram, passive, QpState::kRtr, rtr[1]), 0);
  ASSERT_EQ(client.engine().InitQpAttributes(kProgram, active, QpState::kRts, rts[0]), 0);
  ASSERT_EQ(server.engine().InitQpAttributes(kProgram, passive, QpState::kRts, rts[1]), 0);
  EXPECT_EQ(init[0].mask, kQpState | kQpAccessFlags | kQpPkeyIndex | kQpPort);
  EXPECT_EQ(init[0].access, kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic);
  EXPECT_EQ(rtr[0].mask, kQpState | kQpAv | kQpPathMtu | kQpDestQpn | kQpRqPsn |
                             kQpMaxDestRdAtomic | kQpMinRnrTimer);
  EXPECT_EQ(rts[0].mask,
            kQpState | kQpSqPsn | kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpMaxRdAtomic);
  for (int i = 0; i < 2; ++i) {
    const QpAttributes &own = rtr[i], &peer = rtr[1 - i];
    EXPECT_EQ(own.rq_psn, rts[1 - i].sq_psn);
    EXPECT_EQ(own.dest_qpn, Qpn{i == 0 ? 0x222u : 0x111u});
    EXPECT_EQ(own.path_mtu, peer.path_mtu);
    EXPECT_EQ(own.flow_label, peer.flow_label);
    EXPECT_EQ(own.max_dest_rd_atomic, rts[1 - i].max_rd_atomic);
    EXPECT_EQ(own.min_rnr_timer, 0);
    EXPECT_EQ(own.source_gid_index, 3);
    EXPECT_EQ(rts[i].timeout, 17);
    EXPECT_EQ(rts[i].retry_count, 7);
    EXPECT_EQ(rts[i].rnr_retry, 6);
  }
  EXPECT_EQ(rtr[0].destination_gid, V4(2));
  EXPECT_EQ(rtr[1].destination_gid, V4(1));
  EXPECT_EQ(rtr[0].max_dest_rd_atomic, 2);
  EXPECT_EQ(rts[0].max_rd_atomic, 4);
}

TEST_F(ConnectTest, Attributes_BeforeTheReply_AreInitOnly) {
  listener = server.Listening(kPort);
  active = client.Routed(server.address, kPort);
  QpAttributes attributes;
  ASSERT_EQ(client.engine().InitQpAttributes(kProgram, active, QpState::kInit, attributes), 0);
  EXPECT_EQ(attributes.access, 0u);
  EXPECT_EQ(client.engine().InitQpAttributes(kProgram, active, QpState::kRtr, attributes), EINVAL);
  const CmHandle unbound = client.Create();
  EXPECT_EQ(client.engine().InitQpAttributes(kProgram, unbound, QpState::kInit, attributes),
            EINVAL);
  EXPECT_EQ(client.engine().InitQpAttributes(kOtherProgram, active, QpState::kInit, attributes),
            EINVAL);
}

TEST_F(ConnectTest, Depths_AboveTheDevices_AreCapped) {
  listener = server.Listening(kPort);
  active = client.Routed(server.address, kPort);
  ConnectParams param = Host::Params(0x111);
  param.responder_resources = 128;
  param.initiator_depth = 0xFF;
  ASSERT_EQ(client.Do(active, cm::Connect{param}), 0);
  const auto req = client.Next<wire::CmReq>();
  ASSERT_TRUE(req.has_value());
  EXPECT_EQ(req->responder_resources, 16);
  EXPECT_EQ(req->initiator_depth, 16);
}

TEST_F(ConnectTest, AcceptWithMaximumDepths_TakesWhatWasOffered) {
  Request();
  ConnectParams param = Host::Params(0x222);
  param.responder_resources = kMaxDepth;
  param.initiator_depth = kMaxDepth;
  ASSERT_EQ(server.Do(passive, Accept{param}), 0);
  const auto rep = server.Next<wire::CmRep>();
  ASSERT_TRUE(rep.has_value());
  EXPECT_EQ(rep->responder_resources, 2);
  EXPECT_EQ(rep->initiator_depth, 4);
}

TEST_F(ConnectTest, Reject_ReachesTheClientWithReasonAndData) {
  Request();
  Reject reject;
  reject.private_data = testing::Text("no");
  ASSERT_EQ(server.Do(passive, reject), 0);
  Exchange(client, server);
  const auto event = client.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kRejected);
  EXPECT_EQ(event->status, 28);
  EXPECT_EQ(event->param.private_data.length, kMaxRejectData);
  EXPECT_EQ(TextOf(event->param.private_data), "no");
  EXPECT_EQ(client.engine().connection_count(), 0u);
  Together(Seconds(30));
  EXPECT_EQ(server.engine().connection_count(), 0u);
}

TEST_F(ConnectTest, RepeatedRequestAfterReject_IsRejectedAgainWithoutTheProgram) {
  Connect();
  const SendMad req = client.actions.mads[0];
  Exchange(client, server);
  passive = server.NextEvent()->id;
  ASSERT_EQ(server.Do(passive, Reject{}), 0);
  server.actions.mads.clear();
  EXPECT_EQ(server.Take(req), DropReason::kNone);
  EXPECT_FALSE(server.NextEvent().has_value());
  const auto rej = server.Next<wire::CmRej>();
  ASSERT_TRUE(rej.has_value());
  EXPECT_EQ(rej->reason, wire::RejectReason::kConsumer);
}

TEST_F(ConnectTest, NobodyListens_RejectsWithInvalidServiceId) {
  active = client.Routed(server.address, kPort);
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  Exchange(client, server);
  Together(Milliseconds(100));
  Exchange(client, server);
  const auto event = client.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kRejected);
  EXPECT_EQ(event->status, 8);
  EXPECT_EQ(server.engine().connection_count(), 0u);
}

TEST_F(ConnectTest, RefusedAtOnceByWhoDoesNotListenYet_AsksAgainUntilTheGraceIsOver) {
  active = client.Routed(server.address, kPort);
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  wire::CmRej rej;
  rej.reason = wire::RejectReason::kInvalidServiceId;
  uint32_t first_id = 0;
  int requests = 0;
  // As Linux does: refused requests are not remembered.
  for (Duration waited{}; waited < Milliseconds(100); waited = waited + Milliseconds(5)) {
    const auto req = client.Next<wire::CmReq>();
    ASSERT_TRUE(req.has_value()) << requests;
    if (++requests == 1) first_id = req->local_comm_id;
    EXPECT_EQ(req->local_comm_id, first_id);
    EXPECT_FALSE(client.NextEvent().has_value());
    rej.remote_comm_id = req->local_comm_id;
    client.Take({.body = rej}, server.address);
    client.Advance(Milliseconds(5));
  }
  EXPECT_EQ(requests, 20);
  const auto event = client.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kRejected);
  EXPECT_EQ(event->status, 8);
  EXPECT_EQ(client.engine().counters().refused, 1u);
  EXPECT_EQ(client.engine().connection_count(), 0u);
  EXPECT_FALSE(client.NextMad().has_value());
}

TEST_F(ConnectTest, RefusedOnceByWhoListensAMomentLater_Connects) {
  active = client.Routed(server.address, kPort);
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  wire::CmRej rej;
  rej.reason = wire::RejectReason::kInvalidServiceId;
  rej.remote_comm_id = client.Next<wire::CmReq>()->local_comm_id;
  client.Take({.body = rej}, server.address);
  server.Listening(kPort);
  Together(Milliseconds(5));
  Exchange(client, server);
  const auto event = server.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kConnectRequest);
}

TEST_F(ConnectTest, RefusedForAnotherReason_IsFinalAtOnce) {
  active = client.Routed(server.address, kPort);
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  wire::CmRej rej;
  rej.reason = wire::RejectReason::kConsumer;
  rej.remote_comm_id = client.Next<wire::CmReq>()->local_comm_id;
  client.Take({.body = rej}, server.address);
  EXPECT_EQ(client.NextEvent()->type, EventType::kRejected);
}

TEST_F(ConnectTest, ListenerOnAnotherKindOfQp_Rejects) {
  server.Listening(kPort, 10, PortSpace::kTcp, QpType::kUc);
  active = client.Routed(server.address, kPort);
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  Exchange(client, server);
  EXPECT_EQ(client.NextEvent()->status, 28);
}

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
