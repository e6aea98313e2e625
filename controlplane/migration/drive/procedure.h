// SPDX-License-Identifier: Apache-2.0
// Order of the steps of one node, forward and back, and the state that a node shows during each.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <span>

#include "controlplane/migration/model/names.h"

namespace rocegw::migration {

struct StepRule {
  Step step;
  NodeState before;  // reached by the steps before
  NodeState during;  // while the step runs
};

// Steps from PENDING to SOAKING. `restarts`: of Plan::restarts.
std::span<const StepRule> ForwardSteps(bool restarts);

// Steps that bring a node back after the first `issued` forward steps were issued; each may have
// been executed or not. Empty: nothing was changed.
std::span<const Step> UndoSteps(bool restarts, size_t issued);

// Number of forward steps before the first one that changes the node.
size_t HarmlessSteps();

}  // namespace rocegw::migration
