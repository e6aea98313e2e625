// SPDX-License-Identifier: Apache-2.0
// The limit `channels` of a pool, hit by an unmodified program: it goes on as plain RoCEv2, and
// gateway and operator know why.
#include <algorithm>

#include "tests/e2e/pools/two_gateways.h"

namespace rocegw::testing {
namespace {

TEST_F(TwoGateways, Channels_OneMoreGoesNativeWithReasonEventAndCounter) {
  const char* const pool = "tenants/red/pools/small";
  auto red = Connect("red", 2);
  ASSERT_EQ(red->Line(), "2 of 2 answered") << daemon_->Log();
  std::vector<types::v1::QueuePair> qps = Qps();
  ASSERT_EQ(qps.size(), 2u);
  std::ranges::sort(qps, {}, &types::v1::QueuePair::transport);
  EXPECT_EQ(qps[0].transport(), "channel") << qps[0].transport_reason();
  EXPECT_EQ(qps[1].transport(), "native");
  EXPECT_EQ(qps[1].transport_reason(),
            "no more channels for its pool: a limit of channels is reached");
  EXPECT_EQ(EventOf(pool, "channels"),
            "tenants/red/pools/small: limit of channels reached, which is 1 for the pool");
  EXPECT_EQ(Refused(pool, "channels"), 1u);
  EXPECT_EQ(LimitOf(pool, "channels").used(), 1u);
  EXPECT_EQ(LimitOf(pool, "channels").peak(), 1u);
  EXPECT_NE(daemon_->Log().find("limit of channels"), std::string::npos);

  // The other pool has a channel for each type of service.
  auto blue = Connect("blue", 2);
  ASSERT_EQ(blue->Line(), "2 of 2 answered");
  EXPECT_EQ(LimitOf("tenants/blue/pools/big", "channels").used(), 2u);
  EXPECT_EQ(Refused("tenants/blue/pools/big", "channels"), 0u);
  EXPECT_EQ(LimitOf(pool, "channels").used(), 1u);

  red->End();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (LimitOf(pool, "channels").used() != 0 && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_EQ(LimitOf(pool, "channels").used(), 0u);
  EXPECT_EQ(LimitOf("tenants/blue/pools/big", "channels").used(), 2u);
  auto again = Connect("red", 1);
  ASSERT_EQ(again->Line(), "1 of 1 answered");
  EXPECT_EQ(LimitOf(pool, "channels").used(), 1u);
}

}  // namespace
}  // namespace rocegw::testing
