// SPDX-License-Identifier: Apache-2.0
// State of a gateway beside its objects: what one process counted, its successor goes on counting.
#include "gateway/take_over/history.h"

#include <gtest/gtest.h>

#include "gateway/take_over/gateway_state.h"

namespace rocegw::take_over {
namespace {

TEST(GatewayState, ArrivesAsWritten_AndGoesOn) {
  GatewayState old;
  old.quiet_since_ns = 1234;
  old.drains_locally = true;
  old.history.Add(Milliseconds(14), 7, "0.1.0", 99);
  old.history.AddRefusal(Refusal::kSessions);
  old.history.AddRefusal(Refusal::kSessions);
  old.history.AddRefusal(Refusal::kStopping);
  old.counts = {{"port a worker 0 tx_bytes", uint64_t{1} << 50}, {"port b worker 1 rx_bytes", 3}};
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  hand_over::StateStream out(bytes, TimePoint(), versions);
  old.HandOver(out);

  GatewayState fresh;
  hand_over::StateStream in(bytes, TimePoint());
  fresh.HandOver(in);
  ASSERT_TRUE(in.ok() && in.at_end()) << in.failure();
  EXPECT_EQ(fresh.quiet_since_ns, 1234);
  EXPECT_TRUE(fresh.drains_locally);
  EXPECT_EQ(fresh.counts, old.counts);
  fresh.history.Add(Milliseconds(20), 8, "0.2.0", 100);
  fresh.history.AddRefusal(Refusal::kSessions);
  EXPECT_EQ(fresh.history.count(), 2u);
  EXPECT_EQ(fresh.history.blackouts().count(), 2u);
  EXPECT_EQ(fresh.history.blackouts().sum_ns(), Milliseconds(34).ns);
  EXPECT_EQ(fresh.history.last_blackout().ns, Milliseconds(20).ns);
  EXPECT_EQ(fresh.history.last_ns(), 100);
  EXPECT_EQ(fresh.history.descriptors(), 15u);
  EXPECT_EQ(fresh.history.from_version(), "0.2.0");
  EXPECT_EQ(fresh.history.refusals()[*IndexOf(Refusal::kSessions)], 3u);
  EXPECT_EQ(fresh.history.refusals()[*IndexOf(Refusal::kStopping)], 1u);
}

}  // namespace
}  // namespace rocegw::take_over
