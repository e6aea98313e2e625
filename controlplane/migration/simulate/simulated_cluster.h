// SPDX-License-Identifier: Apache-2.0
// A cluster in memory with agents that execute commands: paths, configurations, I/Os in flight, and
// the failures that were asked for. Time passes only by arguments. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "controlplane/migration/check/invariants.h"
#include "controlplane/migration/drive/command_book.h"
#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/plan/plan.h"
#include "controlplane/migration/simulate/failure.h"

namespace rocegw::migration {

class SimulatedCluster {
 public:
  SimulatedCluster(const Plan& plan, std::vector<Failure> failures, uint64_t seed);

  // Happening beside the answer of a command.
  struct Execution {
    bool executed = false;             // false: refused, or known already
    std::optional<StepResult> result;  // not set: no answer
    int64_t duration = 1;
    std::optional<int64_t> lost_for;  // the node loses power; 0: for ever
    bool controller_killed = false;
    bool drifts = false;
  };
  Execution Execute(const CommandIntent& command);
  Outcome EvaluateGates(uint32_t wave);

  const std::vector<NodeFacts>& facts() const { return facts_; }
  std::vector<NodeFacts>& facts() { return facts_; }
  // Agents without fencing, for the test of that check.
  void ForgetFencing() { fencing_ = false; }

 private:
  Failure* Matching(const CommandIntent& command);
  StepResult Apply(const CommandIntent& command);
  uint64_t Draw(uint64_t below);

  const Plan& plan_;
  std::vector<Failure> failures_;
  std::vector<NodeFacts> facts_;
  std::vector<CommandBook> books_;
  uint64_t random_;
  bool fencing_ = true;
};

}  // namespace rocegw::migration
