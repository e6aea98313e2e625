// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/controller.h"

#include <algorithm>

#include "controlplane/migration/drive/availability.h"
#include "controlplane/migration/drive/node_runs.h"
#include "controlplane/migration/drive/orders.h"
#include "controlplane/migration/drive/procedure.h"
#include "controlplane/migration/drive/record_writer.h"
#include "controlplane/migration/drive/wave_runs.h"

namespace rocegw::migration {
namespace {

using S = MigrationState;

// Handling of one event, from the record before to the record after.
class Handling {
 public:
  Handling(const Plan& plan, Record& record)
      : plan_(plan),
        record_(record),
        writer_(plan, record, transition_),
        runs_(plan, record, writer_),
        waves_(plan, record, writer_, runs_),
        orders_(plan, record, writer_, runs_) {}

  Transition Run(const Event& event, int64_t now) {
    record_.now = std::max(record_.now, now);
    std::visit([&](const auto& what) { On(what); }, event);
    writer_.ActFor({.who = "controller"});
    writer_.Cite({});
    TakeIncidents();
    if (transition_.refusal.empty() && !transition_.stand_down) Proceed();
    record_.transitions += transition_.changes.empty() ? 0U : 1U;
    transition_.wake_at = WakeAt();
    std::ranges::sort(transition_.touched);
    const auto again = std::ranges::unique(transition_.touched);
    transition_.touched.erase(again.begin(), again.end());
    return std::move(transition_);
  }

 private:
  void On(const Tick&) {}
  void On(const StepResult& result) { transition_.stand_down = !runs_.OnResult(result); }
  void On(const NodeLost& lost) {
    if (lost.node < record_.nodes.size()) runs_.OnLost(lost.node);
  }
  void On(const NodeBack& back) {
    if (back.node < record_.nodes.size()) runs_.OnBack(back.node);
  }
  void On(const GateResult& result) { waves_.OnGates(result); }
  void On(const GateAlarm& alarm) {
    if (record_.state == S::kRunning || record_.state == S::kAwaitingApproval)
      waves_.Pause(PauseReason::kGate, alarm.text);
  }
  void On(const InventorySeen& seen) {
    record_.inventory_matches = seen.hash == plan_.inventory_hash;
  }
  void On(const PreflightResult& result);
  void On(const TakeOver&) {
    ++record_.epoch;
    writer_.NoteOrder("migration", "driven with epoch " + std::to_string(record_.epoch));
    runs_.SendAgain();
    if (record_.gate_pending) writer_.Send(GateIntent{record_.gate_round, record_.wave});
  }
  void On(const Order& order) {
    writer_.ActFor(order);
    transition_.refusal = orders_.Obey(order);
  }

  void TakeIncidents();
  void Proceed();
  // Each of these makes the next step in its state; returns true if it changed the state.
  bool ProceedInState();
  bool RollBack();
  bool Finalize();
  bool CheckPreflight();
  bool AnyInHand() const { return std::ranges::any_of(record_.nodes, IsInHand); }
  size_t Count(NodeState state) const {
    return static_cast<size_t>(std::ranges::count(record_.nodes, state, &NodeRecord::state));
  }
  int64_t WakeAt() const;

  const Plan& plan_;
  Record& record_;
  Transition transition_;
  RecordWriter writer_;
  NodeRuns runs_;
  WaveRuns waves_;
  Orders orders_;
};

void Handling::On(const PreflightResult& result) {
  if (record_.state != S::kPlanned && record_.state != S::kPreflighted) {
    transition_.refusal = "not in the state " + std::string(WordOf(record_.state));
    return;
  }
  record_.preflight_wanted = false;
  record_.findings = result.findings;
  if (record_.findings.size() > kMostFindings) record_.findings.resize(kMostFindings);
  if (result.passed) {
    record_.preflight_at = record_.now;
    writer_.SetMigration(S::kPreflighted, result.text);
  } else {
    writer_.NoteOrder("migration", "the preflight failed: " + result.text);
    writer_.SetMigration(S::kPlanned, result.text);
    record_.reason = result.text;
  }
}

void Handling::TakeIncidents() {
  for (const NodeRuns::Incident& incident : runs_.TakeIncidents()) {
    const bool forward = record_.state == S::kRunning || record_.state == S::kAwaitingApproval ||
                         (record_.state == S::kPaused && record_.resumes_to == S::kRunning);
    // The nodes of a flag day have no transport in common until all are back.
    if (forward && plan_.flag_day && incident.reason == PauseReason::kNodeFailed) {
      orders_.RollBackAll(S::kRolledBack, incident.text);
    } else if (forward || incident.reason == PauseReason::kInconclusive) {
      waves_.Pause(incident.reason, incident.text);
    }
  }
}

void Handling::Proceed() {
  // Each change may make the next one possible; their number is bounded by the states of a wave.
  bool changed = true;
  for (size_t round = 0; changed && round < plan_.waves.size() * 8 + 16; ++round) {
    changed = ProceedInState();
    runs_.Proceed();
    const auto state = record_.state;
    TakeIncidents();
    changed = changed || state != record_.state;
  }
}

bool Handling::ProceedInState() {
  switch (record_.state) {
    case S::kPreflighted:
      return CheckPreflight();
    case S::kRunning:
      return waves_.Proceed();
    case S::kRollingBack:
      return RollBack();
    case S::kFinalizing:
      return Finalize();
    case S::kPaused:
      if (record_.pause_reason != PauseReason::kWindowClosed ||
          !WindowIsOpen(record_.knobs, record_.now) || !record_.inventory_matches)
        return false;
      orders_.Resume("the change window is open");
      return true;
    default:
      return false;
  }
}

bool Handling::CheckPreflight() {
  if (record_.now <= record_.preflight_at + record_.knobs.preflight_valid) return false;
  writer_.SetMigration(S::kPlanned, "the preflight is too old");
  return true;
}

bool Handling::RollBack() {
  bool started = false;
  bool waits = false;
  Availability availability(plan_, record_);
  // The node that was changed last goes back first.
  for (auto wave = plan_.waves.rbegin(); wave != plan_.waves.rend(); ++wave) {
    for (auto i = wave->nodes.rbegin(); i != wave->nodes.rend(); ++i) {
      NodeRecord& node = record_.nodes[*i];
      if (!node.wants_rollback || node.activity == Activity::kForward) continue;
      if (!node.reachable) {
        waits = waits || node.state != NodeState::kQuarantined;
        continue;
      }
      const bool counted = CountsAsUnavailable(node);
      if (!counted && !availability.MayTake(*i)) continue;
      if (!counted) availability.Take(*i);
      runs_.TurnBack(*i, "rolled back");
      started = true;
    }
  }
  // A quarantined node in the middle of its change goes back when it can be reached.
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) {
    NodeRecord& node = record_.nodes[i];
    if (node.wants_rollback && node.state == NodeState::kQuarantined && node.reachable &&
        !node.pending.has_value()) {
      runs_.TurnBack(i, "rolled back");
      started = true;
    }
  }
  if (started) return true;
  if (waits || AnyInHand()) return false;
  const size_t wanting =
      static_cast<size_t>(std::ranges::count(record_.nodes, true, &NodeRecord::wants_rollback));
  const size_t failed = Count(NodeState::kRollbackFailed);
  size_t lost = 0;
  for (const NodeRecord& node : record_.nodes) {
    lost += node.state == NodeState::kQuarantined && node.furthest > HarmlessSteps() ? 1U : 0U;
  }
  if (record_.rollback_ends_as != S::kPaused && wanting + failed + lost != 0) {
    writer_.SetMigration(S::kFailed, std::to_string(failed) + " nodes could not be rolled back, " +
                                         std::to_string(lost) + " are lost, " +
                                         std::to_string(wanting) + " wait");
    return true;
  }
  if (record_.rollback_ends_as == S::kPaused) {
    record_.resumes_to = S::kRunning;
    writer_.SetMigration(S::kPaused, "part of it was rolled back");
    record_.pause_reason = PauseReason::kPerson;
    return true;
  }
  writer_.SetMigration(record_.rollback_ends_as, record_.rollback_ends_as == S::kAborted
                                                     ? "no node is in hand"
                                                     : "every changed node is as before");
  return true;
}

bool Handling::Finalize() {
  bool started = false;
  Availability availability(plan_, record_);
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) {
    NodeRecord& node = record_.nodes[i];
    if (node.state != NodeState::kDone || node.activity != Activity::kNone || node.held ||
        plan_.nodes[i].keeps_old)
      continue;
    if (!node.reachable) {
      writer_.Touch(i).held = true;
      node.reason = "the node cannot be reached";
      continue;
    }
    if (!availability.MayTake(i)) continue;
    availability.Take(i);
    runs_.Start(i, Activity::kRemoveOld);
    started = true;
  }
  if (started) return true;
  if (AnyInHand()) return false;
  const auto held = static_cast<size_t>(std::ranges::count(record_.nodes, true, &NodeRecord::held));
  if (held != 0) {
    writer_.SetMigration(S::kCompleted,
                         std::to_string(held) + " nodes keep their old path: see there");
  } else {
    writer_.SetMigration(S::kFinalized, "old paths are removed");
  }
  return true;
}

int64_t Handling::WakeAt() const {
  int64_t at = 0;
  const auto by = [&](int64_t time) {
    if (time > record_.now && (at == 0 || time < at)) at = time;
  };
  for (const NodeRecord& node : record_.nodes) {
    if (!node.reachable) by(node.lost_since + record_.knobs.lost_after);
    if (node.pending.has_value()) by(node.pending->deadline + record_.knobs.retry_after);
    if (node.activity != Activity::kNone) by(node.not_before);
  }
  if (record_.gate_pending) by(record_.gate_deadline);
  if (record_.state == S::kRunning && record_.waves[record_.wave].state == WaveState::kSoaking)
    by(record_.waves[record_.wave].since + record_.knobs.soak);
  if (record_.state == S::kPreflighted)
    by(record_.preflight_at + record_.knobs.preflight_valid + 1);
  by(record_.knobs.window_begin);
  by(record_.knobs.window_end);
  return at;
}

}  // namespace

Record NewRecord(const Plan& plan) {
  Record record;
  record.plan_hash = HashOf(plan);
  record.knobs = plan.knobs;
  record.waves.resize(plan.waves.size());
  record.nodes.resize(plan.nodes.size());
  return record;
}

bool CheckKnobs(const Knobs& knobs, std::string& problem) {
  if (knobs.max_unavailable == 0) {
    problem = "max-unavailable must be at least 1";
  } else if (knobs.soak < 0 || knobs.step_deadline < 1 || knobs.retry_after < 1 ||
             knobs.lost_after < 1 || knobs.preflight_valid < 1) {
    problem = "times must be positive";
  } else if ((knobs.window_begin == 0) != (knobs.window_end == 0) ||
             knobs.window_end < knobs.window_begin) {
    problem = "a change window needs a begin and a later end";
  }
  return problem.empty();
}

Transition Handle(const Plan& plan, Record& record, const Event& event, int64_t now) {
  return Handling(plan, record).Run(event, now);
}

}  // namespace rocegw::migration
