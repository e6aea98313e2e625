// SPDX-License-Identifier: Apache-2.0
// Runs of nodes through their steps: issues commands, takes results, turns back after a failure.
// Decides nothing about which node begins when. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/drive/record.h"
#include "controlplane/migration/drive/record_writer.h"

namespace rocegw::migration {

// Returns true if commands of the node's activity are sent.
bool IsInHand(const NodeRecord& node);

class NodeRuns {
 public:
  NodeRuns(const Plan& plan, Record& record, RecordWriter& writer)
      : plan_(plan), record_(record), writer_(writer) {}

  // Event that concerns the whole migration, by its severity for that.
  struct Incident {
    PauseReason reason = PauseReason::kNone;
    std::string text;
  };
  // Returns the incidents since the last call.
  std::vector<Incident> TakeIncidents() { return std::move(incidents_); }

  void Start(uint32_t node, Activity activity);
  // Turns a node back; at once, or after the result of the command that runs.
  void TurnBack(uint32_t node, const std::string& reason);
  // Returns false if another controller drives.
  bool OnResult(const StepResult& result);
  void OnLost(uint32_t node);
  void OnBack(uint32_t node);
  // Continues a held or quarantined node, or one whose way back failed.
  void Continue(uint32_t node);
  // A person takes charge of the node.
  void Skip(uint32_t node, const std::string& reason);
  // Forgets a failed or rolled-back run.
  void Reset(uint32_t node);
  // Asks the storage again, where the node waits for the other nodes of a flag day: its answer may
  // be days old.
  void AskAgainBeforeCordon(uint32_t node);
  // Sends the commands without result again, for a new epoch.
  void SendAgain();

  // Handles deadlines and lost nodes, and issues the commands that are due.
  void Proceed();

 private:
  // Points that all nodes of a flag day have reached.
  struct Barrier {
    bool may_cordon = true;
    bool may_stop = true;
    bool may_switch = true;
    bool may_start = true;
    bool may_stop_new = true;
    bool may_restore = true;
    bool may_start_old = true;
  };
  Barrier BarrierNow() const;
  bool AskAgainWhereAnswersAreOld();
  bool Passes(const Barrier& barrier, const NodeRecord& node) const;
  Step StepOf(const NodeRecord& node) const;
  void Issue(uint32_t node);
  void Send(uint32_t node);
  void KeepFacts(NodeRecord& node, Step step, const Evidence& evidence);
  void Complete(uint32_t node);
  void Fail(uint32_t node, const std::string& reason);
  void Repeat(uint32_t node, const std::string& reason);
  void AskAgain(NodeRecord& node) const;
  void Hold(uint32_t node, const std::string& reason);
  void BeginUndo(uint32_t node, const std::string& reason);
  void CheckLost(uint32_t node);
  void Report(PauseReason reason, uint32_t node, const std::string& text);

  const Plan& plan_;
  Record& record_;
  RecordWriter& writer_;
  std::vector<Incident> incidents_;
};

}  // namespace rocegw::migration
