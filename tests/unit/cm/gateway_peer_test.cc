// SPDX-License-Identifier: Apache-2.0
// Two connection managers that are gateways to each other: when they ask, what a REQ waits for,
// what they agree on, and the path of the data.
#include <gtest/gtest.h>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

using testing::Exchange;
using testing::Host;
using testing::kOtherProgram;
using testing::kPort;
using testing::V4;

constexpr uint32_t kAll = 0xFFFFFFFF;

CmConfig Discovering() {
  CmConfig config;
  config.discovery.enabled = true;
  return config;
}

GatewaySettings Channels() {
  GatewaySettings settings;
  settings.features = wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcDcqcn;
  settings.acceptors[0] = Qpn{0x44};
  return settings;
}

class GatewayPeerTest : public ::testing::Test {
 protected:
  GatewayPeerTest() {
    client.SetGateway(Channels());
    server.SetGateway(Channels());
  }
  // Resolves routes without a packet to the peer.
  void Route() {
    listener = server.Listening(kPort);
    active = client.Routed(server.address, kPort);
    ASSERT_NE(active.value, 0u);
  }
  void Request() {
    ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
    Exchange(client, server);
    const auto event = server.NextEvent();
    ASSERT_TRUE(event && event->type == EventType::kConnectRequest);
    passive = event->id;
  }
  void Respond() {
    ASSERT_EQ(server.Do(passive, Accept{Host::Params(0x222)}), 0);
    Exchange(client, server);
    const auto event = client.NextEvent();
    ASSERT_TRUE(event && event->type == EventType::kConnectResponse);
  }
  DataPath PathOf(Host& host, const Host& peer, uint32_t qpn, uint32_t allowed = kAll) {
    return host.engine().ChooseDataPath(host.address, peer.address, Qpn{qpn}, allowed, host.now,
                                        host.actions);
  }
  static EceRecord RecordOf(const Host& host) {
    const auto rows = host.engine().Connections();
    return rows.empty() ? EceRecord{} : rows.front().ece;
  }

  Host client{V4(1), 1, Discovering()};
  Host server{V4(2), 2, Discovering()};
  CmHandle listener;
  CmHandle active;
  CmHandle passive;
};

TEST_F(GatewayPeerTest, Resolving_AsksSoThatConnectNeedNotWait) {
  Route();
  ASSERT_EQ(client.actions.mads.size(), 1u);
  EXPECT_TRUE(wire::IsVendorMad(client.actions.mads.front().bytes));
  Exchange(client, server);
  EXPECT_EQ(client.engine().discovery().KindOf(server.address), PeerKind::kGateway);
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  const auto req = client.Next<wire::CmReq>();
  ASSERT_TRUE(req.has_value());
  EXPECT_EQ(req->vendor_id, wire::kDefaultVendorId);
}

TEST_F(GatewayPeerTest, ConnectBeforeTheAnswer_WaitsForIt) {
  Route();
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111, "hello")}), 0);
  EXPECT_EQ(client.actions.mads.size(), 1u) << "the question, and nothing else";
  EXPECT_EQ(client.StateOf(active), "REQ not sent yet");
  Exchange(client, server);
  EXPECT_EQ(client.StateOf(active), "REQ sent");
  const auto event = server.NextEvent();
  ASSERT_TRUE(event && event->type == EventType::kConnectRequest);
  EXPECT_EQ(testing::TextOf(event->param.private_data), "hello");
  EXPECT_EQ(event->param.ece.vendor_id, wire::kDefaultVendorId);
}

TEST_F(GatewayPeerTest, ConnectToSilence_GoesOutPlainAfter20ms) {
  Route();
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  client.actions.mads.clear();
  for (int ms = 0; ms < 19; ++ms) client.Advance(Milliseconds(1));
  for (const SendMad& mad : client.actions.mads) EXPECT_TRUE(wire::IsVendorMad(mad.bytes));
  client.actions.mads.clear();
  client.Advance(Milliseconds(1));
  ASSERT_EQ(client.actions.mads.size(), 1u);
  const auto mad = client.NextMad();
  ASSERT_TRUE(mad && std::holds_alternative<wire::CmReq>(mad->body));
  EXPECT_EQ(std::get<wire::CmReq>(mad->body).vendor_id, 0u);
  EXPECT_EQ(mad->attribute_modifier, 0u);
}

TEST_F(GatewayPeerTest, ConnectsToSeveralPeers_EachWaitsForItsOwn) {
  const auto req_count = [&] {
    size_t count = 0;
    for (const SendMad& mad : client.actions.mads) count += wire::IsVendorMad(mad.bytes) ? 0 : 1;
    return count;
  };
  for (uint32_t i = 0; i < 3; ++i) {
    const CmHandle silent = client.Routed(V4(50), testing::kPort);
    ASSERT_EQ(client.Do(silent, cm::Connect{Host::Params(0x200 + i)}), 0);
  }
  Route();
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  EXPECT_EQ(req_count(), 0u);
  std::erase_if(client.actions.mads,
                [](const SendMad& mad) { return mad.path.destination == V4(50); });
  Exchange(client, server);
  EXPECT_EQ(client.StateOf(active), "REQ sent");
  for (int ms = 0; ms < 20; ++ms) client.Advance(Milliseconds(1));
  EXPECT_EQ(req_count(), 3u) << "those to the silent peer";
}

TEST_F(GatewayPeerTest, DestroyedWhileItWaits_SendsNothing) {
  Route();
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  client.actions.mads.clear();
  ASSERT_EQ(client.Do(active, DestroyId{}), 0);
  EXPECT_TRUE(client.actions.mads.empty());
  EXPECT_EQ(client.engine().connection_count(), 0u);
  for (int i = 0; i < 10; ++i) client.Advance(Milliseconds(10));
  for (const SendMad& mad : client.actions.mads) EXPECT_TRUE(wire::IsVendorMad(mad.bytes));
}

TEST_F(GatewayPeerTest, TwoGateways_AgreeOnAChannel) {
  Route();
  Exchange(client, server);
  Request();
  // The server's QP goes to RTR before the program accepts.
  const DataPath early = PathOf(server, client, 0x111);
  ASSERT_TRUE(early.channel.has_value()) << early.reason;
  EXPECT_EQ(early.channel->acceptor, Qpn{0x44});
  EXPECT_EQ(early.channel->instance, client.engine().discovery().own().instance);
  Respond();
  const uint32_t agreed = wire::kOptionPresent | Channels().features;
  EXPECT_EQ(RecordOf(client).agreed, agreed);
  EXPECT_EQ(RecordOf(server).agreed, agreed);
  const DataPath path = PathOf(client, server, 0x222);
  ASSERT_TRUE(path.channel.has_value()) << path.reason;
  EXPECT_EQ(path.channel->peer, server.address);
  EXPECT_STREQ(path.reason, "a channel was agreed on by the CM");
  EXPECT_NE(Describe(client.engine().Connections().front())
                .find("agreed between gateways (channel, selective acknowledgement, DCQCN)"),
            std::string::npos);
}

TEST_F(GatewayPeerTest, ServerWithoutChannels_GetsNativeRc) {
  server.SetGateway({});
  Route();
  Exchange(client, server);
  Request();
  EXPECT_FALSE(PathOf(server, client, 0x111).channel.has_value());
  Respond();
  EXPECT_EQ(RecordOf(client).received, (Ece{wire::kDefaultVendorId, wire::kOptionPresent}));
  EXPECT_EQ(RecordOf(client).agreed, 0u);
  const DataPath path = PathOf(client, server, 0x222);
  EXPECT_FALSE(path.channel.has_value());
  EXPECT_STREQ(path.reason, "the peer gateway has no channels");
}

TEST_F(GatewayPeerTest, PeerWithoutDiscovery_GetsWhatAnRdmaDeviceGets) {
  Host old(V4(3), 3);
  const CmHandle listens = old.Listening(kPort);
  ASSERT_NE(listens.value, 0u);
  const CmHandle id = client.Routed(old.address, kPort);
  ASSERT_EQ(client.Do(id, cm::Connect{Host::Params(0x111)}), 0);
  Exchange(client, old);
  EXPECT_EQ(RecordOf(client).sent, Ece{});
  const auto event = old.NextEvent();
  ASSERT_TRUE(event && event->type == EventType::kConnectRequest);
  EXPECT_STREQ(PathOf(client, old, 0x333).reason, "the peer does not answer as a gateway");
}

TEST_F(GatewayPeerTest, ProgramsOwnEce_TravelsAndTheGatewaysAgreeByDiscovery) {
  Route();
  Exchange(client, server);
  ConnectParams param = Host::Params(0x111);
  param.ece = {0x15B3, 5};
  ASSERT_EQ(client.Do(active, cm::Connect{param}), 0);
  Exchange(client, server);
  const auto event = server.NextEvent();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->param.ece, (Ece{0x15B3, 5}));
  passive = event->id;
  param = Host::Params(0x222);
  param.ece = {0x15B3, 4};
  ASSERT_EQ(server.Do(passive, Accept{param}), 0);
  Exchange(client, server);
  const auto response = client.NextEvent();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->param.ece, (Ece{0x15B3, 4}));
  EXPECT_TRUE(PathOf(client, server, 0x222).channel.has_value());
  EXPECT_TRUE(PathOf(server, client, 0x111).channel.has_value());
}

TEST_F(GatewayPeerTest, QpOfASocketExchange_WaitsThenTakesAChannel) {
  const DataPath first = PathOf(client, server, 0x777);
  EXPECT_TRUE(first.wait);
  EXPECT_FALSE(first.channel.has_value());
  Exchange(client, server);
  EXPECT_EQ(client.actions.settled, std::vector{server.address});
  const DataPath path = PathOf(client, server, 0x777);
  EXPECT_FALSE(path.wait);
  EXPECT_TRUE(path.channel.has_value());
}

TEST_F(GatewayPeerTest, ReasonsForNativeRc_AreTold) {
  Exchange(client, server);
  EXPECT_STREQ(PathOf(client, client, 0x777).reason, "the peer is on this gateway too");
  EXPECT_STREQ(PathOf(client, server, 0x777, wire::kOptionPresent).reason,
               "the program wants no channel");
  Host off(V4(4), 4);
  EXPECT_STREQ(PathOf(off, server, 0x777).reason, "channels are not enabled here");
  off.SetGateway(Channels());
  EXPECT_STREQ(PathOf(off, server, 0x777).reason, "discovery is not enabled here");
  EXPECT_TRUE(off.actions.mads.empty());
}

TEST_F(GatewayPeerTest, ForgottenPeer_IsAskedBeforeItsNextQp) {
  PathOf(client, server, 0x777);
  Exchange(client, server);
  client.engine().ForgetPeer(server.address, client.actions);
  EXPECT_TRUE(PathOf(client, server, 0x777).wait);
}

// A REQ with our vendor ID, from an address whose silence made it an RDMA device.
TEST_F(GatewayPeerTest, RequestThatOffers_IsAReasonToAskAgain) {
  PathOf(server, client, 0x1);
  for (int i = 0; i < 4; ++i) server.Advance(Milliseconds(10));
  server.Advance(Seconds(2));
  server.actions.Clear();
  Route();
  Exchange(client, server);
  EXPECT_EQ(server.engine().discovery().KindOf(client.address), PeerKind::kRnic);
  Request();
  EXPECT_EQ(server.engine().discovery().KindOf(client.address), PeerKind::kGateway);
}

}  // namespace
}  // namespace rocegw::cm
