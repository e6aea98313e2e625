// SPDX-License-Identifier: Apache-2.0
// Multicast through the attach protocol: permissions, membership of ports, and cleanup after
// programs.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <map>
#include <optional>

#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

constexpr uint32_t kUdp = 0x0111;
const wire::Gid kGroup = wire::Gid::FromV4(0xEF010203);

class MulticastGroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host.server->services().multicast.membership = [this](size_t device, const wire::Gid& group,
                                                          bool joined) -> Status {
      EXPECT_EQ(device, 0u);
      if (joined && port_error != 0) return {port_error, "the port has no room"};
      EXPECT_EQ(heard[group], !joined) << "once each";
      heard[group] = joined;
      return OkStatus();
    };
    ASSERT_TRUE(client.Hello());
    context = client.OpenContext();
    pd = client.AllocPd(context);
    cq = client.CreateCq(context).handle;
  }
  void TearDown() override { EXPECT_EQ(host.BrokenRules(), std::vector<std::string>()); }

  rocegw_qp_reply CreateQp(uint32_t type = ROCEGW_QPT_UD) { return client.CreateQp(pd, cq, type); }
  int Attach(uint32_t qp, const wire::Gid& group = kGroup,
             uint32_t type = ROCEGW_MSG_ATTACH_MULTICAST) {
    auto request = TestClient::Request<rocegw_multicast>(type);
    request.qp = qp;
    std::copy(group.bytes.begin(), group.bytes.end(), request.group);
    client.Call<rocegw_object_reply>(request);
    return client.error();
  }
  int Detach(uint32_t qp, const wire::Gid& group = kGroup) {
    return Attach(qp, group, ROCEGW_MSG_DETACH_MULTICAST);
  }
  size_t MembersOn(size_t worker) { return host.workers[worker]->multicast.count({0, kGroup}); }

  std::map<wire::Gid, bool> heard;
  int port_error = 0;
  SessionHost host;
  TestClient client{host};
  uint32_t context = 0;
  uint32_t pd = 0;
  uint32_t cq = 0;
};

TEST_F(MulticastGroupsTest, FirstJoinsThePort_LastLeavesIt_WorkersKnowAll) {
  const uint32_t one = CreateQp().handle;
  const uint32_t two = CreateQp().handle;
  EXPECT_EQ(Attach(one), 0);
  EXPECT_TRUE(heard[kGroup]);
  EXPECT_EQ(Attach(two), 0);
  EXPECT_EQ(Attach(two), 0) << "attaching twice is attaching once";
  for (size_t w = 0; w < host.workers.size(); ++w) EXPECT_EQ(MembersOn(w), 2u);
  EXPECT_EQ(Detach(one), 0);
  EXPECT_EQ(Detach(one), EINVAL);
  EXPECT_TRUE(heard[kGroup]);
  EXPECT_EQ(Detach(two), 0);
  EXPECT_FALSE(heard[kGroup]);
  for (size_t w = 0; w < host.workers.size(); ++w) EXPECT_EQ(MembersOn(w), 0u);
}

TEST_F(MulticastGroupsTest, OnlyDatagramQueuePairs_AndOnlyGroups) {
  EXPECT_EQ(Attach(CreateQp(ROCEGW_QPT_RC).handle), EINVAL);
  const uint32_t qp = CreateQp().handle;
  EXPECT_EQ(Attach(qp, wire::Gid::FromV4(0x0A000001)), EINVAL);
  EXPECT_EQ(Attach(qp, wire::Gid{}), EINVAL);
  EXPECT_EQ(Attach(qp + 50), EINVAL);
  EXPECT_EQ(Attach(qp, *wire::ParseGid("ff1e::7")), 0);
  EXPECT_TRUE(heard.empty() || heard.size() == 1);
  EXPECT_EQ(Detach(qp, *wire::ParseGid("ff1e::7")), 0);
}

TEST_F(MulticastGroupsTest, PortRefuses_TheProgramGetsItsReason) {
  const uint32_t qp = CreateQp().handle;
  port_error = ENOBUFS;
  EXPECT_EQ(Attach(qp), ENOBUFS);
  EXPECT_TRUE(host.Told("the port has no room; the kernel's limit is"));
  EXPECT_EQ(MembersOn(0), 0u);
  port_error = 0;
  EXPECT_EQ(Attach(qp), 0);
  EXPECT_EQ(Detach(qp), 0);
}

TEST_F(MulticastGroupsTest, APoolHearsItsShareOfWhatThePortCanHear) {
  session::Services& services = host.server->services();
  services.multicast.capacity = [](size_t, bool ipv4) -> std::optional<size_t> {
    if (!ipv4) return std::nullopt;
    return 20;
  };
  tenant::PoolSettings other = services.pools.FindPool(session::kDefaultPool)->settings();
  other.name = "tenants/default/pools/other";
  services.pools.SetPool(other);
  const uint32_t qp = CreateQp().handle;
  const auto group = [](uint32_t i) { return wire::Gid::FromV4(0xEF000000 + i); };
  for (uint32_t i = 0; i < 10; ++i) ASSERT_EQ(Attach(qp, group(i)), 0) << i;
  EXPECT_EQ(Attach(qp, group(10)), ENOMEM);
  EXPECT_TRUE(host.Told("net.ipv4.igmp_max_memberships"));
  EXPECT_EQ(Attach(CreateQp().handle, group(9)), 0) << "the port hears it for this pool already";
  EXPECT_EQ(Attach(qp, *wire::ParseGid("ff1e::7")), 0) << "IPv6 is counted apart";

  const uint64_t neighbour = services.pools.FindPool(other.name)->id();
  EXPECT_FALSE(services.multicast.ShareExceeded({neighbour, 0, group(20)}, 2).has_value());
  EXPECT_EQ(Detach(qp, group(3)), 0);
  EXPECT_EQ(Attach(qp, group(10)), 0);
  EXPECT_EQ(Attach(qp, group(3)), ENOMEM);
}

TEST_F(MulticastGroupsTest, MoreThanASessionMayHave_NoMemory) {
  const uint32_t qp = CreateQp().handle;
  const uint32_t most = host.server->services().options.device.max_multicast;
  for (uint32_t i = 0; i < most; ++i)
    ASSERT_EQ(Attach(qp, wire::Gid::FromV4(0xEF000000 + i)), 0) << i;
  EXPECT_EQ(Attach(qp, wire::Gid::FromV4(0xEFFFFFFF)), ENOMEM);
  EXPECT_TRUE(host.Told("multicast attachments, the most that one program may have"));
}

// A datagram to a group is delivered to all its members at once.
TEST_F(MulticastGroupsTest, MoreThanAPoolMayAttachToAGroup_NoMemory) {
  session::Services& services = host.server->services();
  const session::MulticastGroups::Attachment of_pool{
      services.pools.FindPool(session::kDefaultPool)->id(), 0, kGroup};
  const uint32_t most = services.options.device.max_multicast;
  for (uint32_t i = 0; i < most; ++i) ASSERT_TRUE(services.multicast.Add(of_pool).ok());
  const uint32_t qp = CreateQp().handle;
  EXPECT_EQ(Attach(qp), ENOMEM);
  EXPECT_TRUE(host.Told("queue pairs to one multicast group"));
  services.multicast.Remove(of_pool);
  EXPECT_EQ(Attach(qp), 0);
}

TEST_F(MulticastGroupsTest, AttachedQueuePair_IsNotDestroyed_ButGoesWithItsProgram) {
  const uint32_t qp = CreateQp().handle;
  ASSERT_EQ(Attach(qp), 0);
  client.Object(ROCEGW_MSG_DESTROY_QP, qp);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_CLOSE_CONTEXT, context);
  EXPECT_EQ(client.error(), 0);
  EXPECT_FALSE(heard[kGroup]);
  EXPECT_EQ(MembersOn(1), 0u);
  context = client.OpenContext();
  pd = client.AllocPd(context);
  cq = client.CreateCq(context).handle;
  ASSERT_EQ(Attach(CreateQp().handle), 0);
  client.Disconnect();
  host.Settle();
  EXPECT_FALSE(heard[kGroup]);
  EXPECT_EQ(MembersOn(0), 0u);
}

TEST_F(MulticastGroupsTest, JoinOfAnId_TellsWhereDatagramsGo) {
  const uint32_t channel =
      client
          .Call<rocegw_object_reply>(
              TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CM_CREATE_CHANNEL))
          .handle;
  const UniqueFd events = std::move(client.received_fd);
  auto create = TestClient::Request<rocegw_cm_create_id>(ROCEGW_MSG_CM_CREATE_ID);
  create.channel = channel;
  create.port_space = kUdp;
  create.cookie = 321;
  const uint32_t id = client.Call<rocegw_object_reply>(create).handle;
  auto join = TestClient::Request<rocegw_cm_join>(ROCEGW_MSG_CM_JOIN);
  join.id = id;
  join.join = 5;
  join.group.family = AF_INET;
  join.group.address[0] = 0xEF;
  join.group.address[3] = 9;
  client.Call<rocegw_object_reply>(join);
  EXPECT_EQ(client.error(), EINVAL) << "bound to no device yet";
  const wire::Gid own = SessionHost::MakeDevice().gids[0];
  ASSERT_TRUE(own.IsV4());
  auto bind = TestClient::Request<rocegw_cm_bind>(ROCEGW_MSG_CM_BIND);
  bind.id = id;
  bind.address.family = AF_INET;
  std::copy(own.bytes.begin() + 12, own.bytes.end(), bind.address.address);
  client.Call<rocegw_cm_id_reply>(bind);
  ASSERT_EQ(client.error(), 0);
  client.Call<rocegw_object_reply>(join);
  ASSERT_EQ(client.error(), 0);
  rocegw_cm_event event{};
  ASSERT_EQ(recv(events.get(), &event, sizeof event, MSG_DONTWAIT), ssize_t{sizeof event});
  EXPECT_EQ(event.type, 12u);
  EXPECT_EQ(event.status, 0);
  EXPECT_EQ(event.id, id);
  EXPECT_EQ(event.cookie, 321u);
  EXPECT_EQ(event.join, 5u);
  EXPECT_EQ(event.param.qpn, 0xFFFFFFu);
  EXPECT_EQ(event.param.qkey, 0x01234567u);
  EXPECT_EQ(event.dgid[12], 0xEF);
  EXPECT_EQ(event.dgid[15], 9);
  // An address that is no group; a group of the other family.
  join.group.address[0] = 10;
  client.Call<rocegw_object_reply>(join);
  EXPECT_EQ(client.error(), EINVAL);
  join.group = {};
  join.group.family = AF_INET6;
  join.group.address[0] = 0xFF;
  client.Call<rocegw_object_reply>(join);
  EXPECT_EQ(client.error(), EINVAL);
}

}  // namespace
}  // namespace rocegw::testing
