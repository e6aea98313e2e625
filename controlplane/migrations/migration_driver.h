// SPDX-License-Identifier: Apache-2.0
// Driver of all migrations of a store: the elected controller drives them, and its writes carry the
// fence of its term. Orders of persons reach it through the store, whichever controller took them.
// Owns a thread; destroyed before its store, nodes,
// gates and board.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "controlplane/migrations/driven_migration.h"
#include "controlplane/migrations/migration_board.h"
#include "controlplane/store/election.h"

namespace rocegw::migrations {

class MigrationDriver {
 public:
  // `candidate`: host and process, for display.
  MigrationDriver(store::Store& store, NodeAccess& nodes, GateSource& gates, MigrationBoard& board,
                  std::string candidate);
  ~MigrationDriver();
  MigrationDriver(const MigrationDriver&) = delete;
  MigrationDriver& operator=(const MigrationDriver&) = delete;

 private:
  void Run();
  void Pass();
  // Loads all migrations; returns false if the store does not answer.
  bool Lead(const store::Term& term);
  void StandDown();
  void FollowChanges();
  void Load(const std::string& id);

  void Post();

  const DriverContext context_;
  MigrationBoard& board_;
  std::optional<store::Term> term_;  // term of the loaded migrations
  std::map<std::string, std::unique_ptr<DrivenMigration>> driven_;
  std::unique_ptr<store::Watch> watch_;
  std::atomic<bool> stopping_{false};
  store::Election election_;
  std::thread thread_;
};

}  // namespace rocegw::migrations
