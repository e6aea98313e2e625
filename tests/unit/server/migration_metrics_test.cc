// SPDX-License-Identifier: Apache-2.0
// Metrics of migrations: what a migration shows, and the bound of its series.
#include "controlplane/server/migration_metrics.h"

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
  std::vector<prometheus::MetricFamily> families;
  AddMigrationFamilies({.drives = true, .migrations = {summary, summary}}, families);
  const auto nodes =
      std::ranges::find(families, "rocegw_migration_nodes", &prometheus::MetricFamily::name);
  ASSERT_NE(nodes, families.end());
  EXPECT_EQ(nodes->metric.size(), kMostNodeSeries);
  const auto paused =
      std::ranges::find(families, "rocegw_migration_paused", &prometheus::MetricFamily::name);
  ASSERT_NE(paused, families.end());
  EXPECT_EQ(paused->metric[0].label[1].value, "gate");
}

}  // namespace
}  // namespace rocegw::server
