// SPDX-License-Identifier: Apache-2.0
// Stored state of a migration: everything that a controller needs to go on after the one before it
// was killed. The plan is stored beside it and never changes. Plain data; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/migration/model/names.h"
#include "controlplane/migration/plan/plan.h"

namespace rocegw::migration {

// Command that was issued to a node and has no result yet. It is stored before it is sent.
struct PendingCommand {
  uint64_t id = 0;  // unique in the migration; stays when the command is sent again
  Step step = Step::kHealth;
  int64_t issued_at = 0;
  int64_t deadline = 0;
};

// Direction of a node's steps.
enum class Activity : uint8_t { kNone, kForward, kUndo, kRemoveOld };

struct NodeRecord {
  NodeState state = NodeState::kPending;
  Activity activity = Activity::kNone;
  uint32_t step = 0;      // index in the steps of the activity
  uint32_t furthest = 0;  // forward steps that were issued since the node was last as before
  std::optional<PendingCommand> pending;
  int64_t not_before = 0;       // time of the next command
  int64_t step_since = 0;       // first try of the step
  bool held = false;            // an answer was not understood; a person resumes
  bool wants_rollback = false;  // goes back as soon as it may
  bool removal_issued = false;  // the old path may be gone: no way back
  bool reachable = true;
  int64_t lost_since = 0;
  int64_t since = 0;          // begin of the state
  std::string backup_hash;    // configuration before the first change
  std::string switched_hash;  // configuration with the new transport
  std::string reason;         // why the node is where it is, one line
};

// Result of a preflight about one node or path.
struct Finding {
  enum class Class : uint8_t {
    kBlocks,  // the migration does not start
    kWarns,   // the migration may start, and a person should know
  };
  Class kind = Class::kBlocks;
  std::string subject;  // a node, or a path: "n1 to n2"
  std::string text;
  std::string remedy;
};
// More findings than a person reads are not kept.
inline constexpr size_t kMostFindings = 32;
std::string_view WordOf(Finding::Class kind);

struct WaveRecord {
  WaveState state = WaveState::kWaiting;
  int64_t since = 0;
  bool approved = false;
};

struct Record {
  std::string plan_hash;
  MigrationState state = MigrationState::kDraft;
  MigrationState resumes_to = MigrationState::kRunning;           // state after PAUSED
  MigrationState rollback_ends_as = MigrationState::kRolledBack;  // state after ROLLING_BACK
  PauseReason pause_reason = PauseReason::kNone;
  std::string reason;
  uint64_t epoch = 0;  // the driving controller's; each takeover raises it
  uint64_t next_command = 1;
  int64_t now = 0;  // newest time seen; a clock that goes back changes nothing
  int64_t since = 0;
  int64_t preflight_at = 0;
  bool preflight_wanted = false;
  std::vector<Finding> findings;  // the newest preflight, the worst first
  bool inventory_matches = true;
  uint32_t wave = 0;  // the current one
  uint64_t gate_round = 0;
  bool gate_pending = false;
  int64_t gate_deadline = 0;
  uint64_t changes = 0;      // number of changed states, for the audit chain
  std::string audit_head;    // hash over all changes so far
  uint64_t transitions = 0;  // number of those that changed a state
  Knobs knobs;
  std::vector<WaveRecord> waves;
  std::vector<NodeRecord> nodes;
};

// Nodes are stored in rows of so many, so that a change of a few nodes writes little.
inline constexpr uint32_t kNodesPerRow = 64;
inline uint32_t RowsFor(size_t nodes) {
  return static_cast<uint32_t>((nodes + kNodesPerRow - 1) / kNodesPerRow);
}

// Text forms for the store: a head with everything but the nodes, and rows of nodes.
std::string RecordHeadJson(const Record& record);
std::string NodeRowJson(const Record& record, uint32_t row);
// Reads a record and checks that it is one of the plan: a record that the controller cannot have
// written is not driven. `problem`: what is wrong, one line; empty: it was read.
Record ReadRecord(const Plan& plan, std::string_view head, const std::vector<std::string>& rows,
                  std::string& problem);

}  // namespace rocegw::migration
