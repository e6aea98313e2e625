// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/metrics/controller_metrics.h"

#include <gtest/gtest.h>

#include "controlplane/identity/fleet_key_rotation.h"
#include "controlplane/store/local/memory_store.h"
#include "tests/support/fleet_fixture.h"
#include "tests/support/series_count.h"

namespace rocegw::testing::controller_metrics {
namespace {

size_t SeriesWith(int gateways) {
  server::MeasuredStore store(store::NewMemoryStore());
  for (int i = 0; i < gateways; ++i) {
    const std::string id = std::to_string(i);
    const auto written =
        store.Txn({.compares = {},
                   .then = {IntentOf(GatewayWith("g" + id)), IntentOf(TenantWith("t" + id)),
                            IntentOf(PoolWith("t" + id, "p", ""))},
                   .otherwise = {}});
    EXPECT_TRUE(written.ok());
  }
  const auto follower = std::move(*sync::FleetFollower::Start(store));
  sync::StatusWriter statuses(store);
  const sync::NodeHub hub(*follower, statuses, store.uuid());
  process::Readiness readiness;
  const server::ControllerMetrics metrics(store, *follower, hub, readiness);
  return SeriesOf(metrics.Collect());
}

// The gateways report about single gateways and pools.
TEST(ControllerMetrics, Series_DoNotGrowWithTheFleet) {
  const size_t empty = SeriesWith(0);
  EXPECT_GT(empty, 10u);
  EXPECT_LE(empty, 200u);
  EXPECT_EQ(SeriesWith(100), empty);
}

TEST(ControllerMetrics, RotationOfTheFleetsKeys_HasItsTime) {
  server::MeasuredStore store(store::NewMemoryStore());
  const identity::TimePoint now(std::chrono::seconds(1'800'000'000));
  const auto rotation = identity::PlanKeyRotation({}, std::chrono::hours(24), now);
  ASSERT_TRUE(store.Txn({.compares = {}, .then = rotation.step.operations, .otherwise = {}}).ok());
  const auto follower = std::move(*sync::FleetFollower::Start(store));
  sync::StatusWriter statuses(store);
  const sync::NodeHub hub(*follower, statuses, store.uuid());
  process::Readiness readiness;
  const server::ControllerMetrics metrics(store, *follower, hub, readiness);
  for (const auto& family : metrics.Collect()) {
    if (family.name != "rocegw_fleet_key_rotation_timestamp_seconds") continue;
    EXPECT_EQ(family.metric.at(0).gauge.value, 1.8e9);
    return;
  }
  FAIL() << "no such metric";
}

}  // namespace
}  // namespace rocegw::testing::controller_metrics
