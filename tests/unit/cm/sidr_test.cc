// SPDX-License-Identifier: Apache-2.0
// UD ids: SIDR between two engines, refusals, repetitions.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm::sidr {
namespace {

using metrics::DropReason;
using testing::Exchange;
using testing::Host;
using testing::kProgram;
using testing::TextOf;
using testing::V4;

constexpr uint16_t kPort = 7174;

class SidrTest : public ::testing::Test {
 protected:
  void Connect() {
    active = client.Routed(server.address, kPort, PortSpace::kUdp, QpType::kUd);
    ConnectParams param;
    param.private_data = testing::Text("who are you");
    ASSERT_EQ(client.Do(active, cm::Connect{param}), 0);
    request = client.actions.mads[0];
  }
  void Request() {
    listener = server.Listening(kPort, 10, PortSpace::kUdp, QpType::kUd);
    Connect();
    Exchange(client, server);
    const auto event = server.NextEvent();
    ASSERT_TRUE(event.has_value());
    ASSERT_EQ(event->type, EventType::kConnectRequest);
    EXPECT_EQ(event->param.private_data.length, kMaxUdConnectData);
    EXPECT_EQ(TextOf(event->param.private_data), "who are you");
    EXPECT_EQ(event->info.destination_gid, V4(1));
    passive = event->id;
  }

  Host client{V4(1), 1};
  Host server{V4(2), 2};
  CmHandle listener, active, passive;
  SendMad request;
};

TEST_F(SidrTest, Request_CarriesServiceAndAddresses) {
  Connect();
  const auto req = client.Next<wire::CmSidrReq>();
  ASSERT_TRUE(req.has_value());
  EXPECT_EQ(req->service_id, wire::IpServiceId(0x0111, kPort));
  EXPECT_EQ(req->pkey, 0xFFFF);
  wire::IpCmHeader header;
  ASSERT_TRUE(wire::DecodeIpCm(std::span(req->private_data).first<36>(), header));
  EXPECT_EQ(header.source, V4(1));
  EXPECT_EQ(header.destination, V4(2));
  EXPECT_EQ(req->private_data[36], 'w');
}

TEST_F(SidrTest, Accept_TellsQpnAndDefaultQkey) {
  Request();
  ASSERT_EQ(server.Do(passive, Accept{Host::Params(0x333, "me")}), 0);
  Exchange(client, server);
  const auto event = client.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kEstablished);
  EXPECT_EQ(event->param.qpn, Qpn{0x333});
  EXPECT_EQ(event->param.qkey, kUdpQkey);
  EXPECT_EQ(event->param.private_data.length, kMaxUdAcceptData);
  EXPECT_EQ(TextOf(event->param.private_data), "me");
  EXPECT_EQ(event->info.destination_gid, V4(2));
  EXPECT_EQ(client.engine().connection_count(), 0u);
  EXPECT_EQ(client.engine().deadline(), kNever);
}

TEST_F(SidrTest, RepeatedRequest_IsAnsweredWithoutTheProgram) {
  Request();
  server.Take(request);
  EXPECT_FALSE(server.NextEvent().has_value());
  EXPECT_TRUE(server.actions.mads.empty());
  ASSERT_EQ(server.Do(passive, Accept{Host::Params(0x333)}), 0);
  const SendMad reply = server.actions.mads[0];
  server.actions.mads.clear();
  ASSERT_EQ(server.Do(passive, DestroyId{}), 0);
  server.Take(request);
  ASSERT_EQ(server.actions.mads.size(), 1u);
  EXPECT_EQ(server.actions.mads[0].bytes, reply.bytes);
  EXPECT_FALSE(server.NextEvent().has_value());
  server.Advance(Seconds(30));
  EXPECT_EQ(server.engine().connection_count(), 0u);
}

TEST_F(SidrTest, Reject_IsUnreachableWithTheStatus) {
  Request();
  Reject reject;
  reject.private_data = testing::Text("go away");
  ASSERT_EQ(server.Do(passive, reject), 0);
  Exchange(client, server);
  const auto event = client.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kUnreachable);
  EXPECT_EQ(event->status, 2);
  EXPECT_EQ(TextOf(event->param.private_data), "go away");
}

TEST_F(SidrTest, NobodyListens_IsUnreachableWithUnsupportedService) {
  Connect();
  Exchange(client, server);
  const auto event = client.NextEvent();
  EXPECT_EQ(event->type, EventType::kUnreachable);
  EXPECT_EQ(event->status, 1);
}

TEST_F(SidrTest, ConnectedListener_Refuses) {
  server.Listening(kPort, 10, PortSpace::kUdp, QpType::kRc);
  Connect();
  Exchange(client, server);
  EXPECT_EQ(client.NextEvent()->status, 2);
}

TEST_F(SidrTest, DestroyedPassiveId_Refuses) {
  Request();
  ASSERT_EQ(server.Do(passive, DestroyId{}), 0);
  Exchange(client, server);
  EXPECT_EQ(client.NextEvent()->status, 2);
}

TEST_F(SidrTest, SilentPeer_IsUnreachableInTheEnd) {
  Connect();
  const TimePoint start = client.now;
  for (int i = 0; i < 1000 && client.actions.events.empty(); ++i) client.Advance(Milliseconds(100));
  const auto event = client.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::kUnreachable);
  EXPECT_EQ(event->status, -ETIMEDOUT);
  EXPECT_GE((client.now - start).ns, Milliseconds(4096 * 16).ns);
  EXPECT_EQ(client.engine().connection_count(), 0u);
}

TEST_F(SidrTest, ReplyWithoutQkey_IsAnAddressError) {
  Connect();
  wire::CmSidrRep rep;
  rep.request_id = client.Next<wire::CmSidrReq>()->request_id;
  rep.qpn = Qpn{0x333};
  EXPECT_EQ(client.Take(wire::CmMad{1, 0, rep}, V4(2)), DropReason::kNone);
  EXPECT_EQ(client.NextEvent()->type, EventType::kAddrError);
}

TEST_F(SidrTest, Limits_OfPrivateData) {
  listener = server.Listening(kPort, 10, PortSpace::kUdp, QpType::kUd);
  active = client.Routed(server.address, kPort, PortSpace::kUdp, QpType::kUd);
  ConnectParams param;
  param.private_data.length = 181;
  EXPECT_EQ(client.Do(active, cm::Connect{param}), EINVAL);
  param.private_data.length = 180;
  EXPECT_EQ(client.Do(active, cm::Connect{param}), 0);
  Exchange(client, server);
  passive = server.NextEvent()->id;
  param.qpn = Qpn{0x333};
  param.private_data.length = 137;
  EXPECT_EQ(server.Do(passive, Accept{param}), EINVAL);
  param.private_data.length = 136;
  EXPECT_EQ(server.Do(passive, Accept{param}), 0);
}

TEST_F(SidrTest, Attributes_OfUdIds_AreInitWithQkey) {
  active = client.Routed(server.address, kPort, PortSpace::kUdp, QpType::kUd);
  QpAttributes attributes;
  ASSERT_EQ(client.engine().InitQpAttributes(kProgram, active, QpState::kInit, attributes), 0);
  EXPECT_EQ(attributes.mask, kQpState | kQpPkeyIndex | kQpPort | kQpQkey);
  EXPECT_EQ(attributes.qkey, kUdpQkey);
}

}  // namespace
}  // namespace rocegw::cm::sidr
