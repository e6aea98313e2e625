// SPDX-License-Identifier: Apache-2.0
// Metrics of migrations: what a migration shows, and the bound of its series.
#include "controlplane/server/metrics/migration_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rocegw::server {
namespace {

using migrations::MigrationBoard;
using migrations::MigrationSummary;

std::vector<std::string> NamesOf(const std::vector<prometheus::MetricFamily>& families) {
  std::vector<std::string> names;
  for (const auto& family : families) names.push_back(family.name);
  return names;
}

TEST(MigrationMetrics, WithoutMigrationsThereIsWhoDrivesThem) {
  std::vector<prometheus::MetricFamily> families;
  AddMigrationFamilies({.drives = true, .migrations = {}}, families);
  ASSERT_EQ(NamesOf(families), std::vector<std::string>({"rocegw_migrations_leads"}));
  EXPECT_EQ(families[0].metric[0].gauge.value, 1);
}

TEST(MigrationMetrics, SeriesOfNodesAreBounded) {
  MigrationSummary summary{.name = "m", .state = "PAUSED", .pause_reason = "gate", .since = 7};
  for (size_t i = 0; i < 2 * kMostNodeSeries; ++i) summary.nodes[{std::to_string(i), "DONE"}] = 1;
  MigrationSummary last{.name = "z", .state = "PAUSED", .pause_reason = "lost-node", .since = 7};
  last.nodes = {{{"w", "DONE"}, 1}, {{"w", "QUARANTINED"}, 2}, {{"w", "ROLLBACK_FAILED"}, 3}};
  std::vector<prometheus::MetricFamily> families;
  AddMigrationFamilies({.drives = true, .migrations = {summary, summary, last}}, families);
  const auto nodes =
      std::ranges::find(families, "rocegw_migration_nodes", &prometheus::MetricFamily::name);
  ASSERT_NE(nodes, families.end());
  ASSERT_EQ(nodes->metric.size(), kMostNodeSeries);
  // Nodes that wait for a person come first.
  EXPECT_EQ(nodes->metric[0].label[1].value, "QUARANTINED");
  EXPECT_EQ(nodes->metric[1].label[1].value, "ROLLBACK_FAILED");
  EXPECT_EQ(nodes->metric[2].label[0].value, "m");
  const auto paused =
      std::ranges::find(families, "rocegw_migration_paused", &prometheus::MetricFamily::name);
  ASSERT_NE(paused, families.end());
  EXPECT_EQ(paused->metric[0].label[1].value, "gate");
}

}  // namespace
}  // namespace rocegw::server
