// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/driven_migration.h"

#include <google/protobuf/util/time_util.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "controlplane/api/calls/api_error.h"
#include "controlplane/migrations/nodes/node_call.h"
#include "controlplane/migrations/transition_audit.h"

namespace rocegw::migrations {
namespace {

using google::protobuf::util::TimeUtil;
using migration::MigrationState;
using migration::NodeRecord;
using migration::Outcome;
using migration::Record;

constexpr int kMostConflicts = 8;
constexpr int64_t kRepeatAfter = 1;
// A node whose agent follows a higher epoch is asked again with the next one after this time.
constexpr int64_t kTakeOverAgainAfter = 10;
constexpr int64_t kDriftEvery = 30;
constexpr int64_t kGatesEvery = 30;
constexpr int64_t kQuestionLimit = 60;
// Number of gates that are asked between the rounds of waves, which count from 1.
constexpr uint64_t kBetweenRounds = 0;
constexpr std::chrono::seconds kPathLimit(15);

bool LooksForDrift(MigrationState state) {
  return state == MigrationState::kRunning || state == MigrationState::kAwaitingApproval ||
         state == MigrationState::kPaused;
}

}  // namespace

DrivenMigration::DrivenMigration(const DriverContext& context, store::Compare fence,
                                 StoredMigration stored)
    : context_(context), fence_(std::move(fence)), stored_(std::move(stored)) {}

void DrivenMigration::Replace(StoredMigration stored) {
  stored_ = std::move(stored);
  due_ = true;
}

void DrivenMigration::Reload() {
  auto rows = context_.store.Range({.range = store::KeyRange::Prefix(PrefixOf(stored_.id))});
  if (!rows.ok()) return spdlog::warn("migration {}: {}", stored_.id, rows.status().text());
  std::string problem;
  StoredMigration read = ReadMigration(stored_.id, rows->entries, problem);
  if (!problem.empty()) return spdlog::error("migration {}: {}", stored_.id, problem);
  Replace(std::move(read));
}

bool DrivenMigration::Apply(const migration::Event& event, int64_t now) {
  for (int i = 0; i < kMostConflicts && !lost_term_; ++i) {
    StoredStep step = StepAfter(stored_, event, now);
    wake_at_ = step.transition.wake_at;
    if (step.transition.stand_down) {
      spdlog::warn("migration {}: a node follows a higher epoch than {}", stored_.id,
                   stored_.record.epoch);
      taken_over_ = false;
      take_over_at_ = now + kTakeOverAgainAfter;
      return true;
    }
    if (step.idle || !step.transition.refusal.empty()) return true;
    store::Transaction transaction = std::move(step.transaction);
    transaction.compares.push_back(fence_);
    if (!step.transition.changes.empty())
      transaction.then.push_back(AuditOfChanges(stored_.id, context_.who, step.transition));
    transaction.otherwise = {store::Operation::Get(fence_.key)};
    auto written = context_.store.Txn(std::move(transaction));
    if (!written.ok()) {
      spdlog::warn("migration {}: {}", stored_.id, written.status().text());
      // The transaction may be written nevertheless.
      Reload();
      return false;
    }
    if (written->succeeded) {
      stored_.record = std::move(step.after);
      stored_.revision = written->revision;
      return true;
    }
    const auto& fence = written->results.at(0).entry;
    lost_term_ = !fence_.Holds(fence.has_value() ? &*fence : nullptr);
    if (!lost_term_) Reload();
  }
  return false;
}

void DrivenMigration::TakeOver(int64_t now) {
  if (now < take_over_at_ || !Apply(migration::TakeOver{}, now)) return;
  taken_over_ = true;
  sent_.clear();
  gates_ = {};
}

void DrivenMigration::Proceed(int64_t now) {
  if (HasEnded(stored_.record) || lost_term_) return;
  if (!taken_over_) TakeOver(now);
  if (!taken_over_) return;
  LookAtNodes(now);
  if (due_ || (wake_at_ != 0 && now >= wake_at_)) {
    due_ = false;
    due_ = !Apply(migration::Tick{}, now);
  }
  if (lost_term_) return;
  SendCommands(now);
  AskGates(now);
  RunPreflight(now);
  WatchGates(now);
  LookForDrift(now);
}

void DrivenMigration::LookAtNodes(int64_t now) {
  for (uint32_t i = 0; i < stored_.record.nodes.size() && !lost_term_; ++i) {
    const bool reachable = context_.nodes.IsReachable(stored_.plan.nodes[i].name);
    if (reachable == stored_.record.nodes[i].reachable) continue;
    if (reachable) {
      (void)Apply(migration::NodeBack{i}, now);
    } else {
      (void)Apply(migration::NodeLost{i}, now);
    }
  }
}

void DrivenMigration::Ask(uint32_t node, fleet::v1::MigrationCall call, Purpose purpose,
                          uint64_t number, int64_t limit) {
  *call.mutable_time_limit() = TimeUtil::SecondsToDuration(limit);
  context_.nodes.Call(stored_.plan.nodes[node].name, call, std::chrono::seconds(limit),
                      ToInbox(node, purpose, number));
}

std::function<void(NodeAnswer)> DrivenMigration::ToInbox(uint32_t node, Purpose purpose,
                                                         uint64_t number) const {
  return [inbox = context_.inbox, id = stored_.id, purpose, node, number](NodeAnswer answer) {
    inbox->Put({.migration = id,
                .purpose = purpose,
                .node = node,
                .number = number,
                .answer = std::move(answer)});
  };
}

void DrivenMigration::SendCommands(int64_t now) {
  std::set<uint64_t> pending;
  for (const NodeRecord& node : stored_.record.nodes) {
    if (node.pending.has_value()) pending.insert(node.pending->id);
  }
  // A command that is not waited for any more is not sent again.
  std::erase_if(sent_, [&](const auto& sent) { return !pending.contains(sent.first); });
  for (uint32_t i = 0; i < stored_.record.nodes.size(); ++i) {
    const NodeRecord& node = stored_.record.nodes[i];
    if (!node.pending.has_value() || !node.reachable) continue;
    const auto known = sent_.find(node.pending->id);
    if (known != sent_.end() && (known->second == 0 || now < known->second)) continue;
    sent_[node.pending->id] = 0;
    fleet::v1::MigrationCall call = CallFor(stored_, i, std::string(WordOf(node.pending->step)));
    call.set_command(node.pending->id);
    Ask(i, std::move(call), Purpose::kCommand, node.pending->id,
        std::max<int64_t>(node.pending->deadline - now, 1));
  }
}

void DrivenMigration::OnAnswer(const Arrived& arrived, int64_t now) {
  if (arrived.node >= stored_.record.nodes.size()) return;
  switch (arrived.purpose) {
    case Purpose::kCommand:
      // The agent knows the result of a command that it gets again.
      if (api::MayBeRepeated(arrived.answer.code) || !Apply(ResultOf(arrived), now)) {
        sent_[arrived.number] = now + kRepeatAfter;
      } else {
        sent_.erase(arrived.number);
      }
      return;
    case Purpose::kHealth:
      return OnHealth(arrived, now);
    case Purpose::kGate:
      return OnGates(arrived, now);
    case Purpose::kHello:
    case Purpose::kPath:
    case Purpose::kQuota:
    case Purpose::kPreflightGate:
    case Purpose::kPreflightHealth:
    case Purpose::kInventory:
      if (arrived.number == 0) return OnInventory(arrived, now);
      if (preflight_.has_value() && arrived.number == questions_) preflight_->OnAnswer(arrived);
      return;
  }
}

void DrivenMigration::AskGates(int64_t now) {
  const Record& record = stored_.record;
  if (!record.gate_pending || gates_.round == record.gate_round) return;
  gates_ = {.round = record.gate_round};
  for (const uint32_t i : stored_.plan.waves[record.wave].nodes) {
    if (record.nodes[i].state == migration::NodeState::kSkipped) continue;
    if (!record.nodes[i].reachable) {
      gates_.worst = Outcome::kInconclusive;
      gates_.text = stored_.plan.nodes[i].name + " cannot be reached";
      continue;
    }
    ++gates_.waiting;
    Ask(i, CallFor(stored_, i, "health"), Purpose::kHealth, record.gate_round, kQuestionLimit);
  }
  if (!stored_.plan.gates.empty()) {
    ++gates_.waiting;
    EvaluateGates(Purpose::kGate, record.gate_round);
  }
  if (gates_.waiting == 0) EndGates(now);
}

void DrivenMigration::EvaluateGates(Purpose purpose, uint64_t number) {
  context_.gates.Evaluate(stored_.plan.gates, [inbox = context_.inbox, id = stored_.id, purpose,
                                               number](GateVerdict verdict) {
    Arrived arrived{.migration = id, .purpose = purpose, .number = number, .answer = {}};
    arrived.answer.report.set_outcome(std::string(WordOf(verdict.outcome)));
    arrived.answer.report.set_text(std::move(verdict.text));
    inbox->Put(std::move(arrived));
  });
}

void DrivenMigration::WatchGates(int64_t now) {
  // The gates of a flag day fail while the cluster is out of service.
  const bool watched = stored_.record.state == MigrationState::kRunning &&
                       !stored_.plan.gates.empty() && !stored_.plan.flag_day;
  if (!watched || gates_watched_ || now < watch_gates_at_) return;
  gates_watched_ = true;
  EvaluateGates(Purpose::kGate, kBetweenRounds);
}

void DrivenMigration::OnGates(const Arrived& arrived, int64_t now) {
  const migration::StepResult result = ResultOf(arrived);
  if (arrived.number == kBetweenRounds) {
    gates_watched_ = false;
    watch_gates_at_ = now + kGatesEvery;
    // Gates without an answer decide nothing before the end of a wave.
    if (result.outcome == Outcome::kFailed) (void)Apply(migration::GateAlarm{result.text}, now);
    return;
  }
  if (arrived.number != gates_.round || gates_.waiting == 0) return;
  Note(result.outcome, result.text);
  if (--gates_.waiting == 0) EndGates(now);
}

// A failure counts more than a question without answer, and the first of its kind is kept.
void DrivenMigration::Note(Outcome outcome, const std::string& text) {
  const bool worse = gates_.worst == Outcome::kDone ||
                     (gates_.worst == Outcome::kInconclusive && outcome == Outcome::kFailed);
  if (outcome == Outcome::kDone || !worse) return;
  gates_.worst = outcome == Outcome::kFailed ? Outcome::kFailed : Outcome::kInconclusive;
  gates_.text = text;
}

void DrivenMigration::OnHealth(const Arrived& arrived, int64_t now) {
  if (arrived.number != gates_.round || gates_.waiting == 0) return;
  const migration::StepResult result = ResultOf(arrived);
  // A node that was not reached has not refused.
  const bool unreached = result.outcome == Outcome::kFailed && arrived.answer.code != 0;
  Note(unreached ? Outcome::kInconclusive : result.outcome,
       stored_.plan.nodes[arrived.node].name + ": " + result.text);
  if (--gates_.waiting == 0) EndGates(now);
}

void DrivenMigration::EndGates(int64_t now) {
  migration::GateResult result{.round = gates_.round, .outcome = gates_.worst};
  result.text = gates_.worst == Outcome::kDone ? "healthy" : gates_.text;
  // A result that was not stored is asked for again.
  if (!Apply(result, now)) gates_ = {};
}

void DrivenMigration::RunPreflight(int64_t now) {
  const Record& record = stored_.record;
  const bool wanted = record.preflight_wanted && (record.state == MigrationState::kPlanned ||
                                                  record.state == MigrationState::kPreflighted);
  if (!wanted) return preflight_.reset();
  if (!preflight_.has_value()) {
    preflight_.emplace(stored_.plan);
    ++questions_;
  }
  while (const auto question = preflight_->Next()) AskForPreflight(*question);
  if (const auto result = preflight_->Result(); result.has_value() && Apply(*result, now))
    preflight_.reset();
}

void DrivenMigration::AskForPreflight(const Preflight::Question& question) {
  const uint32_t node = question.node;
  const Purpose purpose = question.purpose;
  if (purpose == Purpose::kPreflightGate) return EvaluateGates(purpose, questions_);
  if (!stored_.record.nodes[node].reachable) return preflight_->OnUnreachable(node);
  const std::string& name = stored_.plan.nodes[node].name;
  const char* call = "inventory";
  switch (purpose) {
    case Purpose::kPath:
      return context_.nodes.TestPath(name, stored_.plan.nodes[question.peer].name, kPathLimit,
                                     ToInbox(node, purpose, questions_));
    case Purpose::kQuota:
      return context_.nodes.ReadQuota(name, kPathLimit, ToInbox(node, purpose, questions_));
    case Purpose::kHello:
      call = "hello";
      if (const std::string problem = context_.nodes.Problem(name); !problem.empty())
        preflight_->OnProblem(node, problem);
      break;
    case Purpose::kPreflightHealth:
      call = "health";
      break;
    default:  // the inventory
      break;
  }
  Ask(node, CallFor(stored_, node, call), purpose, questions_, kQuestionLimit);
}

void DrivenMigration::LookForDrift(int64_t now) {
  if (drift_asked_ || now < drift_at_ || !LooksForDrift(stored_.record.state)) return;
  const auto count = static_cast<uint32_t>(stored_.record.nodes.size());
  for (uint32_t i = 0; i < count; ++i) {
    drift_node_ = (drift_node_ + 1) % count;
    if (!stored_.record.nodes[drift_node_].reachable) continue;
    drift_asked_ = true;
    Ask(drift_node_, CallFor(stored_, drift_node_, "inventory"), Purpose::kInventory, 0,
        kQuestionLimit);
    return;
  }
}

void DrivenMigration::OnInventory(const Arrived& arrived, int64_t now) {
  drift_asked_ = false;
  drift_at_ = now + kDriftEvery;
  const fleet::v1::MigrationReport& report = arrived.answer.report;
  // An inventory that cannot be read says nothing.
  if (arrived.answer.code != 0 || report.inventory_hash().empty()) return;
  const bool matches = report.inventory_hash() == stored_.plan.inventory_hash;
  if (matches != stored_.record.inventory_matches)
    (void)Apply(migration::InventorySeen{report.inventory_hash().substr(0, 128)}, now);
}

}  // namespace rocegw::migrations
