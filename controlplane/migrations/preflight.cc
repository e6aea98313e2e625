// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/preflight.h"

#include <algorithm>

#include "controlplane/migration/drive/procedure.h"

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
  const auto again = std::ranges::unique(calls);
  calls.erase(again.begin(), again.end());
  return calls;
}

std::optional<Preflight::Question> Preflight::Next() {
  if (next_ < plan_.nodes.size()) {
    if (in_flight_ >= kMostInFlight) return std::nullopt;
    ++in_flight_;
    return Question{Purpose::kHello, next_++};
  }
  if (inventory_asked_ || in_flight_ != 0 || problems_ != 0) return std::nullopt;
  inventory_asked_ = true;
  ++in_flight_;
  return Question{Purpose::kInventory, 0};
}

void Preflight::Complain(uint32_t node, const std::string& text) {
  if (problems_++ == 0) first_problem_ = plan_.nodes[node].name + ": " + text;
}

void Preflight::OnUnreachable(uint32_t node) {
  --in_flight_;
  Complain(node, "there is no connected gateway of this name");
}

void Preflight::OnAnswer(const Arrived& arrived) {
  --in_flight_;
  const NodeAnswer& answer = arrived.answer;
  if (answer.code != 0) return Complain(arrived.node, answer.message);
  if (answer.report.outcome() != WordOf(migration::Outcome::kDone))
    return Complain(arrived.node, "adapter " + plan_.adapter + ": " + ResultOf(arrived).text);
  if (arrived.purpose == Purpose::kInventory) {
    inventory_read_ = answer.report.inventory_hash() == plan_.inventory_hash;
    if (!inventory_read_) Complain(arrived.node, "the inventory is not the planned one");
    return;
  }
  for (const std::string& call : CallsFor(plan_)) {
    const auto& has = answer.report.calls();
    if (std::find(has.begin(), has.end(), call) == has.end())
      return Complain(arrived.node, "adapter " + plan_.adapter + " does not have the call " + call);
  }
}

std::optional<migration::PreflightResult> Preflight::Result() const {
  if (in_flight_ != 0 || next_ < plan_.nodes.size()) return std::nullopt;
  if (problems_ != 0) {
    return migration::PreflightResult{
        .passed = false,
        .text =
            first_problem_ +
            (problems_ == 1 ? "" : ", and " + std::to_string(problems_ - 1) + " more problems")};
  }
  if (!inventory_read_) return std::nullopt;
  return migration::PreflightResult{
      .passed = true,
      .text = std::to_string(plan_.nodes.size()) +
              " nodes answered, and the inventory is the planned one"};
}

}  // namespace rocegw::migrations
