// SPDX-License-Identifier: Apache-2.0
// What happens to a migration, and what its controller wants done. Plain data; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controlplane/migration/drive/record.h"
#include "controlplane/migration/model/names.h"

namespace rocegw::migration {

// Facts that an adapter and the node's gateway report with a result. Not set: not reported.
struct Evidence {
  std::optional<uint64_t> outstanding;     // I/Os on the path that is drained
  std::string config_hash;                 // the node's configuration after the step
  std::optional<Transport> stated;         // first witness: the application
  std::optional<Transport> counted;        // second witness: byte counters of the gateway
  std::optional<bool> journal_intact;      // canary workload: sequence and checksums
  std::optional<uint64_t> clients_on_old;  // clients that still use the old path
  std::string gateway_version;
  std::string output_digest;  // hash over the tool's output
};

struct Tick {};
struct StepResult {
  uint32_t node = 0;
  uint64_t command = 0;
  Outcome outcome = Outcome::kDone;
  Evidence evidence;
  std::string text;  // a line for people
};
struct NodeLost {
  uint32_t node = 0;
};
struct NodeBack {
  uint32_t node = 0;
};
struct GateResult {
  uint64_t round = 0;
  Outcome outcome = Outcome::kDone;  // kDone: all gates hold; kFailed; else inconclusive
  std::string text;
};
// A gate fails between two rounds.
struct GateAlarm {
  std::string text;
};
struct InventorySeen {
  std::string hash;
};
struct PreflightResult {
  bool passed = false;
  std::string text;
  std::vector<Finding> findings;  // the worst first
};
// A controller begins to drive: after a start, or after another one was lost.
struct TakeOver {};

enum class Verb : uint8_t {
  kPlan,  // takes the plan: DRAFT to PLANNED
  kStart,
  kApprove,
  kPause,
  kResume,
  kAbort,
  kSet,
  kRollback,
  kFinalize,
  kRetry,
  kSkip,
  kPreflight,  // measures again: PLANNED or PREFLIGHTED
};
// Order of a person.
struct Order {
  Verb verb = Verb::kPause;
  std::optional<uint32_t> node;  // kRollback, kRetry, kSkip
  std::optional<uint32_t> wave;  // kApprove, kRollback
  std::optional<Knobs> knobs;    // kSet
  std::string who;
  std::string request_id;
};

using Event = std::variant<Tick, StepResult, NodeLost, NodeBack, GateResult, GateAlarm,
                           InventorySeen, PreflightResult, TakeOver, Order>;

// Command for the agent of a node.
struct CommandIntent {
  uint32_t node = 0;
  uint64_t command = 0;
  uint64_t epoch = 0;
  Step step = Step::kHealth;
  int64_t deadline = 0;
};
// Evaluates the storage system's health and every gate of the plan.
struct GateIntent {
  uint64_t round = 0;
  uint32_t wave = 0;
};
using Intent = std::variant<CommandIntent, GateIntent>;

// Change of a state, for the audit records and the list of events.
struct Change {
  uint64_t number = 0;
  int64_t time = 0;
  std::string who;      // a person, or "controller"
  std::string subject;  // "migration", "wave canary", "node n1"
  std::string before;
  std::string after;
  std::string reason;
  std::string request_id;
  std::string output_digest;
};

struct Transition {
  std::string refusal;  // why an order is refused; empty: accepted
  std::vector<Intent> intents;
  std::vector<Change> changes;
  std::vector<uint32_t> touched;  // nodes whose record changed, ascending, each once
  bool stand_down = false;        // another controller drives
  int64_t wake_at = 0;            // a Tick is due then; 0: nothing is waited for but events
};

}  // namespace rocegw::migration
