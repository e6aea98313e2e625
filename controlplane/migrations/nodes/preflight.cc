// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/nodes/preflight.h"

#include <algorithm>

#include "controlplane/migration/drive/evidence.h"
#include "controlplane/migration/drive/procedure.h"
#include "controlplane/migrations/nodes/path_findings.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::migrations {

using migration::Step;

std::vector<std::string> CallsFor(const migration::Plan& plan) {
  std::vector<std::string> calls;
  const auto forward = migration::ForwardSteps(plan.restarts);
  for (const migration::StepRule& rule : forward) calls.emplace_back(WordOf(rule.step));
  for (const Step step : migration::UndoSteps(plan.restarts, forward.size()))
    calls.emplace_back(WordOf(step));
  calls.emplace_back(WordOf(Step::kRemoveOld));
  std::ranges::sort(calls);
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  return calls;
}

uint32_t Preflight::paths() const {
  // RNICs are not tested by probes of gateways.
  if (plan_.target != migration::Transport::kGateway || plan_.nodes.size() < 2) return 0;
  return static_cast<uint32_t>(plan_.nodes.size());
}

std::optional<Preflight::Question> Preflight::Next() {
  if (next_ < plan_.nodes.size()) {
    if (in_flight_ >= kMostInFlight) return std::nullopt;
    ++in_flight_;
    return Question{Purpose::kHello, next_++};
  }
  if (problems_ != 0) return std::nullopt;
  if (next_health_ < plan_.nodes.size()) {
    if (in_flight_ >= kMostInFlight) return std::nullopt;
    ++in_flight_;
    return Question{Purpose::kPreflightHealth, next_health_++};
  }
  if (next_quota_ < paths()) {
    if (in_flight_ >= kMostInFlight) return std::nullopt;
    ++in_flight_;
    return Question{Purpose::kQuota, next_quota_++};
  }
  if (next_path_ < paths()) {
    // Greetings that are under way may still find a problem.
    if (in_flight_ >= kMostPaths) return std::nullopt;
    ++in_flight_;
    const uint32_t from = next_path_++;
    return Question{Purpose::kPath, from, (from + 1) % paths()};
  }
  if (!plan_.gates.empty() && !gates_asked_) {
    gates_asked_ = true;
    ++in_flight_;
    return Question{Purpose::kPreflightGate, 0};
  }
  if (inventory_asked_ || in_flight_ != 0) return std::nullopt;
  inventory_asked_ = true;
  ++in_flight_;
  return Question{Purpose::kInventory, 0};
}

void Preflight::Add(migration::Finding finding) {
  const bool blocks = finding.kind == migration::Finding::Class::kBlocks;
  if (!blocks) ++warnings_;
  if (blocks) ++problems_;
  // The worst first: a finding that blocks is kept whatever was found before.
  const auto at =
      std::ranges::find(findings_, migration::Finding::Class::kWarns, &migration::Finding::kind);
  findings_.insert(blocks ? at : findings_.end(), std::move(finding));
  if (findings_.size() > migration::kMostFindings) findings_.pop_back();
}

void Preflight::Complain(const std::string& subject, const std::string& text,
                         const std::string& remedy) {
  Add({migration::Finding::Class::kBlocks, subject, text, remedy});
}

void Preflight::OnUnreachable(uint32_t node) {
  --in_flight_;
  const std::string& name = plan_.nodes[node].name;
  Complain(name, "there is no connected gateway of this name",
           "rocegwctl get gateways; on the host: systemctl status rocegw-agent");
}

void Preflight::OnProblem(uint32_t node, const std::string& problem) {
  Complain(plan_.nodes[node].name, problem);
}

// The question that each node is asked again before its first change: the storage is healthy,
// limits of its units suffice, and the gateway has a planned version.
void Preflight::OnHealth(const Arrived& arrived) {
  const std::string& name = plan_.nodes[arrived.node].name;
  migration::NodeRecord record;
  record.activity = migration::Activity::kForward;
  const migration::StepResult result = ResultOf(arrived);
  const migration::Judgement judgement =
      migration::Judge(plan_, arrived.node, record, Step::kHealth, result);
  if (judgement.outcome == migration::Outcome::kDone) return;
  Complain(name, "health: " + judgement.reason, "repair this, then: rocegwctl migrate preflight");
}

void Preflight::OnPath(const Arrived& arrived) {
  const NodeAnswer& answer = arrived.answer;
  const std::string path =
      plan_.nodes[arrived.node].name + " to " + plan_.nodes[(arrived.node + 1) % paths()].name;
  if (answer.code != 0)
    return Complain(path, ForeignText(answer.message.substr(0, 256)), answer.remedy);
  slowest_ns_ = std::max(slowest_ns_, answer.median_ns);
  slowest_p99_ns_ = std::max(slowest_p99_ns_, answer.p99_ns);
  if (answer.bytes_per_second < lowest_rate_) {
    lowest_rate_ = answer.bytes_per_second;
    lowest_rate_path_ = path;
  }
  for (migration::Finding& finding : PathFindings(path, answer)) Add(std::move(finding));
}

// Each node has a connection with each other one, so that the cluster has N (N - 1) queue pairs.
void Preflight::OnQuota(const Arrived& arrived) {
  const NodeAnswer& answer = arrived.answer;
  const std::string& name = plan_.nodes[arrived.node].name;
  const uint64_t peers = plan_.nodes.size() - 1;
  if (answer.code != 0) {
    return Add({migration::Finding::Class::kWarns, name,
                "its quota is not known: " + ForeignText(answer.message.substr(0, 160)),
                "rocegwctl get pools -g " + name});
  }
  if (!answer.free_qps.has_value() || *answer.free_qps >= peers) return;
  Complain(name,
           std::to_string(*answer.free_qps) + " more queue pairs fit the quota, and " +
               std::to_string(peers) + " peers need one each",
           "raise quota.peak.qps of the pool and its tenant, or limits.qps of the gateway");
}

void Preflight::OnAnswer(const Arrived& arrived) {
  --in_flight_;
  const NodeAnswer& answer = arrived.answer;
  const std::string& name = plan_.nodes[arrived.node].name;
  if (arrived.purpose == Purpose::kPreflightHealth) return OnHealth(arrived);
  if (arrived.purpose == Purpose::kPath) return OnPath(arrived);
  if (arrived.purpose == Purpose::kQuota) return OnQuota(arrived);
  if (arrived.purpose == Purpose::kPreflightGate) {
    const migration::StepResult verdict = ResultOf(arrived);
    // A gate on the new transport may have no data before the first node has it.
    if (verdict.outcome == migration::Outcome::kFailed) return Complain("before", verdict.text);
    if (verdict.outcome != migration::Outcome::kDone) undecided_ = verdict.text;
    return;
  }
  if (answer.code != 0) return Complain(name, ForeignText(answer.message.substr(0, 256)));
  if (answer.report.outcome() != WordOf(migration::Outcome::kDone))
    return Complain(name, "adapter " + plan_.adapter + ": " + ResultOf(arrived).text);
  if (arrived.purpose == Purpose::kInventory) {
    inventory_read_ = answer.report.inventory_hash() == plan_.inventory_hash;
    if (!inventory_read_) Complain(name, "the inventory is not the planned one");
    return;
  }
  for (const std::string& call : CallsFor(plan_)) {
    const auto& has = answer.report.calls();
    if (std::find(has.begin(), has.end(), call) == has.end())
      return Complain(name, "adapter " + plan_.adapter + " does not have the call " + call);
  }
}

std::optional<migration::PreflightResult> Preflight::Result() const {
  if (in_flight_ != 0 || next_ < plan_.nodes.size()) return std::nullopt;
  if (problems_ != 0) {
    return migration::PreflightResult{
        .passed = false,
        .text = findings_.front().subject + ": " + findings_.front().text +
                (problems_ == 1 ? "" : ", and " + std::to_string(problems_ - 1) + " more problems"),
        .findings = findings_};
  }
  if (!inventory_read_) return std::nullopt;
  std::string text = std::to_string(plan_.nodes.size()) + " nodes answered";
  if (paths() != 0) {
    text += ", " + std::to_string(paths()) + " paths carry whole packets (median at most " +
            std::to_string(slowest_ns_ / 1000) + " us, p99 " +
            std::to_string(slowest_p99_ns_ / 1000) + " us; slowest " + lowest_rate_path_ + ", " +
            std::to_string(lowest_rate_ / 1'000'000) + " MB/s)";
  }
  if (!undecided_.empty()) text += ", undecided: " + undecided_;
  text += ", the inventory is the planned one";
  if (warnings_ != 0) text += "; warnings: " + std::to_string(warnings_);
  return migration::PreflightResult{.passed = true, .text = text, .findings = findings_};
}

}  // namespace rocegw::migrations
