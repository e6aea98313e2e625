// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/node_runs.h"

#include <algorithm>
#include <span>

#include "controlplane/migration/drive/evidence.h"
#include "controlplane/migration/drive/procedure.h"

namespace rocegw::migration {
namespace {

size_t IndexOf(std::span<const StepRule> rules, Step step) {
  return static_cast<size_t>(std::ranges::find(rules, step, &StepRule::step) - rules.begin());
}

// Returns true if the step, or a later one of the way back, is still to come.
bool StillComes(std::span<const Step> steps, size_t at, Step step) {
  return at < steps.size() && std::ranges::find(steps.subspan(at), step) != steps.end();
}

}  // namespace

bool IsInHand(const NodeRecord& node) {
  return node.activity != Activity::kNone && node.state != NodeState::kQuarantined;
}

void NodeRuns::Report(PauseReason reason, uint32_t node, const std::string& text) {
  incidents_.push_back({reason, plan_.nodes[node].name + ": " + text});
}

Step NodeRuns::StepOf(const NodeRecord& node) const {
  if (node.activity == Activity::kForward) return ForwardSteps(plan_.restarts)[node.step].step;
  if (node.activity == Activity::kUndo) return UndoSteps(plan_.restarts, node.furthest)[node.step];
  return Step::kRemoveOld;
}

void NodeRuns::Start(uint32_t index, Activity activity) {
  NodeRecord& node = writer_.Touch(index);
  node.activity = activity;
  node.step = 0;
  node.step_since = 0;
  node.not_before = record_.now;
  node.held = false;
  if (activity == Activity::kForward) {
    node.furthest = 0;
    node.backup_hash.clear();
    node.switched_hash.clear();
  }
}

void NodeRuns::TurnBack(uint32_t index, const std::string& reason) {
  NodeRecord& node = writer_.Touch(index);
  node.wants_rollback = true;
  // The outcome of a running command decides how far back is.
  if (node.pending.has_value()) return;
  BeginUndo(index, reason);
}

void NodeRuns::BeginUndo(uint32_t index, const std::string& reason) {
  NodeRecord& node = writer_.Touch(index);
  node.wants_rollback = false;
  node.pending.reset();
  node.held = false;
  if (UndoSteps(plan_.restarts, node.furthest).empty()) {
    Reset(index);
    return;
  }
  Start(index, Activity::kUndo);
  writer_.SetNode(index, NodeState::kRollingBack, reason);
}

void NodeRuns::Reset(uint32_t index) {
  NodeRecord& node = writer_.Touch(index);
  node.activity = Activity::kNone;
  node.step = 0;
  node.furthest = 0;
  node.pending.reset();
  node.held = false;
  node.wants_rollback = false;
  writer_.SetNode(index, NodeState::kPending);
}

void NodeRuns::Skip(uint32_t index, const std::string& reason) {
  NodeRecord& node = writer_.Touch(index);
  node.activity = Activity::kNone;
  node.pending.reset();
  node.held = false;
  node.wants_rollback = false;
  writer_.SetNode(index, NodeState::kSkipped, reason);
}

void NodeRuns::Continue(uint32_t index) {
  NodeRecord& node = writer_.Touch(index);
  node.held = false;
  node.step_since = 0;
  node.not_before = record_.now;
  AskAgain(node);
  if (node.state == NodeState::kRollbackFailed || node.wants_rollback) {
    BeginUndo(index, "a person tries again");
    return;
  }
  if (node.state != NodeState::kQuarantined) return;
  if (node.activity == Activity::kUndo) {
    writer_.SetNode(index, NodeState::kRollingBack, "the node is back");
    return;
  }
  if (node.furthest == 0) return Reset(index);
  const auto rules = ForwardSteps(plan_.restarts);
  // A node that was lost while it soaked is verified again.
  if (node.step >= rules.size()) node.step = static_cast<uint32_t>(IndexOf(rules, Step::kVerify));
  node.activity = Activity::kForward;
  writer_.SetNode(index, rules[node.step].before, "the node is back");
}

// The answer to "ok to stop" may be days old when a node goes on: the question comes again.
void NodeRuns::AskAgain(NodeRecord& node) const {
  if (node.activity == Activity::kForward && node.step == HarmlessSteps()) --node.step;
  if (node.activity == Activity::kUndo && StepOf(node) == Step::kCordon) --node.step;
}

void NodeRuns::AskAgainBeforeCordon(uint32_t index) {
  if (!plan_.flag_day || record_.nodes[index].pending.has_value()) return;
  AskAgain(writer_.Touch(index));
}

void NodeRuns::OnLost(uint32_t index) {
  NodeRecord& node = writer_.Touch(index);
  if (!node.reachable) return;
  node.reachable = false;
  node.lost_since = record_.now;
}

void NodeRuns::OnBack(uint32_t index) {
  NodeRecord& node = writer_.Touch(index);
  if (node.reachable) return;
  node.reachable = true;
  // The agent knows a command that it has had by its id, and answers with the first result.
  if (node.pending.has_value()) Send(index);
}

void NodeRuns::SendAgain() {
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) {
    if (record_.nodes[i].pending.has_value()) Send(i);
  }
}

void NodeRuns::Send(uint32_t index) {
  const PendingCommand& pending = *record_.nodes[index].pending;
  writer_.Send(CommandIntent{.node = index,
                             .command = pending.id,
                             .epoch = record_.epoch,
                             .step = pending.step,
                             .deadline = pending.deadline});
}

void NodeRuns::Issue(uint32_t index) {
  NodeRecord& node = writer_.Touch(index);
  if (node.step_since == 0) node.step_since = record_.now;
  const Step step = StepOf(node);
  node.pending = PendingCommand{
      .id = record_.next_command++,
      .step = step,
      .issued_at = record_.now,
      .deadline = std::max(node.step_since + record_.knobs.step_deadline, record_.now + 1)};
  if (node.activity == Activity::kForward) {
    node.furthest = std::max(node.furthest, node.step + 1);
    writer_.SetNode(index, ForwardSteps(plan_.restarts)[node.step].during);
  }
  node.removal_issued = node.removal_issued || node.activity == Activity::kRemoveOld;
  Send(index);
}

bool NodeRuns::OnResult(const StepResult& result) {
  if (result.node >= record_.nodes.size()) return true;
  NodeRecord& node = record_.nodes[result.node];
  // A result that is not waited for is late or came twice.
  if (!node.pending.has_value() || node.pending->id != result.command) return true;
  const Step step = node.pending->step;
  const Judgement judgement = Judge(plan_, result.node, node, step, result);
  if (judgement.outcome == Outcome::kStaleEpoch) return false;
  writer_.Touch(result.node);
  writer_.Cite(result.evidence.output_digest);
  node.pending.reset();
  KeepFacts(node, step, result.evidence);
  if (node.wants_rollback && node.activity == Activity::kForward) {
    BeginUndo(result.node, "rolled back by order");
    return true;
  }
  const std::string reason = std::string(WordOf(step)) + ": " + judgement.reason;
  switch (judgement.outcome) {
    case Outcome::kDone:
      Complete(result.node);
      break;
    case Outcome::kNotYet:
      Repeat(result.node, reason);
      break;
    case Outcome::kInconclusive:
    case Outcome::kUnparsable:
      Hold(result.node, reason);
      break;
    case Outcome::kTimedOut:
      Fail(result.node, std::string(WordOf(step)) + ": no result in time");
      break;
    default:
      Fail(result.node, reason);
  }
  return true;
}

void NodeRuns::KeepFacts(NodeRecord& node, Step step, const Evidence& evidence) {
  if (step == Step::kBackup) node.backup_hash = evidence.config_hash;
  if (step == Step::kSwitch) node.switched_hash = evidence.config_hash;
}

void NodeRuns::Complete(uint32_t index) {
  NodeRecord& node = writer_.Touch(index);
  node.step_since = 0;
  node.not_before = record_.now;
  ++node.step;
  if (node.activity == Activity::kRemoveOld) {
    node.activity = Activity::kNone;
    writer_.SetNode(index, NodeState::kOldRemoved);
  } else if (node.activity == Activity::kForward) {
    const auto rules = ForwardSteps(plan_.restarts);
    if (node.step == rules.size()) {
      node.activity = Activity::kNone;
      writer_.SetNode(index, NodeState::kSoaking);
    } else {
      writer_.SetNode(index, rules[node.step].before);
    }
  } else if (node.step == UndoSteps(plan_.restarts, node.furthest).size()) {
    node.activity = Activity::kNone;
    node.furthest = 0;
    writer_.SetNode(index, NodeState::kRolledBack, node.reason);
  }
}

void NodeRuns::Repeat(uint32_t index, const std::string& reason) {
  NodeRecord& node = writer_.Touch(index);
  if (record_.now >= node.step_since + record_.knobs.step_deadline) {
    Fail(index, reason + ", for too long");
    return;
  }
  node.reason = reason;
  node.not_before = record_.now + record_.knobs.retry_after;
}

void NodeRuns::Hold(uint32_t index, const std::string& reason) {
  NodeRecord& node = writer_.Touch(index);
  node.held = true;
  node.reason = reason;
  Report(PauseReason::kInconclusive, index, reason);
}

void NodeRuns::Fail(uint32_t index, const std::string& reason) {
  NodeRecord& node = writer_.Touch(index);
  node.pending.reset();
  if (node.activity == Activity::kRemoveOld) {
    node.activity = Activity::kNone;
    node.held = true;
    node.reason = reason;
    return;
  }
  if (node.activity == Activity::kUndo) {
    node.activity = Activity::kNone;
    writer_.SetNode(index, NodeState::kRollbackFailed, reason);
    Report(PauseReason::kNodeFailed, index, reason);
    return;
  }
  if (node.furthest <= HarmlessSteps()) {
    node.activity = Activity::kNone;
    writer_.SetNode(index, NodeState::kBlocked, reason);
    Report(PauseReason::kNodeBlocked, index, reason);
    return;
  }
  BeginUndo(index, reason);
  Report(PauseReason::kNodeFailed, index, reason);
}

void NodeRuns::CheckLost(uint32_t index) {
  const NodeRecord& node = record_.nodes[index];
  if (node.reachable || record_.now < node.lost_since + record_.knobs.lost_after) return;
  if (node.activity == Activity::kRemoveOld) return Fail(index, "the node is lost");
  const bool waited_for = IsInHand(node) || node.state == NodeState::kSoaking ||
                          (node.wants_rollback && node.state != NodeState::kQuarantined);
  if (!waited_for) return;
  NodeRecord& lost = writer_.Touch(index);
  lost.pending.reset();
  lost.held = false;
  const std::string reason = "lost in " + std::string(WordOf(node.state));
  writer_.SetNode(index, NodeState::kQuarantined, reason);
  Report(PauseReason::kLostNode, index, reason);
}

NodeRuns::Barrier NodeRuns::BarrierNow() const {
  Barrier barrier;
  if (!plan_.flag_day) return barrier;
  const auto rules = ForwardSteps(plan_.restarts);
  // The first node that is cordoned makes the clients of all nodes wait: a node that is blocked or
  // lost keeps it from that.
  const size_t cordoning = IndexOf(rules, Step::kCordon);
  // The first node that stops may take the storage's quorum along, which cordon and drain need.
  const size_t stopping = IndexOf(rules, Step::kStop);
  const size_t switching = IndexOf(rules, Step::kSwitch);
  const size_t starting = IndexOf(rules, Step::kStart);
  for (const NodeRecord& node : record_.nodes) {
    if (node.state == NodeState::kSkipped) continue;
    const bool forward = node.activity == Activity::kForward;
    const bool ready = forward && node.reachable && node.state != NodeState::kQuarantined;
    barrier.may_cordon = barrier.may_cordon && ready && node.step >= cordoning;
    barrier.may_stop = barrier.may_stop && forward && node.step >= stopping;
    barrier.may_switch = barrier.may_switch && forward && node.step >= switching;
    barrier.may_start = barrier.may_start && forward && node.step >= starting;
    // A quarantined node does not answer, and so does not run with anybody.
    if (node.state == NodeState::kQuarantined) continue;
    const bool not_turned = forward || (node.wants_rollback && node.activity == Activity::kNone);
    const auto undo = UndoSteps(plan_.restarts, node.furthest);
    const bool undoing = node.activity == Activity::kUndo;
    const bool not_drained = undoing && StillComes(undo, node.step, Step::kDrain);
    const bool runs_new = undoing && StillComes(undo, node.step, Step::kStop);
    const bool not_restored = undoing && StillComes(undo, node.step, Step::kRestore);
    barrier.may_stop_new = barrier.may_stop_new && !not_turned && !not_drained;
    barrier.may_restore = barrier.may_restore && !not_turned && !runs_new;
    barrier.may_start_old = barrier.may_start_old && !not_turned && !not_restored;
  }
  return barrier;
}

// Returns true if a node that waited for the others longer than a step may take has to ask again.
// An answer never takes longer than that, so that the nodes do not make each other ask for ever.
bool NodeRuns::AskAgainWhereAnswersAreOld() {
  const size_t cordoning = HarmlessSteps();
  const auto cordoned = [&](const NodeRecord& node) { return node.furthest > cordoning; };
  if (!plan_.flag_day || std::ranges::any_of(record_.nodes, cordoned)) return false;
  bool asks = false;
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) {
    const NodeRecord& node = record_.nodes[i];
    if (node.activity != Activity::kForward || node.step != cordoning ||
        record_.now <= node.not_before + record_.knobs.step_deadline)
      continue;
    AskAgainBeforeCordon(i);
    asks = true;
  }
  return asks;
}

bool NodeRuns::Passes(const Barrier& barrier, const NodeRecord& node) const {
  const Step step = StepOf(node);
  if (node.activity == Activity::kForward) {
    if (step == Step::kCordon) return barrier.may_cordon;
    if (step == Step::kStop) return barrier.may_stop;
    if (step == Step::kSwitch) return barrier.may_switch;
    return step != Step::kStart || barrier.may_start;
  }
  if (step == Step::kStop) return barrier.may_stop_new;
  if (step == Step::kRestore) return barrier.may_restore;
  return step != Step::kStart || barrier.may_start_old;
}

void NodeRuns::Proceed() {
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) {
    CheckLost(i);
    const NodeRecord& node = record_.nodes[i];
    // The agent reports a deadline by itself; its report gets a little more time.
    if (node.pending.has_value() && node.reachable &&
        record_.now >= node.pending->deadline + record_.knobs.retry_after) {
      StepResult late{.node = i, .command = node.pending->id};
      late.outcome = Outcome::kTimedOut;
      (void)OnResult(late);
    }
  }
  Barrier barrier = BarrierNow();
  if (barrier.may_cordon && AskAgainWhereAnswersAreOld()) barrier = BarrierNow();
  for (uint32_t i = 0; i < record_.nodes.size(); ++i) {
    const NodeRecord& node = record_.nodes[i];
    if (IsInHand(node) && !node.pending.has_value() && !node.held && node.reachable &&
        node.not_before <= record_.now && Passes(barrier, node)) {
      Issue(i);
    }
  }
}

}  // namespace rocegw::migration
