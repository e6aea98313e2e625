// SPDX-License-Identifier: Apache-2.0
// Connection manager through the attach protocol: two gateways whose datagrams the test delivers,
// and one with itself.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "tests/unit/session/cm_pair.h"

namespace rocegw::testing {
namespace {

using namespace cm_pair;  // NOLINT: the fixture's names are the test's own

session::Options SmallIds(uint64_t cm_ids) {
  session::Options options;
  options.limits.cm_ids = cm_ids;
  return options;
}

TEST_F(Cm, Connect_WithPrivateDataAndQpAttributes) {
  Program client(a);
  Program server(b);
  const uint32_t listener = server.Listen(kSecond, 7000, 0x11);
  const uint32_t id = client.Resolved(kSecond, 7000, 0x22);
  const auto qp = client.CreateQp();
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, qp.qpn, "hello"), 0);
  Carry();

  const rocegw_cm_event request = server.NextEvent();
  ASSERT_EQ(request.type, kConnectRequest);
  EXPECT_EQ(request.cookie, 0x11u);
  EXPECT_EQ(request.listen_id, listener);
  EXPECT_NE(request.id, listener);
  EXPECT_EQ(request.param.qpn, qp.qpn);
  EXPECT_EQ(request.param.responder_resources, 2) << "what the peer initiates";
  EXPECT_EQ(request.param.initiator_depth, 4);
  EXPECT_EQ(std::memcmp(request.param.private_data, "hello\0\0", 7), 0);
  EXPECT_EQ(request.param.private_length, 56) << "the whole area";
  EXPECT_EQ(request.destination.address[3], 1);
  EXPECT_EQ(request.source.port, 7000);
  EXPECT_EQ(request.device, 0);
  EXPECT_EQ(request.path_mtu, 3u);

  const auto server_side = server.CreateQp();
  const auto init = server.QpAttr(request.id, 1);
  ASSERT_EQ(server.client.error(), 0);
  EXPECT_EQ(init.attr.qp_state, 1u);
  const auto rtr = server.QpAttr(request.id, 2);
  ASSERT_EQ(server.client.error(), 0);
  EXPECT_EQ(rtr.attr.dest_qpn, qp.qpn);
  EXPECT_EQ(rtr.attr.av.dgid[15], 1);
  // The queue pair accepts what the connection manager proposes.
  EXPECT_EQ(server.client.Modify(server_side.handle, init.attr_mask, init.attr), 0);
  EXPECT_EQ(server.client.Modify(server_side.handle, rtr.attr_mask, rtr.attr), 0);
  const auto rts = server.QpAttr(request.id, 3);
  EXPECT_EQ(server.client.Modify(server_side.handle, rts.attr_mask, rts.attr), 0);

  ASSERT_EQ(
      server.ConnectOrAccept(ROCEGW_MSG_CM_ACCEPT, request.id, server_side.qpn, "welcome", 0x33),
      0);
  Carry();
  const rocegw_cm_event response = client.NextEvent();
  ASSERT_EQ(response.type, kConnectResponse);
  EXPECT_EQ(response.cookie, 0x22u);
  EXPECT_EQ(response.param.qpn, server_side.qpn);
  EXPECT_EQ(std::memcmp(response.param.private_data, "welcome", 8), 0);
  const auto client_rtr = client.QpAttr(id, 2);
  EXPECT_EQ(client_rtr.attr.dest_qpn, server_side.qpn);
}

TEST_F(Cm, Disconnect_BothSeeItAndEventsAreCounted) {
  Program client(a);
  Program server(b);
  ConnectThem(client, server);
  ASSERT_EQ(client.Simple(ROCEGW_MSG_CM_DISCONNECT, client_id), 0);
  Carry();
  EXPECT_EQ(server.NextEvent().type, kDisconnected);
  EXPECT_EQ(server.Simple(ROCEGW_MSG_CM_DISCONNECT, server_id), 0);
  Carry();
  EXPECT_EQ(client.NextEvent().type, kDisconnected);
  // ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE, DISCONNECTED.
  EXPECT_EQ(client.client.Object(ROCEGW_MSG_CM_DESTROY_ID, client_id).events_reported, 4u);
  // ESTABLISHED, DISCONNECTED; the request counts for the listener.
  EXPECT_EQ(server.client.Object(ROCEGW_MSG_CM_DESTROY_ID, server_id).events_reported, 2u);
  EXPECT_EQ(server.client.Object(ROCEGW_MSG_CM_DESTROY_ID, 1).events_reported, 1u);
  EXPECT_EQ(b.server->services().pools.gateway().used(session::Resource::kCmIds), 0u);
}

TEST_F(Cm, ProcessDies_PeerIsToldAndNothingRemains) {
  auto client = std::make_unique<Program>(a);
  Program server(b);
  ConnectThem(*client, server);
  client.reset();
  Carry();
  EXPECT_EQ(server.NextEvent().type, kDisconnected);
  EXPECT_EQ(a.server->session_count(), 0u);
  EXPECT_EQ(a.server->cm().engine().id_count(), 0u);
  EXPECT_EQ(a.server->services().pools.gateway().used(session::Resource::kCmIds), 0u);
}

TEST_F(Cm, Reject_ReasonAndData) {
  Program client(a);
  Program server(b);
  server.Listen(kSecond, 7000);
  const uint32_t id = client.Resolved(kSecond, 7000);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, client.CreateQp().qpn), 0);
  Carry();
  const rocegw_cm_event request = server.NextEvent();
  auto reject = TestClient::Request<rocegw_cm_reject>(ROCEGW_MSG_CM_REJECT);
  reject.id = request.id;
  reject.private_length = 2;
  reject.private_data[0] = 'n';
  reject.private_data[1] = 'o';
  server.client.Call<rocegw_object_reply>(reject);
  EXPECT_EQ(server.client.error(), 0);
  Carry();
  const rocegw_cm_event rejected = client.NextEvent();
  EXPECT_EQ(rejected.type, kRejected);
  EXPECT_EQ(rejected.status, 28);
  EXPECT_EQ(std::memcmp(rejected.param.private_data, "no", 2), 0);
}

TEST_F(Cm, NobodyListens_IsRejected) {
  Program client(a);
  const uint32_t id = client.Resolved(kSecond, 7001);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, client.CreateQp().qpn), 0);
  // A listener may still come: the answer takes a moment.
  const TimePoint patience = ControlLoop::Now() + Seconds(10);
  rocegw_cm_event rejected{};
  do {
    Carry();
    rejected = client.NextEvent();
  } while (rejected.type != kRejected && ControlLoop::Now() < patience);
  EXPECT_EQ(rejected.type, kRejected);
  EXPECT_EQ(rejected.status, 8);
}

TEST_F(Cm, Loopback_StaysInside) {
  Program client(a);
  Program server(a);
  server.Listen(0, 7000);
  for (const uint32_t to : {kFirst, 0x7F000001u}) {
    const uint32_t id = client.Resolved(to, 7000);
    ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, client.CreateQp().qpn), 0);
    a.Settle();
    const rocegw_cm_event request = server.NextEvent();
    ASSERT_EQ(request.type, kConnectRequest) << std::hex << to;
    ASSERT_EQ(server.ConnectOrAccept(ROCEGW_MSG_CM_ACCEPT, request.id, server.CreateQp().qpn), 0);
    a.Settle();
    EXPECT_EQ(client.NextEvent().type, kConnectResponse);
  }
  EXPECT_TRUE(a.workers[0]->mads.empty()) << "nothing on the wire";
}

TEST_F(Cm, ResolveAddr_ErrorsAreEvents) {
  Program client(a);
  const struct {
    uint32_t to;
    int error;
  } cases[] = {{0x08080808, ENETUNREACH}, {0x08080809, ENODEV}};
  for (const auto& c : cases) {
    const uint32_t id = client.CreateId();
    client.ResolveAddr(id, Address(c.to, 1));
    EXPECT_EQ(client.client.error(), 0);
    const rocegw_cm_event event = client.NextEvent();
    EXPECT_EQ(event.type, kAddrError);
    EXPECT_EQ(event.status, -c.error);
  }
  rocegw_sockaddr odd = Address(kSecond, 1);
  odd.family = 27;
  client.ResolveAddr(client.CreateId(), odd);
  EXPECT_EQ(client.client.error(), EAFNOSUPPORT);
  odd.family = 0;
  client.ResolveAddr(client.CreateId(), odd);
  EXPECT_EQ(client.client.error(), EAFNOSUPPORT);
}

TEST_F(Cm, Bind_AddressesAndPorts) {
  Program one(a);
  Program two(a);
  const auto bound = one.Bind(one.CreateId(), Address(kFirst, 0));
  EXPECT_EQ(one.client.error(), 0);
  EXPECT_EQ(bound.device, 0);
  EXPECT_NE(bound.source.port, 0);
  EXPECT_EQ(one.Bind(one.CreateId(), Address(0, 0)).device, -1);
  one.Bind(one.CreateId(), Address(kSecond, 0));
  EXPECT_EQ(one.client.error(), EADDRNOTAVAIL) << "not an address of this gateway";
  one.Listen(kFirst, 7000);
  two.Bind(two.CreateId(), Address(kFirst, 7000));
  EXPECT_EQ(two.client.error(), EADDRINUSE);
}

// Programs compare requested and returned addresses byte by byte (rsockets do).
TEST_F(Cm, Bind_TellsTheInterface_OfLinkLocalAddressesAlone) {
  session::Device device = SessionHost::MakeDevice();
  const wire::Gid global = *wire::ParseGid("2001:db8::1");
  const wire::Gid local = *wire::ParseGid("fe80::1");
  device.gids = {global, local};
  SessionHost host{1, {}, 4096, {device}, FirstAddress};
  Program program(host);
  rocegw_sockaddr address{};
  address.family = AF_INET6;
  std::ranges::copy(global.bytes, address.address);
  EXPECT_EQ(program.Bind(program.CreateId(), address).source.scope_id, 0u);
  std::ranges::copy(local.bytes, address.address);
  EXPECT_EQ(program.Bind(program.CreateId(), address).source.scope_id, device.interface_index);
}

TEST_F(Cm, OthersIdsAndQps_CannotBeUsed) {
  Program client(a);
  Program thief(a);
  const uint32_t id = client.Resolved(kSecond, 7000);
  EXPECT_EQ(thief.Simple(ROCEGW_MSG_CM_QUERY_ID, id), EINVAL);
  EXPECT_EQ(thief.Simple(ROCEGW_MSG_CM_DESTROY_ID, id), EINVAL);
  const uint32_t own = thief.Resolved(kSecond, 7000);
  const auto qp = client.CreateQp();
  EXPECT_EQ(thief.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, own, qp.qpn), EINVAL);
  EXPECT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, qp.qpn), 0);
}

TEST_F(Cm, CreateId_RefusesUnknownSpacesAndChannels) {
  Program client(a);
  auto create = TestClient::Request<rocegw_cm_create_id>(ROCEGW_MSG_CM_CREATE_ID);
  create.channel = client.channel;
  create.port_space = 0x0107;
  client.client.Call<rocegw_object_reply>(create);
  EXPECT_EQ(client.client.error(), EINVAL);
  create.port_space = kTcp;
  create.channel = 99;
  client.client.Call<rocegw_object_reply>(create);
  EXPECT_EQ(client.client.error(), EINVAL);
  const uint32_t id = client.CreateId();
  EXPECT_EQ(client.Simple(ROCEGW_MSG_CM_DESTROY_CHANNEL, client.channel), EBUSY);
  EXPECT_EQ(client.Simple(ROCEGW_MSG_CM_DESTROY_ID, id), 0);
  EXPECT_EQ(client.Simple(ROCEGW_MSG_CM_DESTROY_CHANNEL, client.channel), 0);
}

TEST_F(Cm, ListenerDestroyed_RequestsNobodyTookEndWithIt) {
  Program client(a);
  Program server(b);
  const uint32_t listener = server.Listen(kSecond, 7000);
  const uint32_t first = client.Resolved(kSecond, 7000);
  const uint32_t second = client.Resolved(kSecond, 7000);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, first, client.CreateQp().qpn), 0);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, second, client.CreateQp().qpn), 0);
  Carry();
  const rocegw_cm_event taken = server.NextEvent();
  ASSERT_EQ(taken.type, kConnectRequest);
  EXPECT_EQ(server.Simple(ROCEGW_MSG_CM_QUERY_ID, taken.id), 0);
  EXPECT_EQ(server.client.Object(ROCEGW_MSG_CM_DESTROY_ID, listener).events_reported, 2u);
  Carry();
  EXPECT_EQ(client.NextEvent().type, kRejected);
  EXPECT_EQ(server.ConnectOrAccept(ROCEGW_MSG_CM_ACCEPT, taken.id, server.CreateQp().qpn), 0);
  Carry();
  EXPECT_EQ(client.NextEvent().type, kConnectResponse);
  EXPECT_EQ(b.server->services().pools.gateway().used(session::Resource::kCmIds), 1u);
}

TEST_F(Cm, CommEstablishedOnTheQp_IsAsGoodAsTheRtu) {
  Program client(a);
  Program server(b);
  server.Listen(kSecond, 7000);
  const uint32_t id = client.Resolved(kSecond, 7000);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, client.CreateQp().qpn), 0);
  Carry();
  const rocegw_cm_event request = server.NextEvent();
  const auto qp = server.CreateQp();
  ASSERT_EQ(server.ConnectOrAccept(ROCEGW_MSG_CM_ACCEPT, request.id, qp.qpn), 0);
  Carry();
  worker::AsyncEventRaised raised;
  raised.session = SessionId{b.workers[0]->sessions.begin()->first};
  raised.event = verbs::AsyncEvent::kCommEstablished;
  raised.kind = ROCEGW_OBJECT_QP;
  raised.handle = qp.handle;
  raised.qpn = Qpn{qp.qpn};
  b.workers[qp.worker]->Raise({0, raised});
  b.Settle();
  EXPECT_EQ(server.NextEvent().type, kEstablished);
}

TEST_F(Cm, SetOption_KnownOnesOnly) {
  Program client(a);
  const uint32_t id = client.CreateId();
  auto set = TestClient::Request<rocegw_cm_set_option>(ROCEGW_MSG_CM_SET_OPTION);
  set.id = id;
  set.length = 1;
  set.value[0] = 0x68;
  const struct {
    uint32_t level, option, length;
    int error;
  } cases[] = {{0, 0, 1, 0},      {0, 1, 4, 0},
               {0, 2, 4, 0},      {0, 3, 1, 0},
               {0, 9, 1, ENOSYS}, {1, 1, 64, 0},
               {1, 2, 1, ENOSYS}, {7, 0, 1, ENOSYS},
               {0, 0, 3, EINVAL}, {0, 0, 1u << 30, EINVAL}};
  for (const auto& c : cases) {
    set.level = c.level;
    set.option = c.option;
    set.length = c.length;
    set.value[0] = 1;
    client.client.Call<rocegw_object_reply>(set);
    EXPECT_EQ(client.client.error(), c.error) << c.level << " " << c.option << " " << c.length;
  }
}

TEST_F(Cm, LimitOfIds_RequestsAreRefusedWithAReason) {
  SessionHost small(1, SmallIds(1), 4096, {DeviceAt(kSecond)}, SecondAddress);
  Program server(small);
  server.Listen(kSecond, 7000);
  EXPECT_EQ(server.CreateId(), 0u);
  EXPECT_EQ(server.client.error(), ENOMEM);
  Program client(a);
  const uint32_t id = client.Resolved(kSecond, 7000);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, client.CreateQp().qpn), 0);
  for (int i = 0; i < 4; ++i) {
    a.Settle();
    CarryOne(a, small);
    small.Settle();
    CarryOne(small, a);
  }
  EXPECT_EQ(server.NextEvent().type, 1000u);
  EXPECT_EQ(client.NextEvent().type, kRejected);
  EXPECT_EQ(small.server->services().pools.gateway().used(session::Resource::kCmIds), 1u);
}

void AllowPeers(SessionHost& host, uint32_t prefix, uint8_t bits) {
  tenant::PoolSettings pool = session::DefaultPool({});
  pool.allowed_peers = {{wire::Gid::FromV4(prefix), static_cast<uint8_t>(96 + bits)}};
  host.server->SetPool(pool, {});
}

TEST_F(Cm, PeerNotAllowed_ConnectIsEaccesAndNothingIsSent) {
  AllowPeers(a, 0xC6336400, 24);
  Program client(a);
  const uint32_t id = client.Resolved(kSecond, 7000);
  const auto qp = client.CreateQp();
  EXPECT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, qp.qpn), EACCES);
  a.Settle();
  EXPECT_TRUE(a.workers[0]->mads.empty());
  const auto events = a.server->services().events.Rows();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, "PEER_NOT_ALLOWED");
  EXPECT_EQ(events[0].text,
            "tenants/default/pools/default: its programs may not talk to 192.0.2.2 "
            "(allowed_peers)");
  AllowPeers(a, 0xC0000200, 24);
  EXPECT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, qp.qpn), 0);
}

// The address of a pod, for example.
TEST_F(Cm, PeerThatDoesNotAnswer_IsNamedByAnEventLongBeforeTheProgramIsTold) {
  Program client(a);
  const uint32_t id = client.Resolved(kSecond, 7000);
  const auto qp = client.CreateQp();
  EXPECT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, qp.qpn), 0);
  const TimePoint end = ControlLoop::Now() + Seconds(10);
  const auto rows = [&] { return a.server->services().events.Rows(); };
  while (rows().empty() && ControlLoop::Now() < end) {
    a.Settle();
    a.loop.RunOnce(Milliseconds(50));
  }
  ASSERT_EQ(rows().size(), 1u);
  EXPECT_EQ(rows()[0].reason, "PEER_SILENT");
  EXPECT_NE(rows()[0].text.find("192.0.2.2 does not answer the connection requests of "),
            std::string::npos);
}

TEST_F(Cm, RequestFromAPeerNotAllowed_IsRejectedAndTheProgramSeesNothing) {
  AllowPeers(b, 0xC6336400, 24);
  Program server(b);
  server.Listen(kSecond, 7000);
  Program client(a);
  const uint32_t id = client.Resolved(kSecond, 7000);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, client.CreateQp().qpn), 0);
  Carry();
  EXPECT_EQ(server.NextEvent().type, 1000u);
  const rocegw_cm_event rejected = client.NextEvent();
  EXPECT_EQ(rejected.type, kRejected);
  EXPECT_EQ(rejected.status, static_cast<int>(wire::RejectReason::kInvalidGid));
  EXPECT_EQ(b.server->services().pools.FindPool(session::kDefaultPool)->peers_refused(), 1u);
}

TEST_F(Cm, ConnectsPerSecond_BeyondIsEagainAndARequestIsRejected) {
  tenant::PoolSettings pool = session::DefaultPool({});
  pool.quota.peak[tenant::Rate::kConnects] = 1;
  a.server->SetPool(pool, {});
  b.server->SetPool(pool, {});
  Program client(a);
  Program server(b);
  server.Listen(kSecond, 7000);
  const uint32_t first = client.Resolved(kSecond, 7000);
  const uint32_t second = client.Resolved(kSecond, 7000);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, first, client.CreateQp().qpn), 0);
  EXPECT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, second, client.CreateQp().qpn), EAGAIN);
  Carry();
  EXPECT_EQ(server.NextEvent().type, kConnectRequest);
  a.server->SetPool(session::DefaultPool({}), {});
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, second, client.CreateQp().qpn), 0);
  Carry();
  EXPECT_EQ(server.NextEvent().type, 1000u);
  EXPECT_EQ(client.NextEvent().type, kRejected);
}

// A second tenant owns the address: a listener on all addresses does not get its requests.
TEST_F(Cm, AddressOfAnotherPool_CannotBeBoundAndItsRequestsGoToNobodyElse) {
  tenant::TenantSettings tenant;
  tenant.name = "tenants/red";
  b.server->SetTenant(tenant);
  tenant::PoolSettings red;
  red.name = "tenants/red/pools/a";
  red.slots = 0;
  red.addresses = {wire::Gid::FromV4(kSecond)};
  b.server->SetPool(red, {});
  Program server(b);
  const uint32_t id = server.CreateId();
  server.Bind(id, Address(kSecond, 7000));
  EXPECT_EQ(server.client.error(), EADDRNOTAVAIL);
  server.Listen(0, 7000);
  Program client(a);
  const uint32_t from = client.Resolved(kSecond, 7000);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, from, client.CreateQp().qpn), 0);
  Carry();
  EXPECT_EQ(server.NextEvent().type, 1000u);
  EXPECT_EQ(client.NextEvent().type, 1000u) << "as if nobody listened yet: it is asked again";
}

TEST_F(Cm, WildcardOfAnotherPool_HoldsNoPortOfOwnedAddresses) {
  tenant::TenantSettings tenant;
  tenant.name = "tenants/red";
  b.server->SetTenant(tenant);
  tenant::PoolSettings red;
  red.name = "tenants/red/pools/a";
  red.slots = 0;
  red.addresses = {wire::Gid::FromV4(kSecond)};
  b.server->SetPool(red, {});
  Program stranger(b);
  stranger.Listen(0, 7000);
  stranger.Listen(0, 7001);
  Program owner(b, red.name);
  owner.Listen(kSecond, 7000);
  const uint32_t everywhere = owner.Listen(0, 7001);
  const uint32_t second = owner.CreateId();
  owner.Bind(second, Address(kSecond, 7001));
  EXPECT_EQ(owner.client.error(), EADDRINUSE) << "within the pool as ever";
  Program client(a);
  for (const uint16_t port : {7000, 7001}) {
    const uint32_t from = client.Resolved(kSecond, port);
    ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, from, client.CreateQp().qpn), 0);
    Carry();
    EXPECT_EQ(owner.NextEvent().type, kConnectRequest) << port;
    EXPECT_EQ(stranger.NextEvent().type, kNoEvent) << port;
  }
  // No pool owns the address any more: a wildcard listener takes over.
  owner.client.Object(ROCEGW_MSG_CM_DESTROY_ID, everywhere);
  ASSERT_EQ(owner.client.error(), 0);
  red.addresses = {};
  b.server->SetPool(red, {});
  const uint32_t from = client.Resolved(kSecond, 7001);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, from, client.CreateQp().qpn), 0);
  Carry();
  EXPECT_EQ(stranger.NextEvent().type, kConnectRequest);
}

TEST_F(Cm, PortTaken_IsAnEvent) {
  Program server(b);
  server.Listen(kSecond, 7000);
  Program other(b);
  const uint32_t id = other.CreateId();
  other.Bind(id, Address(kSecond, 7000));
  EXPECT_EQ(other.client.error(), EADDRINUSE);
  EXPECT_EQ(b.server->services().events.Rows().at(0).reason, "ADDRESS_IN_USE");
}

TEST_F(Cm, GarbageMads_AreCountedByReason) {
  worker::MadReceived received;
  received.meta.source = wire::Gid::FromV4(kSecond);
  received.meta.destination = wire::Gid::FromV4(kFirst);
  received.source_qpn = kGsiQpn;
  received.mad.fill(0xFF);
  a.workers[0]->Raise({0, received});
  a.Settle();
  EXPECT_EQ(a.server->cm().drops(metrics::DropReason::k_mad_malformed), 1u);
}

TEST_F(Cm, LostRequest_IsSentAgainByTheTimer) {
  Program client(a);
  const uint32_t id = client.Resolved(kSecond, 7000);
  ASSERT_EQ(client.ConnectOrAccept(ROCEGW_MSG_CM_CONNECT, id, client.CreateQp().qpn), 0);
  a.Settle();
  const auto requests = [this] {
    return std::ranges::count_if(a.workers[0]->mads, [](const worker::SendMad& mad) {
      return mad.mad[1] == wire::kMadClassCm;
    });
  };
  const auto turn_until = [&](int64_t count) {
    while (requests() < count) {
      a.loop.RunOnce(Seconds(10));
      a.RunWorkers();
    }
  };
  // The first REQ is sent when the silent peer counts as an RDMA device.
  turn_until(1);
  const TimePoint start = ControlLoop::Now();
  turn_until(2);
  EXPECT_GE((ControlLoop::Now() - start).ns, Milliseconds(100).ns);
}

TEST(CmRecords, Endpoints_BothWays) {
  EXPECT_EQ(session::SockaddrOf({}).family, 0);
  const auto v4 = session::EndpointOf(Address(kFirst, 80));
  ASSERT_TRUE(v4.has_value());
  EXPECT_EQ(v4->address, wire::Gid::FromV4(kFirst));
  const rocegw_sockaddr back = session::SockaddrOf(*v4);
  EXPECT_EQ(back.family, AF_INET);
  EXPECT_EQ(back.port, 80);
  EXPECT_EQ(back.address[0], 192);
  rocegw_sockaddr v6{};
  v6.family = AF_INET6;
  v6.port = 1;
  v6.scope_id = 7;
  v6.flow_info = 0xFFF12345;
  v6.address[0] = 0xFE;
  v6.address[1] = 0x80;
  const auto six = session::EndpointOf(v6);
  ASSERT_TRUE(six.has_value());
  EXPECT_EQ(six->scope_id, 7u);
  EXPECT_EQ(six->flow_label, 0x12345u);
  EXPECT_EQ(session::SockaddrOf(*six).family, AF_INET6);
  v6.family = 99;
  EXPECT_FALSE(session::EndpointOf(v6).has_value());
}

}  // namespace
}  // namespace rocegw::testing
