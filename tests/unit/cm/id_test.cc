// SPDX-License-Identifier: Apache-2.0
// Ids before they connect: addresses, ports, options, resolving, listening, limits, foreign owners.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "gateway/cm/path/port_table.h"
#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

using testing::AnyV4;
using testing::Host;
using testing::kOtherProgram;
using testing::kProgram;
using testing::V4;

Endpoint At(const wire::Gid& gid, uint16_t port) { return {gid, port}; }
wire::Gid LoopbackV4() { return wire::Gid::FromV4(0x7F000001); }

class IdTest : public ::testing::Test {
 protected:
  IdInfo Info(CmHandle id) {
    IdInfo info;
    EXPECT_EQ(host.engine().QueryId(kProgram, id, info), 0);
    return info;
  }
  Host host{V4(1), 1};
};

TEST_F(IdTest, BindToOwnAddress_BindsTheDevice) {
  const CmHandle id = host.Create();
  ASSERT_EQ(host.Do(id, Bind{At(V4(1), 7000)}), 0);
  const IdInfo info = Info(id);
  EXPECT_EQ(info.device, 0);
  EXPECT_EQ(info.source_gid, V4(1));
  EXPECT_EQ(info.source_gid_index, 3);
  EXPECT_EQ(info.local.port, 7000);
}

TEST_F(IdTest, BindToWildcard_BindsNoDevice_AndPicksAPort) {
  const CmHandle id = host.Create();
  ASSERT_EQ(host.Do(id, Bind{AnyV4(0)}), 0);
  EXPECT_EQ(Info(id).device, -1);
  EXPECT_GE(Info(id).local.port, 32768);
  EXPECT_LE(Info(id).local.port, 60999);
}

// As a kernel does: libfabric tests by this if it must search for devices itself.
TEST_F(IdTest, BindToLoopback_BindsNoDevice_AndKeepsTheAddress) {
  const CmHandle id = host.Create();
  ASSERT_EQ(host.Do(id, Bind{At(LoopbackV4(), 7000)}), 0);
  EXPECT_EQ(Info(id).device, -1);
  EXPECT_EQ(Info(id).local.address, LoopbackV4());
}

TEST_F(IdTest, BindToForeignAddress_IsNotAvailable) {
  EXPECT_EQ(host.Do(host.Create(), Bind{At(V4(2), 7000)}), EADDRNOTAVAIL);
}

TEST_F(IdTest, BindTwice_IsInvalid) {
  const CmHandle id = host.Create();
  ASSERT_EQ(host.Do(id, Bind{AnyV4(7000)}), 0);
  EXPECT_EQ(host.Do(id, Bind{AnyV4(7001)}), EINVAL);
}

TEST_F(IdTest, SamePort_IsInUse_UnlessBothReuse) {
  const CmHandle first = host.Create();
  const CmHandle second = host.Create();
  ASSERT_EQ(host.Do(first, Bind{AnyV4(7000)}), 0);
  EXPECT_EQ(host.Do(second, Bind{At(V4(1), 7000)}), EADDRINUSE);
  ASSERT_EQ(host.Do(first, SetOption{SetOption::Name::kReuseAddress, 1}), 0);
  EXPECT_EQ(host.Do(second, Bind{At(V4(1), 7000)}), EADDRINUSE);
  ASSERT_EQ(host.Do(second, SetOption{SetOption::Name::kReuseAddress, 1}), 0);
  EXPECT_EQ(host.Do(second, Bind{At(V4(1), 7000)}), 0);
  EXPECT_EQ(host.Do(second, Listen{1}), EADDRINUSE);
  ASSERT_EQ(host.Do(first, DestroyId{}), 0);
  EXPECT_EQ(host.Do(second, Listen{1}), 0);
}

TEST_F(IdTest, SamePort_InAnotherPortSpaceOrProgram) {
  ASSERT_EQ(host.Do(host.Create(), Bind{AnyV4(7000)}), 0);
  EXPECT_EQ(host.Do(host.Create(PortSpace::kUdp, QpType::kUd), Bind{AnyV4(7000)}), 0);
  const CmHandle other = host.Create(PortSpace::kTcp, QpType::kRc, kOtherProgram);
  EXPECT_EQ(host.Do(other, Bind{AnyV4(7000)}, kOtherProgram), EADDRINUSE);
}

TEST_F(IdTest, WildcardsOfBothFamilies_CoexistWithAfOnly) {
  const CmHandle four = host.Create();
  const CmHandle six = host.Create();
  ASSERT_EQ(host.Do(four, SetOption{SetOption::Name::kAfOnly, 1}), 0);
  ASSERT_EQ(host.Do(six, SetOption{SetOption::Name::kAfOnly, 1}), 0);
  ASSERT_EQ(host.Do(four, Bind{AnyV4(7000)}), 0);
  EXPECT_EQ(host.Do(six, Bind{At({}, 7000)}), 0);
}

TEST_F(IdTest, Listen_WithoutBind_PicksAPort) {
  const CmHandle id = host.Create();
  ASSERT_EQ(host.Do(id, Listen{}), 0);
  EXPECT_NE(Info(id).local.port, 0);
  EXPECT_EQ(host.Do(id, Listen{}), EINVAL);
}

TEST_F(IdTest, Resolve_GoesThroughItsStates) {
  const CmHandle id = host.Create();
  EXPECT_EQ(host.Do(id, ResolveRoute{}), EINVAL);
  EXPECT_EQ(host.Do(id, Connect{Host::Params(0x10)}), EINVAL);
  ResolveAddress resolve;
  resolve.destination = At(V4(2), 7000);
  ASSERT_EQ(host.Do(id, resolve), 0);
  EXPECT_EQ(host.Do(id, resolve), EINVAL);
  EXPECT_EQ(host.Do(id, Listen{}), EINVAL);
  AddressResolved route;
  route.source = V4(1);
  route.destination = V4(2);
  ASSERT_EQ(host.Do(id, route), 0);
  EXPECT_EQ(host.NextEvent()->type, EventType::kAddrResolved);
  EXPECT_EQ(Info(id).local.address, V4(1));
  EXPECT_EQ(Info(id).path_mtu, 0);
  ASSERT_EQ(host.Do(id, SetOption{SetOption::Name::kTypeOfService, 0x68}), 0);
  ASSERT_EQ(host.Do(id, ResolveRoute{}), 0);
  EXPECT_EQ(host.NextEvent()->type, EventType::kRouteResolved);
  EXPECT_EQ(Info(id).path_mtu, 3);
  EXPECT_EQ(Info(id).traffic_class, 0x68);
  EXPECT_EQ(Info(id).destination_gid, V4(2));
  EXPECT_EQ(host.engine().deadline(), kNever);
}

TEST_F(IdTest, Resolve_Failures_AreEvents_AndMayBeTriedAgain) {
  const CmHandle id = host.Create();
  ResolveAddress resolve;
  resolve.destination = At(V4(2), 7000);
  ASSERT_EQ(host.Do(id, resolve), 0);
  AddressResolved route;
  route.error = EHOSTUNREACH;
  ASSERT_EQ(host.Do(id, route), 0);
  auto event = host.NextEvent();
  EXPECT_EQ(event->type, EventType::kAddrError);
  EXPECT_EQ(event->status, -EHOSTUNREACH);
  ASSERT_EQ(host.Do(id, resolve), 0);
  route.error = 0;
  route.source = V4(99);
  ASSERT_EQ(host.Do(id, route), 0);
  EXPECT_EQ(host.NextEvent()->status, -ENODEV);
  ASSERT_EQ(host.Do(id, resolve), 0);
  host.Advance(Milliseconds(1999));
  EXPECT_FALSE(host.NextEvent().has_value());
  host.Advance(Milliseconds(1));
  EXPECT_EQ(host.NextEvent()->status, -ETIMEDOUT);
  EXPECT_EQ(host.Do(id, route), EINVAL);
}

TEST_F(IdTest, Resolve_FromABoundAddress_KeepsIt) {
  LocalAddress addresses[2];
  addresses[0].gid = V4(1);
  addresses[1].gid = V4(5);
  addresses[1].gid_index = 9;
  host.SetAddresses(addresses);
  const CmHandle id = host.Create();
  ResolveAddress resolve;
  resolve.has_source = true;
  resolve.source = At(V4(5), 0);
  resolve.destination = At(V4(2), 7000);
  ASSERT_EQ(host.Do(id, resolve), 0);
  AddressResolved route;
  route.source = V4(1);
  route.destination = V4(2);
  ASSERT_EQ(host.Do(id, route), 0);
  EXPECT_EQ(host.NextEvent()->status, -EINVAL);
  ASSERT_EQ(host.Do(id, resolve), 0);
  route.source = V4(5);
  ASSERT_EQ(host.Do(id, route), 0);
  EXPECT_EQ(host.NextEvent()->type, EventType::kAddrResolved);
  EXPECT_EQ(Info(id).source_gid_index, 9);
}

TEST_F(IdTest, Resolve_MixedFamilies_IsInvalid) {
  ResolveAddress resolve;
  resolve.has_source = true;
  resolve.source = At(V4(1), 0);
  resolve.destination.address.bytes[0] = 0x20;
  EXPECT_EQ(host.Do(host.Create(), resolve), EINVAL);
}

TEST_F(IdTest, RouteOverATinyMtu_IsARouteError) {
  host.SetMtu(300);
  const CmHandle id = host.Create();
  ResolveAddress resolve;
  resolve.destination = At(V4(2), 7000);
  AddressResolved route;
  route.source = V4(1);
  route.destination = V4(2);
  ASSERT_EQ(host.Do(id, resolve), 0);
  ASSERT_EQ(host.Do(id, route), 0);
  host.actions.events.clear();
  ASSERT_EQ(host.Do(id, ResolveRoute{}), 0);
  EXPECT_EQ(host.NextEvent()->type, EventType::kRouteError);
}

TEST_F(IdTest, AckTimeoutOption_ShowsInTheRequestAndTheAttributes) {
  const CmHandle id = host.Routed(V4(2), 7000);
  ASSERT_EQ(host.Do(id, SetOption{SetOption::Name::kAckTimeout, 20}), 0);
  EXPECT_EQ(host.Do(id, SetOption{SetOption::Name::kAckTimeout, 32}), EINVAL);
  ASSERT_EQ(host.Do(id, Connect{Host::Params(0x111)}), 0);
  EXPECT_EQ(host.Next<wire::CmReq>()->primary.local_ack_timeout, 20);
}

TEST_F(IdTest, ApplicationEce_TravelsUnchanged) {
  const CmHandle id = host.Routed(V4(2), 7000);
  ConnectParams param = Host::Params(0x111);
  param.ece = {0x15B3, 0x1234};
  ASSERT_EQ(host.Do(id, Connect{param}), 0);
  const auto mad = host.NextMad();
  EXPECT_EQ(std::get<wire::CmReq>(mad->body).vendor_id, 0x15B3u);
  EXPECT_EQ(mad->attribute_modifier, 0x1234u);
}

TEST_F(IdTest, Rows_TellStateAndBacklog) {
  const CmHandle listener = host.Listening(7000, 5);
  const CmHandle routed = host.Routed(V4(2), 7001);
  const std::vector<IdRow> rows = host.engine().Ids();
  ASSERT_EQ(rows.size(), 2u);
  for (const IdRow& row : rows) {
    EXPECT_EQ(row.owner, kProgram);
    EXPECT_STREQ(row.state, row.id == listener ? "listening" : "route resolved");
    EXPECT_EQ(row.backlog, row.id == listener ? 5u : 0u);
    EXPECT_EQ(row.info.remote.port, row.id == routed ? 7001 : 0);
  }
}

TEST_F(IdTest, ForeignIds_AreInvalid) {
  const CmHandle id = host.Create();
  EXPECT_EQ(host.Do(id, Bind{AnyV4(7000)}, kOtherProgram), EINVAL);
  EXPECT_EQ(host.Do(id, DestroyId{}, kOtherProgram), EINVAL);
  IdInfo info;
  EXPECT_EQ(host.engine().QueryId(kOtherProgram, id, info), EINVAL);
  EXPECT_EQ(host.Do(CmHandle{12345}, DestroyId{}), EINVAL);
}

TEST_F(IdTest, Creation_RefusesBadHandlesAndLimits) {
  EXPECT_EQ(host.Do(CmHandle{0}, CreateId{}), EINVAL);
  EXPECT_EQ(host.Do(CmHandle{kEngineHandleBit | 5}, CreateId{}), EINVAL);
  EXPECT_EQ(host.Do(CmHandle{5}, CreateId{static_cast<PortSpace>(0x999), QpType::kRc}),
            EPROTONOSUPPORT);
  EXPECT_EQ(host.Do(CmHandle{5}, CreateId{}), 0);
  EXPECT_EQ(host.Do(CmHandle{5}, CreateId{}), EEXIST);
  CmConfig config;
  config.max_ids = 3;
  config.max_ids_per_owner = 2;
  Host small(V4(1), 1, config);
  EXPECT_EQ(small.Do(CmHandle{1}, CreateId{}), 0);
  EXPECT_EQ(small.Do(CmHandle{2}, CreateId{}), 0);
  EXPECT_EQ(small.Do(CmHandle{3}, CreateId{}), ENOMEM);
  EXPECT_EQ(small.Do(CmHandle{3}, CreateId{}, kOtherProgram), 0);
  EXPECT_EQ(small.Do(CmHandle{4}, CreateId{}, kOtherProgram), ENOMEM);
  EXPECT_EQ(small.Do(CmHandle{1}, DestroyId{}), 0);
  EXPECT_EQ(small.Do(CmHandle{4}, CreateId{}, kOtherProgram), 0);
}

TEST_F(IdTest, CommandsOutOfPlace_AreInvalid) {
  const CmHandle id = host.Create();
  EXPECT_EQ(host.Do(id, Accept{Host::Params(0x10)}), EINVAL);
  EXPECT_EQ(host.Do(id, Reject{}), EINVAL);
  EXPECT_EQ(host.Do(id, Establish{}), EINVAL);
  EXPECT_EQ(host.Do(id, Disconnect{}), EINVAL);
  EXPECT_EQ(host.Do(id, CommEstablished{}), EINVAL);
  EXPECT_EQ(host.Do(id, QpFailed{}), 0);
  EXPECT_EQ(host.Do(id, RequestFetched{}), 0);
}

TEST_F(IdTest, CommunicationIds_AreUnpredictableAndDistinct) {
  std::set<uint32_t> ids;
  for (uint32_t i = 0; i < 200; ++i) {
    ASSERT_EQ(host.Do(host.Routed(V4(2), 7000), Connect{Host::Params(0x100 + i)}), 0);
    ids.insert(host.Next<wire::CmReq>()->local_comm_id);
  }
  EXPECT_EQ(ids.size(), 200u);
  EXPECT_GT(*ids.rbegin() - *ids.begin(), 0x40000000u);
}

CmConfig WithEphemeralPorts(uint16_t count) {
  CmConfig config;
  config.first_ephemeral_port = 40000;
  config.last_ephemeral_port = static_cast<uint16_t>(40000 + count - 1);
  return config;
}

// Binds ids of the session to port 0 until that is refused, and returns their number.
uint32_t BindAll(Host& of, SessionId owner, int* error) {
  for (uint32_t bound = 0;; ++bound) {
    const CmHandle id = of.Create(PortSpace::kTcp, QpType::kRc, owner);
    *error = of.Do(id, Bind{AnyV4(0)}, owner);
    if (*error != 0) return bound;
  }
}

TEST_F(IdTest, EphemeralPorts_OfActiveIds_AreSharedWhenFewAreLeft) {
  Host small(V4(1), 1, WithEphemeralPorts(4));
  for (int i = 0; i < 8; ++i) EXPECT_NE(small.Routed(V4(2), 7000).value, 0u);
  EXPECT_EQ(small.engine().port_count(), 4u);
  // Their ports are free for a listener.
  const CmHandle listener = small.Create();
  EXPECT_EQ(small.Do(listener, Bind{AnyV4(0)}), 0);
  EXPECT_NE(small.Routed(V4(2), 7000).value, 0u);
  EXPECT_EQ(small.Do(listener, Listen{4}), 0);
}

TEST_F(IdTest, EphemeralPorts_NearlyAllTaken_AreGivenOnceAsLongAsOneIsNear) {
  Host small(V4(1), 1, WithEphemeralPorts(1000));
  for (int i = 0; i < 1000; ++i) EXPECT_NE(small.Routed(V4(2), 7000).value, 0u);
  EXPECT_GT(small.engine().port_count(), 900u);
}

TEST_F(IdTest, EphemeralPorts_OneSession_LeavesSomeToItsPoolAndToOthers) {
  Host small(V4(1), 1, WithEphemeralPorts(1000));
  small.SetPoolOf([](SessionId owner) { return owner.value < 20 ? 1 : owner.value; });
  int error = 0;
  const uint32_t of_first = BindAll(small, SessionId{10}, &error);
  EXPECT_EQ(error, EADDRNOTAVAIL);
  EXPECT_GT(of_first, 40u);
  EXPECT_LT(of_first, 125u);
  // An active id needs no share.
  const CmHandle active = small.Create(PortSpace::kTcp, QpType::kRc, SessionId{10});
  ResolveAddress resolve;
  resolve.destination = At(V4(2), 7000);
  EXPECT_EQ(small.Do(active, resolve, SessionId{10}), 0);
  EXPECT_GT(BindAll(small, SessionId{11}, &error), 10u);
  for (uint32_t pool = 20; pool < 30; ++pool)
    EXPECT_GT(BindAll(small, SessionId{pool}, &error), 9u);
  // Ports of a session that ends are free for others.
  small.engine().DropOwner(SessionId{10}, small.now, small.actions);
  EXPECT_GT(BindAll(small, SessionId{40}, &error), 20u);
}

TEST_F(IdTest, EphemeralPorts_BoundByNumberOrListenedOn_CountAsWell) {
  Host small(V4(1), 1, WithEphemeralPorts(100));
  int refused = 0;
  for (uint16_t port = 40000; port < 40100; ++port)
    refused += small.Do(small.Create(), Bind{AnyV4(port)}) == EADDRNOTAVAIL ? 1 : 0;
  EXPECT_GT(refused, 80);
  int error = 0;
  EXPECT_GT(BindAll(small, kOtherProgram, &error), 2u);
  EXPECT_EQ(small.Do(small.Create(), Listen{4}), EADDRNOTAVAIL);
  // Other ports are not shared out.
  EXPECT_EQ(small.Do(small.Create(), Bind{AnyV4(7000)}), 0);
}

TEST_F(IdTest, EphemeralPorts_SharedByReuse_CountOnceUntilTheLastIsGone) {
  Host small(V4(1), 1, WithEphemeralPorts(8));
  const auto bind = [&](uint16_t port) {
    const CmHandle id = small.Create();
    EXPECT_EQ(small.Do(id, SetOption{SetOption::Name::kReuseAddress, 1}), 0);
    return small.Do(id, Bind{AnyV4(port)}) == 0 ? id : CmHandle{};
  };
  const CmHandle first = bind(40001);
  const CmHandle second = bind(40001);
  ASSERT_NE(first, CmHandle{});
  ASSERT_NE(second, CmHandle{});
  ASSERT_EQ(small.Do(first, DestroyId{}), 0);
  EXPECT_EQ(bind(40002), CmHandle{}) << "the other one holds the port";
  ASSERT_EQ(small.Do(second, DestroyId{}), 0);
  EXPECT_NE(bind(40002), CmHandle{});
}

TEST_F(IdTest, SamePort_HasABoundedNumberOfIdsOfASession) {
  const auto bind = [&](SessionId owner) {
    const CmHandle id = host.Create(PortSpace::kTcp, QpType::kRc, owner);
    EXPECT_EQ(host.Do(id, SetOption{SetOption::Name::kReuseAddress, 1}, owner), 0);
    return host.Do(id, Bind{AnyV4(7000)}, owner);
  };
  for (size_t i = 0; i < PortTable::kMostOfSession; ++i) ASSERT_EQ(bind(testing::kProgram), 0);
  EXPECT_EQ(bind(testing::kProgram), EADDRINUSE);
  EXPECT_EQ(bind(kOtherProgram), 0);
}

}  // namespace
}  // namespace rocegw::cm
