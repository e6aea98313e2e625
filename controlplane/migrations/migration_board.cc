// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/migration_board.h"

#include <algorithm>

#include "controlplane/migration/drive/availability.h"

namespace rocegw::migrations {

MigrationSummary SummaryOf(const StoredMigration& stored) {
  const migration::Record& record = stored.record;
  MigrationSummary summary{.name = stored.id,
                           .state = std::string(WordOf(record.state)),
                           .pause_reason = {},
                           .since = record.since,
                           .changes = record.changes};
  if (record.state == migration::MigrationState::kPaused)
    summary.pause_reason = WordOf(record.pause_reason);
  // Nodes of a migration that has ended do not change any more.
  if (HasEnded(record)) return summary;
  summary.out_of_service =
      static_cast<size_t>(std::ranges::count_if(record.nodes, migration::CountsAsUnavailable));
  for (const migration::Wave& wave : stored.plan.waves) {
    for (const uint32_t node : wave.nodes)
      ++summary.nodes[{wave.name, std::string(WordOf(record.nodes[node].state))}];
  }
  return summary;
}

}  // namespace rocegw::migrations
