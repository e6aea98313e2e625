// SPDX-License-Identifier: Apache-2.0
// One migration that this controller drives: brings events to the pure controller, stores each
// result, and sends what the stored record says is to be done. A command is derived from the stored
// record only, so that a command is never sent before it is stored, and a controller that takes
// over sends the same ones. The driver's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "controlplane/migrations/gates/gate_source.h"
#include "controlplane/migrations/nodes/node_answers.h"
#include "controlplane/migrations/nodes/preflight.h"
#include "controlplane/migrations/stored_migration.h"

namespace rocegw::migrations {

// Surroundings of a driven migration; they outlive it.
struct DriverContext {
  store::Store& store;
  NodeAccess& nodes;
  GateSource& gates;
  std::shared_ptr<Inbox> inbox;
  std::string who;  // host and process of this controller
};

class DrivenMigration {
 public:
  // `fence`: compare of the driver's term.
  DrivenMigration(const DriverContext& context, store::Compare fence, StoredMigration stored);

  // Takes the rows as another controller's API wrote them.
  void Replace(StoredMigration stored);
  void OnAnswer(const Arrived& arrived, int64_t now);
  // Does what is due at `now`, seconds since 1970.
  void Proceed(int64_t now);

  const StoredMigration& stored() const { return stored_; }
  // Returns true if another controller drives.
  bool lost_term() const { return lost_term_; }

 private:
  // Handles and stores an event. Returns false if it was not stored.
  bool Apply(const migration::Event& event, int64_t now);
  void Reload();
  void TakeOver(int64_t now);
  void LookAtNodes(int64_t now);
  void SendCommands(int64_t now);
  void AskGates(int64_t now);
  void OnHealth(const Arrived& arrived, int64_t now);
  void Note(migration::Outcome outcome, const std::string& text);
  void EndGates(int64_t now);
  // Asks the plan's gates between the rounds that end waves.
  void WatchGates(int64_t now);
  void EvaluateGates(Purpose purpose, uint64_t number);
  void OnGates(const Arrived& arrived, int64_t now);
  void RunPreflight(int64_t now);
  void LookForDrift(int64_t now);
  void OnInventory(const Arrived& arrived, int64_t now);
  // Asks one question of the preflight, or notes why the node cannot be asked.
  void AskForPreflight(const Preflight::Question& question);
  // Returns what takes the answer of a node to the inbox.
  std::function<void(NodeAnswer)> ToInbox(uint32_t node, Purpose purpose, uint64_t number) const;
  void Ask(uint32_t node, fleet::v1::MigrationCall call, Purpose purpose, uint64_t number,
           int64_t limit);

  // Answers to the questions that end a wave: the nodes' health and the plan's gates.
  struct Gates {
    uint64_t round = 0;  // that was asked
    size_t waiting = 0;
    migration::Outcome worst = migration::Outcome::kDone;
    std::string text;
  };

  const DriverContext& context_;
  const store::Compare fence_;
  StoredMigration stored_;
  bool taken_over_ = false;
  bool lost_term_ = false;
  int64_t take_over_at_ = 0;
  bool due_ = true;  // a tick is due whatever the time
  int64_t wake_at_ = 0;
  std::map<uint64_t, int64_t> sent_;  // commands in flight; value: sent again then, 0: waits
  Gates gates_;
  std::optional<Preflight> preflight_;
  uint64_t questions_ = 0;      // number of the newest round of preflight or inventory questions
  bool gates_watched_ = false;  // an answer is awaited
  int64_t watch_gates_at_ = 0;
  bool drift_asked_ = false;
  int64_t drift_at_ = 0;
  uint32_t drift_node_ = 0;
};

}  // namespace rocegw::migrations
