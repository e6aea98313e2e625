// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/orders.h"

#include <algorithm>

#include "controlplane/migration/drive/controller.h"
#include "controlplane/migration/drive/procedure.h"

namespace rocegw::migration {

using S = MigrationState;

bool WindowIsOpen(const Knobs& knobs, int64_t now) {
  return knobs.window_end == 0 || (now >= knobs.window_begin && now < knobs.window_end);
}

bool Orders::IsIn(std::initializer_list<S> states) const {
  return std::ranges::find(states, record_.state) != states.end();
}

std::string Orders::NotIn() const {
  return "not in the state " + std::string(WordOf(record_.state));
}

std::string Orders::Obey(const Order& order) {
  switch (order.verb) {
    case Verb::kPlan:
      if (!IsIn({S::kDraft})) return NotIn();
      writer_.SetMigration(S::kPlanned, "plan " + record_.plan_hash);
      record_.reason.clear();
      record_.preflight_wanted = true;
      return {};
    case Verb::kStart:
      return Start();
    case Verb::kApprove:
      return Approve(order);
    case Verb::kPause:
      if (!IsIn({S::kRunning, S::kAwaitingApproval, S::kRollingBack, S::kFinalizing}))
        return NotIn();
      writer_.Pause(PauseReason::kPerson, "by " + order.who);
      return {};
    case Verb::kResume:
      return ResumeByOrder();
    case Verb::kAbort:
      return Abort();
    case Verb::kSet:
      return Set(order);
    case Verb::kRollback:
      return RollBack(order);
    case Verb::kFinalize:
      return Finalize();
    case Verb::kRetry:
      return Retry(order);
    case Verb::kSkip:
      return Skip(order);
    case Verb::kPreflight:
      return AskPreflight();
  }
  return "an unknown order";
}

std::string Orders::AskPreflight() {
  if (!IsIn({S::kPlanned, S::kPreflighted})) return NotIn();
  record_.preflight_wanted = true;
  record_.reason.clear();
  writer_.NoteOrder("migration", "another preflight");
  return {};
}

std::string Orders::Start() {
  if (IsIn({S::kPlanned})) {
    return record_.reason.empty() ? "it needs a preflight first"
                                  : "it needs a preflight first (" + record_.reason + ")";
  }
  if (!IsIn({S::kPreflighted})) return NotIn();
  // The tick that ends the preflight may come after the order.
  if (record_.now > record_.preflight_at + record_.knobs.preflight_valid)
    return "the preflight is too old; it needs another one";
  if (!record_.inventory_matches) return "the inventory is not the planned one; make a new plan";
  if (!WindowIsOpen(record_.knobs, record_.now)) return "the change window is closed";
  record_.waves[0].approved = true;
  writer_.SetMigration(S::kRunning, "started");
  return {};
}

std::string Orders::Approve(const Order& order) {
  if (!order.wave.has_value() || *order.wave >= record_.waves.size()) return "no such wave";
  if (!IsIn({S::kRunning, S::kAwaitingApproval, S::kPaused})) return NotIn();
  WaveRecord& wave = record_.waves[*order.wave];
  if (wave.state != WaveState::kWaiting) return "the wave has begun already";
  wave.approved = true;
  writer_.NoteOrder("wave " + plan_.waves[*order.wave].name, "approved");
  if (record_.state == S::kAwaitingApproval && *order.wave == record_.wave)
    writer_.SetMigration(S::kRunning, "approved");
  return {};
}

std::string Orders::ResumeByOrder() {
  if (!IsIn({S::kPaused})) return NotIn();
  if (record_.resumes_to == S::kRunning) {
    if (!record_.inventory_matches) {
      return "the inventory is not the planned one; restore it, or roll back and make a new plan";
    }
    if (!WindowIsOpen(record_.knobs, record_.now))
      return "the change window is closed; wait for it, or set another one";
  }
  Resume("resumed");
  return {};
}

void Orders::Resume(const std::string& reason) {
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) {
    if (!IsInHand(record_.nodes[i])) continue;
    if (record_.nodes[i].held) {
      runs_.Continue(i);
    } else if (record_.resumes_to == S::kRunning) {
      runs_.AskAgainBeforeCordon(i);
    }
  }
  record_.gate_pending = false;
  if (record_.resumes_to == S::kRunning) {
    // Goes on with the first wave that is not finished; a rollback may have undone earlier ones.
    for (uint32_t w = 0; w < plan_.waves.size(); ++w) {
      if (record_.waves[w].state == WaveState::kVerified) continue;
      record_.wave = w;
      break;
    }
  }
  writer_.SetMigration(record_.resumes_to, reason);
}

std::string Orders::Abort() {
  if (IsIn({S::kDraft, S::kPlanned, S::kPreflighted})) {
    writer_.SetMigration(S::kAborted, "aborted before the start");
    return {};
  }
  const bool forward = IsIn({S::kRunning, S::kAwaitingApproval}) ||
                       (IsIn({S::kPaused}) && record_.resumes_to == S::kRunning);
  if (!forward) return NotIn();
  if (plan_.flag_day) {
    RollBackAll(S::kAborted, "aborted; a flag day has no halves");
    return {};
  }
  record_.rollback_ends_as = S::kAborted;
  writer_.SetMigration(S::kRollingBack, "aborted: nodes in hand go back");
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) {
    if (record_.nodes[i].activity == Activity::kForward) FlagForRollback(i, "aborted");
  }
  return {};
}

std::string Orders::Set(const Order& order) {
  if (IsIn({S::kRolledBack, S::kFinalized, S::kAborted})) return NotIn();
  std::string problem;
  if (!order.knobs.has_value()) return "nothing to set";
  if (!CheckKnobs(*order.knobs, problem)) return problem;
  record_.knobs = *order.knobs;
  writer_.NoteOrder("migration", "knobs changed");
  return {};
}

void Orders::FlagForRollback(uint32_t index, const std::string& reason) {
  NodeRecord& node = record_.nodes[index];
  if (node.state == NodeState::kSkipped || node.activity == Activity::kUndo) return;
  if (node.activity == Activity::kForward && node.state != NodeState::kQuarantined) {
    runs_.TurnBack(index, reason);
    return;
  }
  if (node.furthest <= HarmlessSteps()) {
    if (node.state == NodeState::kQuarantined && node.reachable) runs_.Reset(index);
    return;
  }
  writer_.Touch(index).wants_rollback = true;
}

void Orders::HoldWaves() {
  for (uint32_t w = 0; w < plan_.waves.size(); ++w) {
    const bool undone = std::ranges::any_of(plan_.waves[w].nodes, [&](uint32_t i) {
      const NodeRecord& node = record_.nodes[i];
      return node.wants_rollback || node.activity == Activity::kUndo;
    });
    if (undone && record_.waves[w].state != WaveState::kWaiting)
      writer_.SetWave(w, WaveState::kHeld);
  }
}

void Orders::RollBackAll(S ends_as, const std::string& reason) {
  record_.rollback_ends_as = ends_as;
  writer_.SetMigration(S::kRollingBack, reason);
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) FlagForRollback(i, reason);
  HoldWaves();
}

std::string Orders::RollBack(const Order& order) {
  if (IsIn({S::kFinalized})) return "the old path is removed; plan a migration back";
  if (std::ranges::any_of(record_.nodes, &NodeRecord::removal_issued)) {
    return "old paths were removed, or may have been; finalize again, or plan a migration back";
  }
  if (!IsIn({S::kRunning, S::kPaused, S::kAwaitingApproval, S::kCompleted, S::kAborted, S::kFailed,
             S::kRollingBack, S::kFinalizing}))
    return NotIn();
  const bool all = !order.node.has_value() && !order.wave.has_value();
  if (all) {
    RollBackAll(S::kRolledBack, "rolled back by order");
    return {};
  }
  if (plan_.flag_day) return "a flag day goes back as a whole";
  if (order.wave.has_value() && *order.wave >= plan_.waves.size()) return "no such wave";
  if (order.node.has_value() && *order.node >= plan_.nodes.size()) return "no such node";
  const auto changed = [&](uint32_t i) {
    const NodeRecord& node = record_.nodes[i];
    return node.activity == Activity::kForward || node.furthest > HarmlessSteps();
  };
  const bool any = order.node.has_value()
                       ? changed(*order.node)
                       : std::ranges::any_of(plan_.waves[*order.wave].nodes, changed);
  if (!any) return "nothing of it was changed";
  // A rollback of everything that runs already stays one.
  const bool rolling = IsIn({S::kRollingBack, S::kFailed}) ||
                       (IsIn({S::kPaused}) && record_.resumes_to == S::kRollingBack);
  if (!rolling) record_.rollback_ends_as = S::kPaused;
  writer_.SetMigration(S::kRollingBack, "part of it is rolled back by order");
  if (order.node.has_value()) {
    FlagForRollback(*order.node, "rolled back by order");
  } else {
    for (const uint32_t i : plan_.waves[*order.wave].nodes)
      FlagForRollback(i, "rolled back by order");
  }
  HoldWaves();
  return {};
}

std::string Orders::Finalize() {
  if (!IsIn({S::kCompleted})) return NotIn();
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) {
    if (record_.nodes[i].held) writer_.Touch(i).held = false;
  }
  writer_.SetMigration(S::kFinalizing, "finalize by order");
  return {};
}

std::string Orders::NodeOf(const Order& order, uint32_t& node) const {
  if (!order.node.has_value() || *order.node >= record_.nodes.size()) return "no such node";
  node = *order.node;
  return IsIn({S::kRunning, S::kPaused, S::kAwaitingApproval, S::kRollingBack, S::kFailed})
             ? ""
             : NotIn();
}

std::string Orders::Retry(const Order& order) {
  uint32_t index = 0;
  if (std::string refusal = NodeOf(order, index); !refusal.empty()) return refusal;
  const NodeRecord& node = record_.nodes[index];
  if (node.held && node.activity != Activity::kNone) {
    runs_.Continue(index);
  } else if (node.state == NodeState::kQuarantined || node.state == NodeState::kRollbackFailed) {
    if (!node.reachable) return "the node cannot be reached";
    runs_.Continue(index);
  } else if (node.state == NodeState::kBlocked || node.state == NodeState::kRolledBack) {
    runs_.Reset(index);
  } else {
    return "the node is in the state " + std::string(WordOf(node.state));
  }
  if (record_.state == S::kFailed) writer_.SetMigration(S::kRollingBack, "a node is tried again");
  return {};
}

std::string Orders::Skip(const Order& order) {
  uint32_t index = 0;
  if (std::string refusal = NodeOf(order, index); !refusal.empty()) return refusal;
  const NodeRecord& node = record_.nodes[index];
  const bool may = node.state == NodeState::kPending || node.state == NodeState::kBlocked ||
                   node.state == NodeState::kQuarantined || node.state == NodeState::kRolledBack ||
                   node.state == NodeState::kRollbackFailed || node.held;
  if (!may ||
      (node.activity != Activity::kNone && !node.held && node.state != NodeState::kQuarantined))
    return "the node is in the state " + std::string(WordOf(node.state));
  runs_.Skip(index, "left to " + order.who);
  if (record_.state == S::kFailed) writer_.SetMigration(S::kRollingBack, "a node was skipped");
  return {};
}

}  // namespace rocegw::migration
