// SPDX-License-Identifier: Apache-2.0
// Controller of a migration under test: events go in one at a time, and the last command of each
// node stays for an answer.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controlplane/migration/drive/controller.h"
#include "controlplane/migration/drive/record.h"
#include "tests/support/migration/plans.h"

namespace rocegw::migration {

// Returns the rows of all nodes and waves.
inline std::vector<std::string> RowsOf(const Record& record) {
  std::vector<std::string> rows;
  for (uint32_t row = 0; row < RowsFor(record.nodes.size()); ++row)
    rows.push_back(NodeRowJson(record, row));
  return rows;
}

// Returns all that is written of a record.
inline std::string TextOf(const Record& record) {
  std::string text = RecordHeadJson(record);
  for (const std::string& row : RowsOf(record)) text += row;
  return text;
}

class ControllerTest : public ::testing::Test {
 protected:
  using S = MigrationState;

  explicit ControllerTest(const PlanShape& shape = {})
      : plan_(TestPlan(shape)), record_(NewRecord(plan_)) {}

  Transition On(const Event& event, int64_t after = 0) {
    now_ += after;
    Transition transition = Handle(plan_, record_, event, now_);
    for (const Intent& intent : transition.intents) {
      if (const auto* command = std::get_if<CommandIntent>(&intent))
        sent_[command->node] = *command;
      if (const auto* gate = std::get_if<GateIntent>(&intent)) gate_ = gate->round;
    }
    return transition;
  }
  std::string Give(Verb verb, std::optional<uint32_t> node = {},
                   std::optional<uint32_t> wave = {}) {
    return On(Order{.verb = verb, .node = node, .wave = wave, .who = "alice"}).refusal;
  }
  void BringTo(S state) {
    On(TakeOver{});
    Give(Verb::kPlan);
    if (state == S::kPlanned) return;
    On(PreflightResult{true, ""});
    if (state == S::kPreflighted) return;
    Give(Verb::kStart);
  }
  StepResult Answer(uint32_t node, Outcome outcome = Outcome::kDone) {
    const CommandIntent& command = sent_.at(node);
    StepResult result{
        .node = node, .command = command.command, .outcome = outcome, .text = "because"};
    const bool back = record_.nodes[node].activity == Activity::kUndo;
    const Transport used = back ? plan_.nodes[node].from : plan_.target;
    result.evidence = {.outstanding = 0,
                       .config_hash = "new",
                       .stated = used,
                       .counted = used,
                       .journal_intact = true};
    if (back || command.step == Step::kBackup) result.evidence.config_hash = "old";
    result.evidence.clients_on_old = 0;
    result.evidence.gateway_version = "1.2.0";
    return result;
  }
  // Answers "done" until the node is about to execute `step`.
  void Until(uint32_t node, Step step) {
    for (int i = 0; i < 30 && sent_.at(node).step != step; ++i) On(Answer(node), 1);
    ASSERT_EQ(sent_.at(node).step, step);
  }
  void Finish(uint32_t node) {
    for (int i = 0; i < 30 && IsBusy(node); ++i) On(Answer(node), 1);
  }
  bool IsBusy(uint32_t node) const { return record_.nodes[node].activity != Activity::kNone; }
  uint32_t Canary() const { return plan_.waves[0].nodes[0]; }
  // Canary done, soaked, and its gates held.
  void PassWave() {
    for (const uint32_t node : plan_.waves[record_.wave].nodes) Finish(node);
    On(Tick{}, plan_.knobs.soak);
    On(GateResult{gate_, Outcome::kDone, ""});
  }

  const Plan plan_;
  Record record_;
  int64_t now_ = 1000;
  std::map<uint32_t, CommandIntent> sent_;
  uint64_t gate_ = 0;
};

}  // namespace rocegw::migration
