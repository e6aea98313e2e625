// SPDX-License-Identifier: Apache-2.0
// Summary of all migrations for metrics.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/api/driving/board.h"
#include "controlplane/migrations/stored_migration.h"

namespace rocegw::migrations {

struct MigrationSummary {
  std::string name;          // "there"
  std::string state;         // "RUNNING"
  std::string pause_reason;  // "gate"; empty: not paused
  int64_t since = 0;         // begin of the state, seconds since 1970
  uint64_t changes = 0;      // changed states since its begin
  size_t out_of_service = 0;
  // Number of nodes by name of the wave and state.
  std::map<std::pair<std::string, std::string>, size_t> nodes;
};

MigrationSummary SummaryOf(const StoredMigration& stored);

struct MigrationsSummary {
  bool drives = false;
  std::vector<MigrationSummary> migrations;
};

using MigrationBoard = api::Board<MigrationsSummary>;

}  // namespace rocegw::migrations
