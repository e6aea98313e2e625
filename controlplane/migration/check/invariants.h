// SPDX-License-Identifier: Apache-2.0
// Checks the twelve invariants of a migration (docs/operate/migration.md) against what a cluster
// really does. The check keeps its own view of states and trusts no decision of the controller; the
// simulator and the tests run it beside each migration. Pure; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/drive/record.h"
#include "controlplane/migration/plan/plan.h"

namespace rocegw::migration {

// True state of a node, whatever its adapter reports.
struct NodeFacts {
  bool old_path = true;
  bool new_path = false;
  bool new_verified = false;
  bool prefers_new = false;
  bool runs = true;
  bool cordoned = false;
  uint64_t outstanding_old = 0;  // I/Os in flight
  uint64_t outstanding_new = 0;
  uint64_t clients_on_old = 0;
  Transport actual = Transport::kTcp;  // path of the bytes
  bool journal_intact = true;
  std::string config_hash;
  std::string original_hash;
  std::string gateway_version;
};

struct Violation {
  int invariant = 0;  // 1 to 12
  int64_t time = 0;
  std::string text;
};

class InvariantCheck {
 public:
  explicit InvariantCheck(const Plan& plan, const Record& record);

  // After the record was stored, before intents of `transition` are carried out.
  void OnTransition(const Event& event, const Transition& transition, const Record& record,
                    std::span<const NodeFacts> facts);
  // A node executes a command. `before`: its facts before the execution.
  void OnExecute(const CommandIntent& command, const NodeFacts& before);
  void AfterExecute(const CommandIntent& command, const NodeFacts& after, Outcome outcome);

  const std::vector<Violation>& violations() const { return violations_; }

 private:
  struct Seen {
    NodeState state = NodeState::kPending;
    Activity activity = Activity::kNone;
    Step last_done = Step::kHealth;
    bool backed_up = false;
    uint64_t pending = 0;
  };
  void Report(int invariant, std::string text);
  void CheckStarts(const Record& record);
  void CheckStart(const Record& record, uint32_t node);
  void CheckStates(const Record& record, std::span<const NodeFacts> facts);
  void CheckAudit(const Transition& transition, const Record& record);
  void CheckIntents(const Transition& transition, const Record& record);
  bool Unavailable(const NodeRecord& node) const;

  const Plan& plan_;
  std::vector<Seen> seen_;
  std::vector<uint32_t> wave_of_;
  std::vector<WaveState> waves_;
  std::vector<bool> wave_passed_;
  MigrationState state_ = MigrationState::kDraft;
  bool inventory_matches_ = true;
  uint64_t highest_epoch_ = 0;
  uint64_t next_command_ = 0;
  std::string audit_head_;
  int64_t now_ = 0;
  std::vector<Violation> violations_;
};

// Returns what invariant 1 to 12 says, one line.
const char* InvariantText(int invariant);

}  // namespace rocegw::migration
