// SPDX-License-Identifier: Apache-2.0
// Migrations of storage clusters as Prometheus metric families. A fleet has at most 64 migrations;
// series of nodes are counts by wave and state, and there are at most kMostNodeSeries of them,
// nodes that the storage misses until a person decides first.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "controlplane/migrations/migration_board.h"

namespace rocegw::server {

inline constexpr size_t kMostNodeSeries = 1000;

void AddMigrationFamilies(const migrations::MigrationBoard::View& view,
                          std::vector<prometheus::MetricFamily>& families);

}  // namespace rocegw::server
