// SPDX-License-Identifier: Apache-2.0
// REQs from strangers, valid and invalid, and the answers of a host with a listening program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm::request {
namespace {

using metrics::DropReason;
using testing::Host;
using testing::kPort;
using testing::V4;
using wire::CmMad;
using wire::CmReq;
using wire::RejectReason;

const wire::Gid kPeer = V4(9);

// Returns a REQ as rxe with Linux' rdma_cm sends it.
CmMad PeerRequest(uint32_t comm_id = 0x5000, uint32_t qpn = 0x500) {
  CmReq req;
  req.local_comm_id = comm_id;
  req.service_id = wire::IpServiceId(0x0106, kPort);
  req.local_ca_guid = 0x0200000000000009;
  req.local_qpn = Qpn{qpn};
  req.responder_resources = 128;
  req.initiator_depth = 1;
  req.remote_response_timeout = 20;
  req.local_response_timeout = 20;
  req.starting_psn = Psn(0x123456);
  req.retry_count = 7;
  req.rnr_retry_count = 7;
  req.path_mtu = 3;
  req.max_cm_retries = 15;
  req.primary.local_lid = 0xFFFF;
  req.primary.remote_lid = 0xFFFF;
  req.primary.local_gid = kPeer;
  req.primary.remote_gid = V4(2);
  req.primary.flow_label = 0x54321;
  req.primary.traffic_class = 0x68;
  req.primary.hop_limit = 64;
  req.primary.local_ack_timeout = 18;
  wire::IpCmHeader header;
  header.source_port = 40000;
  header.source = kPeer;
  header.destination = V4(2);
  wire::EncodeIpCm(header, std::span(req.private_data).first<wire::kIpCmHeaderLength>());
  return {0x1234567890, 0, req};
}
CmReq& Body(CmMad& mad) { return std::get<CmReq>(mad.body); }

void SetHeader(CmMad& mad, const std::function<void(wire::IpCmHeader&)>& change) {
  auto area = std::span(Body(mad).private_data).first<wire::kIpCmHeaderLength>();
  wire::IpCmHeader header;
  ASSERT_TRUE(wire::DecodeIpCm(area, header));
  change(header);
  wire::EncodeIpCm(header, area);
}

class RequestTest : public ::testing::Test {
 protected:
  Host server{V4(2), 2};
};

TEST_F(RequestTest, GoodRequest_ReachesTheListener_WithItsPath) {
  const CmHandle listener = server.Listening(kPort);
  ASSERT_EQ(server.Take(PeerRequest(), kPeer), DropReason::kNone);
  const auto event = server.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->listener, listener);
  EXPECT_EQ(event->info.flow_label, 0x54321u);
  EXPECT_EQ(event->info.traffic_class, 0x68);
  EXPECT_EQ(event->param.initiator_depth, 16);
  EXPECT_EQ(event->param.responder_resources, 1);
  QpAttributes rtr, rts;
  ASSERT_EQ(server.engine().InitQpAttributes(testing::kProgram, event->id, QpState::kRtr, rtr), 0);
  ASSERT_EQ(server.engine().InitQpAttributes(testing::kProgram, event->id, QpState::kRts, rts), 0);
  EXPECT_EQ(rtr.destination_gid, kPeer);
  EXPECT_EQ(rtr.traffic_class, 0x68);
  EXPECT_EQ(rtr.flow_label, 0x54321u);
  EXPECT_EQ(rts.sq_psn, Psn(0x123456));
  EXPECT_EQ(rts.timeout, 18);
}

TEST_F(RequestTest, Reply_EchoesTransactionAndVendorWithoutOptions) {
  server.Listening(kPort);
  CmMad mad = PeerRequest();
  Body(mad).vendor_id = 0x15B3;
  mad.attribute_modifier = 0x12345;
  ASSERT_EQ(server.Take(mad, kPeer), DropReason::kNone);
  const auto event = server.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->param.ece, (Ece{0x15B3, 0x12345}));
  ASSERT_EQ(server.Do(event->id, Accept{Host::Params(0x222)}), 0);
  const auto reply = server.NextMad();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->transaction_id, 0x1234567890u);
  EXPECT_EQ(reply->attribute_modifier, 0u);
  const auto& rep = std::get<wire::CmRep>(reply->body);
  EXPECT_EQ(rep.vendor_id, 0x15B3u);
  EXPECT_EQ(rep.remote_comm_id, 0x5000u);
  EXPECT_EQ(rep.target_ack_delay, 15);
  EXPECT_EQ(rep.failover_accepted, 0);
  const auto rows = server.engine().Connections();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].ece.received, (Ece{0x15B3, 0x12345}));
  EXPECT_EQ(rows[0].ece.sent, (Ece{0x15B3, 0}));
}

struct Fault {
  const char* name;
  std::function<void(CmMad&)> change;
  RejectReason reason;
};

TEST_F(RequestTest, FaultyRequests_AreRejected_WithTheirReason) {
  const Fault faults[] = {
      {"RD transport", [](CmMad& m) { Body(m).transport = wire::CmTransport::kRd; },
       RejectReason::kInvalidTransport},
      {"an extended transport that is not XRC",
       [](CmMad& m) { Body(m).transport = wire::CmTransport::kExtended; },
       RejectReason::kInvalidTransport},
      {"XRC for an RC listener",
       [](CmMad& m) {
         Body(m).transport = wire::CmTransport::kExtended;
         Body(m).extended_transport = wire::kXrcTransport;
       },
       RejectReason::kConsumer},
      {"UC for an RC listener", [](CmMad& m) { Body(m).transport = wire::CmTransport::kUc; },
       RejectReason::kConsumer},
      {"alternate path", [](CmMad& m) { Body(m).alternate.local_lid = 1; },
       RejectReason::kInvalidAlternateGid},
      {"partition", [](CmMad& m) { Body(m).pkey = 0x8001; }, RejectReason::kInvalidGid},
      {"somebody else's GID as source", [](CmMad& m) { Body(m).primary.local_gid = V4(10); },
       RejectReason::kInvalidGid},
      {"another destination GID", [](CmMad& m) { Body(m).primary.remote_gid = V4(3); },
       RejectReason::kInvalidGid},
      {"no IP service", [](CmMad& m) { Body(m).service_id |= 1ull << 60; },
       RejectReason::kInvalidServiceId},
      {"MTU above the netdev's", [](CmMad& m) { Body(m).path_mtu = 4; }, RejectReason::kInvalidMtu},
      {"MTU 0", [](CmMad& m) { Body(m).path_mtu = 0; }, RejectReason::kInvalidMtu},
      {"MTU 9", [](CmMad& m) { Body(m).path_mtu = 9; }, RejectReason::kInvalidMtu},
      {"address header version", [](CmMad& m) { Body(m).private_data[0] = 0x10; },
       RejectReason::kConsumer},
      {"IP version", [](CmMad& m) { Body(m).private_data[1] = 0x50; }, RejectReason::kConsumer},
      {"multicast source",
       [](CmMad& m) {
         SetHeader(m, [](wire::IpCmHeader& h) { h.source = wire::Gid::FromV4(0xE0000001); });
       },
       RejectReason::kConsumer},
      {"broadcast source",
       [](CmMad& m) {
         SetHeader(m, [](wire::IpCmHeader& h) { h.source = wire::Gid::FromV4(0xFFFFFFFF); });
       },
       RejectReason::kConsumer},
      {"zero source",
       [](CmMad& m) { SetHeader(m, [](wire::IpCmHeader& h) { h.source = wire::Gid::FromV4(0); }); },
       RejectReason::kConsumer},
      {"loopback from outside",
       [](CmMad& m) {
         SetHeader(m, [](wire::IpCmHeader& h) { h.destination = wire::Gid::FromV4(0x7F000001); });
       },
       RejectReason::kConsumer},
      {"another destination address",
       [](CmMad& m) { SetHeader(m, [](wire::IpCmHeader& h) { h.destination = V4(3); }); },
       RejectReason::kConsumer},
  };
  server.Listening(kPort);
  for (const Fault& fault : faults) {
    CmMad mad = PeerRequest();
    fault.change(mad);
    EXPECT_EQ(server.Take(mad, kPeer), DropReason::kNone) << fault.name;
    const auto reply = server.NextMad();
    ASSERT_TRUE(reply.has_value()) << fault.name;
    EXPECT_EQ(reply->transaction_id, 0x1234567890u);
    const auto* rej = std::get_if<wire::CmRej>(&reply->body);
    ASSERT_NE(rej, nullptr) << fault.name;
    EXPECT_EQ(rej->reason, fault.reason) << fault.name;
    EXPECT_EQ(rej->remote_comm_id, 0x5000u) << fault.name;
    EXPECT_EQ(rej->local_comm_id, 0u) << fault.name;
    EXPECT_EQ(rej->answered, wire::CmAnswered::kReq) << fault.name;
    EXPECT_FALSE(server.NextEvent().has_value()) << fault.name;
    EXPECT_EQ(server.engine().connection_count(), 0u) << fault.name;
  }
}

TEST_F(RequestTest, NobodyListens_RejectedAfterTheGrace) {
  server.Listening(kPort);
  for (const uint64_t service :
       {wire::IpServiceId(0x0106, kPort + 1), wire::IpServiceId(0x013F, kPort)}) {
    CmMad mad = PeerRequest();
    Body(mad).service_id = service;
    EXPECT_EQ(server.Take(mad, kPeer), DropReason::kNone);
    // The same again, as from a peer that received nothing: one answer.
    EXPECT_EQ(server.Take(mad, kPeer), DropReason::kNone);
    EXPECT_EQ(server.engine().deadline(), server.now + Milliseconds(100));
    server.Advance(Milliseconds(99));
    EXPECT_FALSE(server.NextMad().has_value());
    server.Advance(Milliseconds(1));
    const auto rej = server.Next<wire::CmRej>();
    ASSERT_TRUE(rej.has_value());
    EXPECT_EQ(rej->reason, RejectReason::kInvalidServiceId);
    EXPECT_EQ(rej->remote_comm_id, 0x5000u);
    EXPECT_FALSE(server.NextMad().has_value());
    EXPECT_FALSE(server.NextEvent().has_value());
    EXPECT_EQ(server.engine().deadline(), kNever);
  }
}

TEST_F(RequestTest, ListenerComesWithinTheGrace_GetsTheRequest) {
  server.Take(PeerRequest(0x5000, 0x500), kPeer);
  server.Take(PeerRequest(0x5001, 0x501), kPeer);
  CmMad elsewhere = PeerRequest(0x5002, 0x502);
  Body(elsewhere).service_id = wire::IpServiceId(0x0106, kPort + 1);
  server.Take(elsewhere, kPeer);
  server.Advance(Milliseconds(50));
  server.Listening(kPort);
  for (const uint32_t qpn : {0x500u, 0x501u}) {
    const auto event = server.NextEvent();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, EventType::kConnectRequest);
    EXPECT_EQ(event->param.qpn.value, qpn);
  }
  EXPECT_FALSE(server.NextEvent().has_value());
  EXPECT_FALSE(server.NextMad().has_value());
  server.Advance(Milliseconds(50));
  EXPECT_EQ(server.Next<wire::CmRej>()->remote_comm_id, 0x5002u);
}

TEST_F(RequestTest, TooManyEarlyRequests_RejectedAtOnce) {
  for (uint32_t i = 0; i < 256; ++i) server.Take(PeerRequest(0x5000 + i, 0x500 + i), kPeer);
  EXPECT_FALSE(server.NextMad().has_value());
  server.Take(PeerRequest(0x6000, 0x600), kPeer);
  EXPECT_EQ(server.Next<wire::CmRej>()->remote_comm_id, 0x6000u);
}

TEST_F(RequestTest, InvalidGidReject_NamesAUsableOne) {
  server.Listening(kPort);
  CmMad mad = PeerRequest();
  Body(mad).primary.remote_gid = V4(3);
  server.Take(mad, kPeer);
  const auto rej = server.Next<wire::CmRej>();
  ASSERT_TRUE(rej.has_value());
  EXPECT_EQ(rej->info_length, 16);
  EXPECT_TRUE(
      std::equal(server.address.bytes.begin(), server.address.bytes.end(), rej->info.begin()));
}

TEST_F(RequestTest, ReservedQpns_AreMalformed) {
  server.Listening(kPort);
  for (const uint32_t qpn : {0u, 1u, 0xFFFFFFu}) {
    EXPECT_EQ(server.Take(PeerRequest(0x5000, qpn), kPeer), DropReason::k_mad_malformed);
  }
  EXPECT_TRUE(server.actions.mads.empty());
}

TEST_F(RequestTest, FullBacklog_IsSilentUntilTheProgramFetches) {
  server.Listening(kPort, 2);
  EXPECT_EQ(server.Take(PeerRequest(1, 0x501), kPeer), DropReason::kNone);
  EXPECT_EQ(server.Take(PeerRequest(2, 0x502), kPeer), DropReason::kNone);
  EXPECT_EQ(server.Take(PeerRequest(3, 0x503), kPeer), DropReason::k_cm_backlog);
  EXPECT_TRUE(server.actions.mads.empty());
  const CmHandle first = server.NextEvent()->id;
  ASSERT_EQ(server.Do(first, RequestFetched{}), 0);
  EXPECT_EQ(server.Take(PeerRequest(3, 0x503), kPeer), DropReason::kNone);
  EXPECT_EQ(server.Take(PeerRequest(4, 0x504), kPeer), DropReason::k_cm_backlog);
  // Fetching once suffices, whatever follows.
  ASSERT_EQ(server.Do(first, Accept{Host::Params(0x222)}), 0);
  EXPECT_EQ(server.Take(PeerRequest(4, 0x504), kPeer), DropReason::k_cm_backlog);
}

TEST_F(RequestTest, AnsweringWithoutFetching_FreesTheBacklogToo) {
  server.Listening(kPort, 1);
  server.Take(PeerRequest(1, 0x501), kPeer);
  ASSERT_EQ(server.Do(server.NextEvent()->id, Accept{Host::Params(0x222)}), 0);
  EXPECT_EQ(server.Take(PeerRequest(2, 0x502), kPeer), DropReason::kNone);
  ASSERT_EQ(server.Do(server.NextEvent()->id, Reject{}), 0);
  EXPECT_EQ(server.Take(PeerRequest(3, 0x503), kPeer), DropReason::kNone);
  ASSERT_EQ(server.Do(server.NextEvent()->id, DestroyId{}), 0);
  EXPECT_EQ(server.Take(PeerRequest(4, 0x504), kPeer), DropReason::kNone);
}

TEST_F(RequestTest, ListenerDies_TakesOnlyUnfetchedRequestsAlong) {
  const CmHandle listener = server.Listening(kPort);
  server.Take(PeerRequest(1, 0x501), kPeer);
  server.Take(PeerRequest(2, 0x502), kPeer);
  const CmHandle first = server.NextEvent()->id;
  const CmHandle second = server.NextEvent()->id;
  ASSERT_EQ(server.Do(first, RequestFetched{}), 0);
  ASSERT_EQ(server.Do(listener, DestroyId{}), 0);
  const auto rej = server.Next<wire::CmRej>();
  ASSERT_TRUE(rej.has_value());
  EXPECT_EQ(rej->remote_comm_id, 2u);
  EXPECT_EQ(server.Do(first, Accept{Host::Params(0x222)}), 0);
  EXPECT_EQ(server.Do(second, Accept{Host::Params(0x223)}), EINVAL);
}

TEST_F(RequestTest, RequestInTimewait_IsStale) {
  server.Listening(kPort);
  server.Take(PeerRequest(), kPeer);
  const CmHandle id = server.NextEvent()->id;
  ASSERT_EQ(server.Do(id, Accept{Host::Params(0x222)}), 0);
  const auto rep = server.Next<wire::CmRep>();
  wire::CmDreq dreq;
  dreq.local_comm_id = 0x5000;
  dreq.remote_comm_id = rep->local_comm_id;
  dreq.remote_qpn = Qpn{0x222};
  EXPECT_EQ(server.Take(CmMad{1, 0, dreq}, kPeer), DropReason::kNone);
  ASSERT_TRUE(server.Next<wire::CmDrep>().has_value());
  server.Take(PeerRequest(), kPeer);
  EXPECT_EQ(server.Next<wire::CmRej>()->reason, RejectReason::kStaleConnection);
  server.Take(PeerRequest(0x5001), kPeer);
  EXPECT_EQ(server.Next<wire::CmRej>()->reason, RejectReason::kStaleConnection);
  server.actions.events.clear();
  server.Advance(Milliseconds(1024));
  EXPECT_EQ(server.NextEvent()->type, EventType::kTimewaitExit);
  server.Take(PeerRequest(0x5001), kPeer);
  EXPECT_EQ(server.NextEvent()->type, EventType::kConnectRequest);
}

TEST_F(RequestTest, NewRequestAfterReject_WithTheSameQpn_IsWelcome) {
  server.Listening(kPort);
  server.Take(PeerRequest(), kPeer);
  ASSERT_EQ(server.Do(server.NextEvent()->id, Reject{}), 0);
  EXPECT_EQ(server.Take(PeerRequest(0x5001), kPeer), DropReason::kNone);
  EXPECT_EQ(server.NextEvent()->type, EventType::kConnectRequest);
}

TEST_F(RequestTest, DisconnectForAnotherQp_IsIgnored) {
  server.Listening(kPort);
  server.Take(PeerRequest(), kPeer);
  ASSERT_EQ(server.Do(server.NextEvent()->id, Accept{Host::Params(0x222)}), 0);
  const auto rep = server.Next<wire::CmRep>();
  wire::CmDreq dreq;
  dreq.local_comm_id = 0x5000;
  dreq.remote_comm_id = rep->local_comm_id;
  dreq.remote_qpn = Qpn{0x223};
  EXPECT_EQ(server.Take(CmMad{1, 0, dreq}, kPeer), DropReason::k_cm_unmatched);
  EXPECT_TRUE(server.actions.mads.empty());
}

TEST_F(RequestTest, MessagesFromAnotherAddress_AreNotTheConnections) {
  server.Listening(kPort);
  server.Take(PeerRequest(), kPeer);
  const CmHandle id = server.NextEvent()->id;
  ASSERT_EQ(server.Do(id, Accept{Host::Params(0x222)}), 0);
  const auto rep = server.Next<wire::CmRep>();
  wire::CmRtu rtu;
  rtu.local_comm_id = 0x5000;
  rtu.remote_comm_id = rep->local_comm_id;
  EXPECT_EQ(server.Take(CmMad{1, 0, rtu}, V4(10)), DropReason::k_cm_unmatched);
  EXPECT_EQ(server.StateOf(id), "REP sent");
  EXPECT_EQ(server.Take(CmMad{1, 0, rtu}, kPeer), DropReason::kNone);
  EXPECT_EQ(server.StateOf(id), "established");
}

TEST_F(RequestTest, UnknownDisconnect_IsAnswered) {
  wire::CmDreq dreq;
  dreq.local_comm_id = 0x77;
  dreq.remote_comm_id = 0x88;
  EXPECT_EQ(server.Take(CmMad{0xABC, 0, dreq}, kPeer), DropReason::k_cm_unmatched);
  const auto reply = server.NextMad();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->transaction_id, 0xABCu);
  const auto& drep = std::get<wire::CmDrep>(reply->body);
  EXPECT_EQ(drep.local_comm_id, 0x88u);
  EXPECT_EQ(drep.remote_comm_id, 0x77u);
}

TEST_F(RequestTest, UnknownReply_IsRejectedWithInvalidCommId) {
  wire::CmRep rep;
  rep.local_comm_id = 0x77;
  rep.remote_comm_id = 0x88;
  EXPECT_EQ(server.Take(CmMad{1, 0, rep}, kPeer), DropReason::k_cm_unmatched);
  const auto rej = server.Next<wire::CmRej>();
  ASSERT_TRUE(rej.has_value());
  EXPECT_EQ(rej->reason, RejectReason::kInvalidCommId);
  EXPECT_EQ(rej->answered, wire::CmAnswered::kRep);
  EXPECT_EQ(rej->remote_comm_id, 0x77u);
}

TEST_F(RequestTest, OtherUnknownMessages_AreDroppedSilently) {
  const wire::CmBody bodies[] = {wire::CmMra{},  wire::CmRej{},     wire::CmRtu{},
                                 wire::CmDrep{}, wire::CmSidrRep{}, wire::CmPathMigration{}};
  for (const wire::CmBody& body : bodies) {
    EXPECT_EQ(server.Take(CmMad{1, 0, body}, kPeer), DropReason::k_cm_unmatched) << body.index();
  }
  EXPECT_TRUE(server.actions.mads.empty());
}

TEST_F(RequestTest, StrangerInAFlood_IsAnsweredWithinARate_AndOthersBesideIt) {
  wire::CmDreq dreq;
  int limited = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    dreq.local_comm_id = i;
    if (server.Take(CmMad{1, 0, dreq}, kPeer) == DropReason::k_mad_rate) ++limited;
  }
  EXPECT_EQ(server.actions.mads.size(), 128u);
  EXPECT_EQ(limited, 2000 - 128);
  EXPECT_EQ(server.Take(CmMad{1, 0, dreq}, V4(10)), DropReason::k_cm_unmatched);
  server.now = server.now + Milliseconds(100);
  server.actions.mads.clear();
  for (uint32_t i = 0; i < 2000; ++i) server.Take(CmMad{1, 0, dreq}, kPeer);
  EXPECT_EQ(server.actions.mads.size(), 50u);
}

TEST_F(RequestTest, StrangersInAFlood_AreAnsweredWithinARate) {
  wire::CmDreq dreq;
  for (uint32_t i = 0; i < 2000; ++i) {
    dreq.local_comm_id = i;
    (void)server.Take(CmMad{1, 0, dreq}, V4(10 + i % 200));
  }
  EXPECT_EQ(server.actions.mads.size(), 512u);
}

// Returns a REQ as PeerRequest, of another peer.
CmMad RequestFrom(const wire::Gid& peer, uint32_t comm_id, uint16_t port = kPort) {
  CmMad mad = PeerRequest(comm_id, 0x500 + comm_id);
  Body(mad).local_ca_guid = peer.bytes[15];
  Body(mad).primary.local_gid = peer;
  Body(mad).service_id = wire::IpServiceId(0x0106, port);
  SetHeader(mad, [&](wire::IpCmHeader& header) { header.source = peer; });
  return mad;
}

TEST_F(RequestTest, Backlog_OneSourceFillsIt_AndOthersStillGetAPlace) {
  server.Listening(kPort, 8);
  for (uint32_t i = 1; i <= 8; ++i)
    ASSERT_EQ(server.Take(RequestFrom(V4(9), i), V4(9)), DropReason::kNone) << i;
  EXPECT_EQ(server.Take(RequestFrom(V4(9), 9), V4(9)), DropReason::k_cm_backlog);
  for (uint32_t i = 1; i <= 4; ++i)
    EXPECT_EQ(server.Take(RequestFrom(V4(10), i), V4(10)), DropReason::kNone) << i;
  EXPECT_EQ(server.Take(RequestFrom(V4(10), 5), V4(10)), DropReason::k_cm_backlog);
  EXPECT_EQ(server.Take(RequestFrom(V4(11), 1), V4(11)), DropReason::kNone);
  // Twice the backlog in all, however many sources there are.
  uint32_t taken = 13;
  for (uint8_t peer = 12; peer < 100; ++peer)
    taken += server.Take(RequestFrom(V4(peer), 1), V4(peer)) == DropReason::kNone ? 1 : 0;
  EXPECT_EQ(taken, 16u);
}

TEST_F(RequestTest, EarlyRequests_OfOneSource_MakeRoomForThoseOfAnother) {
  constexpr uint16_t kLate = kPort + 1;
  for (uint32_t i = 1; i <= 1000; ++i) (void)server.Take(RequestFrom(V4(9), i), V4(9));
  server.actions.mads.clear();
  ASSERT_EQ(server.Take(RequestFrom(V4(10), 1, kLate), V4(10)), DropReason::kNone);
  server.Listening(kLate);
  const auto event = server.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->info.destination_gid, V4(10));
}

TEST_F(RequestTest, ForeignClasses_AreToldApart) {
  wire::MadBytes bytes{};
  bytes[0] = 1;
  bytes[1] = 0x32;
  wire::RxMeta meta;
  meta.source = kPeer;
  meta.destination = server.address;
  EXPECT_EQ(server.engine().OnDatagram(bytes, meta, kGsiQpn, server.now, server.actions),
            DropReason::k_mad_unknown_class);
  bytes[1] = 7;
  EXPECT_EQ(server.engine().OnDatagram(bytes, meta, kGsiQpn, server.now, server.actions),
            DropReason::k_mad_malformed);
}

TEST_F(RequestTest, LimitOfIds_IsSilent) {
  CmConfig config;
  config.max_ids_per_owner = 4;
  Host small(V4(2), 3, config);
  small.Listening(kPort);
  for (uint32_t i = 1; i <= 3; ++i)
    EXPECT_EQ(small.Take(PeerRequest(i, 0x500 + i), kPeer), DropReason::kNone);
  EXPECT_EQ(small.Take(PeerRequest(4, 0x504), kPeer), DropReason::k_cm_backlog);
  EXPECT_TRUE(small.actions.mads.empty());
  EXPECT_EQ(small.engine().id_count(), 4u);
  EXPECT_EQ(small.engine().connection_count(), 3u);
}

TEST_F(RequestTest, HugeAckTimeout_DoesNotHoldTheQpnForHours) {
  server.Listening(kPort);
  CmMad mad = PeerRequest();
  Body(mad).primary.local_ack_timeout = 31;
  server.Take(mad, kPeer);
  const CmHandle id = server.NextEvent()->id;
  ASSERT_EQ(server.Do(id, Accept{Host::Params(0x222)}), 0);
  ASSERT_EQ(server.Do(id, CommEstablished{}), 0);
  const auto rep = server.Next<wire::CmRep>();
  wire::CmDreq dreq;
  dreq.local_comm_id = 0x5000;
  dreq.remote_comm_id = rep->local_comm_id;
  dreq.remote_qpn = Qpn{0x222};
  server.Take(CmMad{1, 0, dreq}, kPeer);
  ASSERT_EQ(server.actions.quarantined.size(), 1u);
  EXPECT_EQ(server.actions.quarantined[0].until, server.now + Seconds(60));
}

TEST_F(RequestTest, RejectDuringTheReply_EndsIt) {
  server.Listening(kPort);
  server.Take(PeerRequest(), kPeer);
  const CmHandle id = server.NextEvent()->id;
  ASSERT_EQ(server.Do(id, Accept{Host::Params(0x222)}), 0);
  const auto rep = server.Next<wire::CmRep>();
  wire::CmRej rej;
  rej.local_comm_id = 0x5000;
  rej.remote_comm_id = rep->local_comm_id;
  rej.answered = wire::CmAnswered::kRep;
  rej.reason = RejectReason::kConsumer;
  EXPECT_EQ(server.Take(CmMad{1, 0, rej}, kPeer), DropReason::kNone);
  const auto event = server.NextEvent();
  EXPECT_EQ(event->type, EventType::kRejected);
  EXPECT_EQ(event->status, 28);
  EXPECT_EQ(server.StateOf(id), "timewait");
}

}  // namespace
}  // namespace rocegw::cm::request
