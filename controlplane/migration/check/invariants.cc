// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/check/invariants.h"

#include <algorithm>
#include <array>
#include <map>
#include <variant>

#include "controlplane/migration/drive/record_writer.h"

namespace rocegw::migration {
namespace {

constexpr size_t kMostViolations = 100;

constexpr std::array kTexts = {
    "no acknowledged write is lost or duplicated",
    "drain is accounting: nothing is outstanding when a path or node stops",
    "every node has a usable path; the old one goes only after verification and soak",
    "no more nodes, domains or votes are out of service than allowed, and the storage agreed",
    "a command is stored before it is sent",
    "a replaced controller's command is not executed",
    "a changed node was backed up, and a rolled-back one is byte-identical",
    "no node starts while the inventory differs from the plan",
    "no node starts before the gates of earlier waves held",
    "a node counts as migrated only if its bytes take the new path",
    "each change of a state is in the audit chain",
    "no node outside of the planned versions is changed",
};

bool ChangesNode(Step step) {
  switch (step) {
    case Step::kHealth:
    case Step::kOkToStop:
    case Step::kBackup:
    case Step::kVerifyPath:
    case Step::kVerify:
    case Step::kVerifyOld:
    case Step::kRejoin:
      return false;
    default:
      return true;
  }
}

}  // namespace

const char* InvariantText(int invariant) {
  const auto index = static_cast<size_t>(invariant - 1);
  return index < kTexts.size() ? kTexts[index] : "?";
}

InvariantCheck::InvariantCheck(const Plan& plan, const Record& record)
    : plan_(plan),
      seen_(plan.nodes.size()),
      wave_of_(plan.nodes.size()),
      waves_(plan.waves.size(), WaveState::kWaiting),
      wave_passed_(plan.waves.size(), false),
      state_(record.state),
      next_command_(record.next_command),
      audit_head_(record.audit_head) {
  for (uint32_t w = 0; w < plan.waves.size(); ++w) {
    for (const uint32_t node : plan.waves[w].nodes) wave_of_[node] = w;
  }
}

void InvariantCheck::Report(int invariant, std::string text) {
  if (violations_.size() < kMostViolations)
    violations_.push_back({invariant, now_, std::move(text)});
}

bool InvariantCheck::Unavailable(const NodeRecord& node) const {
  return node.activity != Activity::kNone || node.state == NodeState::kQuarantined ||
         node.state == NodeState::kRollbackFailed;
}

void InvariantCheck::OnTransition(const Event& event, const Transition& transition,
                                  const Record& record, std::span<const NodeFacts> facts) {
  now_ = record.now;
  if (const auto* const inventory = std::get_if<InventorySeen>(&event))
    inventory_matches_ = inventory->hash == plan_.inventory_hash;
  if (const auto* const gate = std::get_if<GateResult>(&event)) {
    if (gate->outcome == Outcome::kDone) {
      for (size_t w = 0; w < waves_.size(); ++w) {
        if (waves_[w] == WaveState::kSoaking) wave_passed_[w] = true;
      }
    }
  }
  CheckAudit(transition, record);
  CheckStarts(record);
  CheckStates(record, facts);
  CheckIntents(transition, record);
  for (size_t i = 0; i < seen_.size(); ++i) {
    seen_[i].state = record.nodes[i].state;
    seen_[i].activity = record.nodes[i].activity;
  }
  for (size_t w = 0; w < waves_.size(); ++w) waves_[w] = record.waves[w].state;
  state_ = record.state;
}

// Counts the changes that the chain tells, and compares the states with what it says.
void InvariantCheck::CheckAudit(const Transition& transition, const Record& record) {
  std::map<std::string_view, std::string_view> told;
  for (const Change& change : transition.changes) {
    audit_head_ = NextAuditHead(audit_head_, record.plan_hash, change);
    if (!change.after.empty()) told[change.subject] = change.after;
    if (change.who.empty()) Report(11, change.subject + " changed, and it is not said by whom");
  }
  if (audit_head_ != record.audit_head) Report(11, "the chain's head does not fit its changes");
  audit_head_ = record.audit_head;
  const auto check = [&](const std::string& subject, std::string_view now) {
    const auto found = told.find(subject);
    if (found == told.end() || found->second != now)
      Report(11, subject + " is " + std::string(now) + " without a change that says so");
  };
  if (record.state != state_) check("migration", WordOf(record.state));
  for (size_t w = 0; w < waves_.size(); ++w) {
    if (record.waves[w].state != waves_[w])
      check("wave " + plan_.waves[w].name, WordOf(record.waves[w].state));
  }
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (record.nodes[i].state != seen_[i].state)
      check("node " + plan_.nodes[i].name, WordOf(record.nodes[i].state));
  }
}

void InvariantCheck::CheckStarts(const Record& record) {
  uint32_t started = 0;
  for (uint32_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].activity != Activity::kNone || record.nodes[i].activity == Activity::kNone)
      continue;
    // A node that was out of service already does not go out of it.
    if (seen_[i].state != NodeState::kQuarantined && seen_[i].state != NodeState::kRollbackFailed)
      ++started;
    if (record.nodes[i].activity == Activity::kForward) CheckStart(record, i);
  }
  if (started == 0 || plan_.flag_day) return;
  uint32_t unavailable = 0;
  uint32_t votes = 0;
  std::map<std::string_view, uint32_t> domains;
  for (uint32_t i = 0; i < seen_.size(); ++i) {
    if (!Unavailable(record.nodes[i])) continue;
    ++unavailable;
    if (plan_.nodes[i].quorum) ++votes;
    ++domains[plan_.nodes[i].domain];
  }
  if (unavailable > record.knobs.max_unavailable)
    Report(4, std::to_string(unavailable) + " nodes are out of service");
  if (votes > 1) Report(4, std::to_string(votes) + " votes are out of service");
  if (!plan_.per_domain.empty() && domains.size() > 1)
    Report(4, std::to_string(domains.size()) + " failure domains are out of service");
}

void InvariantCheck::CheckStart(const Record& record, uint32_t node) {
  const std::string& name = plan_.nodes[node].name;
  seen_[node].backed_up = seen_[node].backed_up && seen_[node].state == NodeState::kQuarantined;
  if (seen_[node].state == NodeState::kQuarantined) return;
  if (!inventory_matches_) Report(8, name + " starts while the inventory differs");
  for (uint32_t w = 0; w < wave_of_[node]; ++w) {
    if (!wave_passed_[w])
      Report(9, name + " starts before the gates of wave " + plan_.waves[w].name + " held");
  }
  if (record.waves[wave_of_[node]].state == WaveState::kWaiting)
    Report(9, name + " starts before its wave");
}

void InvariantCheck::CheckStates(const Record& record, std::span<const NodeFacts> facts) {
  for (uint32_t i = 0; i < seen_.size(); ++i) {
    const NodeState now = record.nodes[i].state;
    if (now == seen_[i].state) continue;
    const NodeFacts& fact = facts[i];
    const std::string& name = plan_.nodes[i].name;
    if (now == NodeState::kSoaking || now == NodeState::kDone) {
      if (!fact.journal_intact) Report(1, name + " counts as migrated with a broken journal");
      if (fact.actual != plan_.target)
        Report(10, name + " counts as migrated with " + std::string(WordOf(fact.actual)));
    }
    if (now == NodeState::kRolledBack && fact.config_hash != fact.original_hash)
      Report(7, name + " is rolled back with another configuration than before");
    if (now == NodeState::kRolledBack && fact.actual != plan_.nodes[i].from)
      Report(10, name + " is rolled back, and its bytes take the new path");
  }
}

void InvariantCheck::CheckIntents(const Transition& transition, const Record& record) {
  if (record.next_command < next_command_) Report(5, "numbers of commands go back");
  next_command_ = record.next_command;
  for (const Intent& intent : transition.intents) {
    const auto* const command = std::get_if<CommandIntent>(&intent);
    if (command == nullptr) continue;
    const auto& pending = record.nodes[command->node].pending;
    if (!pending.has_value() || pending->id != command->command || pending->step != command->step)
      Report(5, std::string(WordOf(command->step)) + " is sent to " +
                    plan_.nodes[command->node].name + " and not stored");
  }
}

void InvariantCheck::OnExecute(const CommandIntent& command, const NodeFacts& before) {
  Seen& seen = seen_[command.node];
  const std::string where =
      std::string(WordOf(command.step)) + " at " + plan_.nodes[command.node].name;
  if (command.epoch < highest_epoch_) Report(6, where + " by a replaced controller");
  highest_epoch_ = std::max(highest_epoch_, command.epoch);
  const Step step = command.step;
  const bool stops = step == Step::kStop && before.runs;
  if (stops && before.outstanding_old + before.outstanding_new != 0)
    Report(2, where + " with I/Os in flight");
  if (step == Step::kRemoveNew && before.outstanding_new != 0)
    Report(2, where + " with I/Os in flight");
  if (step == Step::kRemoveOld && before.old_path) {
    if (before.outstanding_old != 0) Report(2, where + " with I/Os in flight");
    if (seen.state != NodeState::kDone) Report(3, where + " before the node has soaked");
    if (plan_.nodes[command.node].keeps_old) Report(3, where + " under a client that needs it");
  }
  const bool first_change = step == Step::kCordon || step == Step::kAddPath;
  if (first_change && seen.last_done != Step::kOkToStop && seen.last_done != step)
    Report(4, where + " without the storage's agreement just before");
  if (ChangesNode(step) && seen.activity == Activity::kForward && !seen.backed_up)
    Report(7, where + " without a backup");
  const std::string& version = before.gateway_version;
  if (ChangesNode(step) && seen.activity == Activity::kForward && !plan_.oldest_version.empty() &&
      version != plan_.oldest_version && version != plan_.newest_version)
    Report(12, where + " with gateway version " + version);
}

void InvariantCheck::AfterExecute(const CommandIntent& command, const NodeFacts& after,
                                  Outcome outcome) {
  Seen& seen = seen_[command.node];
  if (outcome == Outcome::kDone) {
    seen.last_done = command.step;
    seen.backed_up = seen.backed_up || command.step == Step::kBackup;
  }
  const bool usable = after.old_path || (after.new_path && after.new_verified);
  if (!usable) Report(3, plan_.nodes[command.node].name + " has no verified path");
}

}  // namespace rocegw::migration
