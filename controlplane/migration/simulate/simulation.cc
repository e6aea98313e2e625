// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/simulate/simulation.h"

#include <algorithm>

#include "controlplane/migration/drive/availability.h"
#include "controlplane/migration/drive/controller.h"

namespace rocegw::migration {
namespace {

constexpr uint64_t kMostEvents = 5'000'000;
constexpr size_t kKeptChanges = 1'000'000;
constexpr int64_t kTakeOverAfter = 10;

}  // namespace

Simulation::Simulation(const Plan& plan, Options options)
    : plan_(plan),
      options_(std::move(options)),
      record_(NewRecord(plan)),
      cluster_(plan, options_.failures, options_.seed),
      check_(plan, record_) {}

std::string Simulation::Begin() {
  (void)Deliver(TakeOver{});
  if (std::string refusal = Give({.verb = Verb::kPlan, .who = "simulation"}); !refusal.empty())
    return refusal;
  (void)Deliver(PreflightResult{.passed = true, .text = "simulated"});
  return Give({.verb = Verb::kStart, .who = "simulation"});
}

std::string Simulation::Give(Order order) {
  if (order.who.empty()) order.who = "simulation";
  return Deliver(order).refusal;
}

void Simulation::After(int64_t seconds, Event event) {
  happenings_.push({now_ + seconds, ++happened_, std::move(event)});
}

void Simulation::StoreAndRead(const Transition& transition) {
  const bool first = rows_.empty();
  rows_.resize(RowsFor(record_.nodes.size()));
  for (uint32_t i = 0; i < record_.nodes.size() && first; i += kNodesPerRow)
    rows_[i / kNodesPerRow] = NodeRowJson(record_, i / kNodesPerRow);
  // As the driver does: a node that is not named as touched is not stored.
  for (const uint32_t node : transition.touched)
    rows_[node / kNodesPerRow] = NodeRowJson(record_, node / kNodesPerRow);
  std::string problem;
  Record read = ReadRecord(plan_, RecordHeadJson(record_), rows_, problem);
  if (problem.empty()) record_ = std::move(read);
  if (unread_.empty()) unread_ = problem;
}

Transition Simulation::Deliver(const Event& event) {
  Transition transition = Handle(plan_, record_, event, now_);
  if (options_.tamper) options_.tamper(record_, transition);
  if (options_.stores) StoreAndRead(transition);
  check_.OnTransition(event, transition, record_, cluster_.facts());
  wake_at_ = transition.wake_at;
  for (const Change& change : transition.changes) {
    if (changes_.size() < kKeptChanges) changes_.push_back(change);
  }
  const auto unavailable =
      static_cast<uint32_t>(std::ranges::count_if(record_.nodes, CountsAsUnavailable));
  most_unavailable_ = std::max(most_unavailable_, unavailable);
  CarryOut(transition);
  return transition;
}

void Simulation::CarryOut(const Transition& transition) {
  for (const Intent& intent : transition.intents) {
    if (const auto* const command = std::get_if<CommandIntent>(&intent)) {
      CarryOut(*command);
    } else if (const auto* const gate = std::get_if<GateIntent>(&intent)) {
      After(1, GateResult{.round = gate->round,
                          .outcome = cluster_.EvaluateGates(gate->wave),
                          .text = "simulated gate"});
    }
  }
}

void Simulation::CarryOut(const CommandIntent& command) {
  // A command to a node without power is not delivered.
  if (lost_[command.node]) return;
  const NodeFacts before = cluster_.facts()[command.node];
  const SimulatedCluster::Execution execution = cluster_.Execute(command);
  if (execution.executed) {
    ++commands_;
    check_.OnExecute(command, before);
    check_.AfterExecute(command, cluster_.facts()[command.node],
                        execution.result.has_value() ? execution.result->outcome : Outcome::kDone);
  }
  if (execution.lost_for.has_value()) {
    lost_[command.node] = true;
    After(1, NodeLost{command.node});
    if (*execution.lost_for > 0) After(*execution.lost_for + 1, NodeBack{command.node});
  }
  if (execution.controller_killed) After(kTakeOverAfter, TakeOver{});
  if (execution.drifts) After(1, InventorySeen{"another inventory"});
  if (execution.result.has_value()) After(execution.duration, *execution.result);
}

void Simulation::RunUntilQuiet() {
  for (uint64_t events = 0; events < kMostEvents; ++events) {
    const bool woken = wake_at_ != 0 && (happenings_.empty() || wake_at_ <= happenings_.top().time);
    if (woken) {
      now_ = std::max(now_, wake_at_);
      (void)Deliver(Tick{});
    } else if (!happenings_.empty()) {
      const Happening next = happenings_.top();
      happenings_.pop();
      now_ = std::max(now_, next.time);
      if (const auto* const back = std::get_if<NodeBack>(&next.event)) lost_[back->node] = false;
      (void)Deliver(next.event);
    } else {
      return;
    }
    if (options_.approves && record_.state == MigrationState::kAwaitingApproval)
      (void)Give({.verb = Verb::kApprove, .wave = record_.wave, .who = "simulation"});
  }
  exhausted_ = true;
}

std::vector<Order> Exits(const Plan& plan, const Record& record) {
  std::vector<Order> candidates;
  for (const Verb verb : {Verb::kPlan, Verb::kStart, Verb::kPause, Verb::kResume, Verb::kFinalize,
                          Verb::kAbort, Verb::kRollback})
    candidates.push_back({.verb = verb, .who = "nobody"});
  candidates.push_back({.verb = Verb::kApprove, .wave = record.wave, .who = "nobody"});
  for (uint32_t i = 0; i < record.nodes.size(); ++i) {
    const NodeState state = record.nodes[i].state;
    const bool stuck = record.nodes[i].held || state == NodeState::kBlocked ||
                       state == NodeState::kQuarantined || state == NodeState::kRolledBack ||
                       state == NodeState::kRollbackFailed;
    if (!stuck) continue;
    candidates.push_back({.verb = Verb::kRetry, .node = i, .who = "nobody"});
    candidates.push_back({.verb = Verb::kSkip, .node = i, .who = "nobody"});
  }
  std::vector<Order> accepted;
  for (Order& order : candidates) {
    Record copy = record;
    if (Handle(plan, copy, order, record.now).refusal.empty()) accepted.push_back(std::move(order));
  }
  return accepted;
}

std::string OrderText(const Plan& plan, const Order& order) {
  static constexpr const char* kVerbs[] = {"plan",     "start", "approve", "pause",
                                           "resume",   "abort", "set",     "rollback",
                                           "finalize", "retry", "skip",    "preflight"};
  std::string text = kVerbs[static_cast<size_t>(order.verb)];
  if (order.wave.has_value()) text += " --wave " + plan.waves[*order.wave].name;
  if (order.node.has_value()) text += " --node " + plan.nodes[*order.node].name;
  if (order.verb == Verb::kRollback && !order.wave.has_value() && !order.node.has_value())
    text += " --all";
  return text;
}

}  // namespace rocegw::migration
