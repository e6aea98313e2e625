// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/metrics/migration_metrics.h"

#include "gateway/process/http/metric_families.h"

namespace rocegw::server {

using process::AddFamily;
using process::AddSingle;
using process::AddValue;
using prometheus::MetricFamily;
using prometheus::MetricType;

namespace {

bool IsLost(const std::string& state) {
  return state == "QUARANTINED" || state == "ROLLBACK_FAILED";
}

}  // namespace

void AddMigrationFamilies(const migrations::MigrationBoard::View& view,
                          std::vector<MetricFamily>& families) {
  AddSingle(families, "rocegw_migrations_leads", "1: this controller drives migrations",
            MetricType::Gauge, view.drives ? 1 : 0);
  MetricFamily state = {"rocegw_migration_state",
                        "1: state of a migration; of the controller that drives",
                        MetricType::Gauge,
                        {}};
  MetricFamily paused = {
      "rocegw_migration_paused", "1: why a migration is PAUSED", MetricType::Gauge, {}};
  MetricFamily since = {"rocegw_migration_state_since_timestamp_seconds",
                        "begin of the migration's state, since 1970",
                        MetricType::Gauge,
                        {}};
  MetricFamily changes = {"rocegw_migration_changes_total",
                          "changes of states of the migration, its waves and nodes",
                          MetricType::Counter,
                          {}};
  MetricFamily out = {"rocegw_migration_nodes_out_of_service",
                      "nodes that are out of service, or may be",
                      MetricType::Gauge,
                      {}};
  MetricFamily nodes = {
      "rocegw_migration_nodes", "nodes of a migration that has not ended", MetricType::Gauge, {}};
  for (const migrations::MigrationSummary& each : view.migrations) {
    AddValue(state, {{"migration", each.name}, {"state", each.state}}, 1);
    if (!each.pause_reason.empty())
      AddValue(paused, {{"migration", each.name}, {"reason", each.pause_reason}}, 1);
    AddValue(since, {{"migration", each.name}}, static_cast<double>(each.since));
    AddValue(changes, {{"migration", each.name}}, static_cast<double>(each.changes));
    if (!each.nodes.empty())
      AddValue(out, {{"migration", each.name}}, static_cast<double>(each.out_of_service));
  }
  // An alert looks at nodes that wait for a person: others do not take their series.
  for (const bool lost : {true, false}) {
    for (const migrations::MigrationSummary& each : view.migrations) {
      for (const auto& [key, count] : each.nodes) {
        if (nodes.metric.size() == kMostNodeSeries) break;
        if (IsLost(key.second) != lost) continue;
        AddValue(nodes, {{"migration", each.name}, {"state", key.second}, {"wave", key.first}},
                 static_cast<double>(count));
      }
    }
  }
  for (MetricFamily* family : {&state, &paused, &since, &changes, &out, &nodes})
    if (!family->metric.empty()) families.push_back(std::move(*family));
}

}  // namespace rocegw::server
