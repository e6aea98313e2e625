// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/migrated_gateways.h"

#include "controlplane/migrations/stored_migration.h"

namespace rocegw::server {

std::map<std::string, std::string> MigratedGateways(const std::vector<store::Entry>& entries) {
  std::map<std::string, std::vector<store::Entry>> by_id;
  for (const store::Entry& entry : entries) {
    const std::string id = migrations::IdOfKey(entry.key);
    if (!id.empty()) by_id[id].push_back(entry);
  }
  std::map<std::string, std::string> gateways;
  for (const auto& [id, own] : by_id) {
    std::string problem;
    const migrations::StoredMigration stored = migrations::ReadMigration(id, own, problem);
    if (!problem.empty() || migrations::HasEnded(stored.record)) continue;
    for (const migration::PlannedNode& node : stored.plan.nodes)
      gateways.emplace("gateways/" + node.name, "migrations/" + id);
  }
  return gateways;
}

}  // namespace rocegw::server
