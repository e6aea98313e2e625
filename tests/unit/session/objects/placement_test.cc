// SPDX-License-Identifier: Apache-2.0
// The memory placement extensions in sessions: devices, regions and queue pairs have them if the
// gateway's configuration allows it.
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "tests/support/session/session_host.h"

namespace rocegw::testing::placement {
namespace {

session::Options Able(bool able) {
  session::Options options;
  options.placement = able ? MemoryPlacement::kEnabled : MemoryPlacement::kDisabled;
  return options;
}

class SessionPlacement : public ::testing::TestWithParam<bool> {
 protected:
  SessionPlacement() {
    EXPECT_TRUE(client.Hello());
    context = client.OpenContext();
    pd = client.AllocPd(context);
  }
  SessionHost host{2, Able(GetParam())};
  TestClient client{host};
  uint32_t context = 0;
  uint32_t pd = 0;
};
INSTANTIATE_TEST_SUITE_P(Gateway, SessionPlacement, ::testing::Bool(), [](const auto& parameter) {
  return parameter.param ? "Enabled" : "Disabled";
});

TEST_P(SessionPlacement, Device_SaysSo) {
  auto query = TestClient::Request<rocegw_query_device>(ROCEGW_MSG_QUERY_DEVICE);
  const auto reply = client.Call<rocegw_device_reply>(query);
  EXPECT_EQ(reply.features, GetParam() ? uint32_t{ROCEGW_DEVICE_PLACEMENT} : 0u);
}

TEST_P(SessionPlacement, Regions_MayBeFlushed) {
  client.RegMr(pd, 4096, 64, verbs::kAccessLocalWrite | verbs::kAccessFlushGlobal);
  EXPECT_EQ(client.error(), GetParam() ? 0 : EINVAL);
  client.RegMr(pd, 4096, 64, verbs::kAccessLocalWrite | verbs::kAccessFlushPersistent);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_P(SessionPlacement, Workers_HearThatAQueuePairHasThem) {
  const uint32_t cq = client.CreateCq(context, 16).handle;
  const auto qp = client.CreateQp(pd, cq);
  ASSERT_EQ(client.error(), 0);
  host.Settle();
  bool found = false;
  for (const auto& worker : host.workers) {
    for (const auto& [id, session] : worker->sessions) {
      for (const auto& [qpn, linked] : session.qps) {
        found |= qpn == qp.qpn;
        EXPECT_EQ(linked.config.placement, GetParam());
      }
    }
  }
  EXPECT_TRUE(found);
}

// Combinations of the pool's and the gateway's settings.
struct OfPool {
  MemoryPlacement gateway;
  std::optional<bool> pool;
  bool has;
};
class PoolPlacement : public ::testing::TestWithParam<OfPool> {};

TEST_P(PoolPlacement, DeviceRegionsAndQueuePairsFollow) {
  const OfPool& given = GetParam();
  session::Options options;
  options.placement = given.gateway;
  SessionHost host{2, options};
  tenant::PoolSettings settings;
  settings.name = "tenants/default/pools/other";
  settings.trusted = true;
  settings.placement = given.pool;
  host.server->services().pools.SetPool(settings);
  TestClient client{host, settings.name};
  ASSERT_TRUE(client.Hello());
  const auto device = client.Call<rocegw_device_reply>(
      TestClient::Request<rocegw_query_device>(ROCEGW_MSG_QUERY_DEVICE));
  EXPECT_EQ(device.features, given.has ? uint32_t{ROCEGW_DEVICE_PLACEMENT} : 0u);
  const uint32_t context = client.OpenContext();
  const uint32_t pd = client.AllocPd(context);
  client.RegMr(pd, 4096, 64, verbs::kAccessLocalWrite | verbs::kAccessFlushGlobal);
  EXPECT_EQ(client.error(), given.has ? 0 : EINVAL);
  client.CreateQp(pd, client.CreateCq(context, 16).handle);
  host.Settle();
  std::vector<bool> told;
  for (const auto& worker : host.workers) {
    for (const auto& [id, session] : worker->sessions) {
      for (const auto& [qpn, linked] : session.qps) told.push_back(linked.config.placement);
    }
  }
  EXPECT_EQ(told, std::vector{given.has});
}
INSTANTIATE_TEST_SUITE_P(, PoolPlacement,
                         ::testing::Values(OfPool{MemoryPlacement::kDisabled, true, false},
                                           OfPool{MemoryPlacement::kByPool, std::nullopt, false},
                                           OfPool{MemoryPlacement::kByPool, true, true},
                                           OfPool{MemoryPlacement::kByPool, false, false},
                                           OfPool{MemoryPlacement::kEnabled, std::nullopt, true},
                                           OfPool{MemoryPlacement::kEnabled, true, true},
                                           OfPool{MemoryPlacement::kEnabled, false, false}));

// ibv_wr_atomic_write carries its bytes inline, even in a queue that is so long that it has no
// other inline space.
TEST_P(SessionPlacement, QueuePairsHaveRoomForEightBytes) {
  const uint32_t cq = client.CreateCq(context, 16).handle;
  const auto qp = client.CreateQp(pd, cq, ROCEGW_QPT_RC, 16384);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(qp.max_inline >= 8, GetParam());
}

}  // namespace
}  // namespace rocegw::testing::placement
