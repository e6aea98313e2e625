// SPDX-License-Identifier: Apache-2.0
// RC connections between two engines, and between an engine and hand-made messages: what a
// connection is made of, and who refuses it.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/cm/connect_fixture.h"

namespace rocegw::cm {
namespace {

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

}  // namespace
}  // namespace rocegw::cm
