// SPDX-License-Identifier: Apache-2.0
// Judges the result of a step by what the node's tools and gateway report. An adapter that says
// "done" without the facts that the step needs is not believed. Pure; any thread.
#pragma once

#include <string>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/plan/plan.h"

namespace rocegw::migration {

struct Judgement {
  Outcome outcome = Outcome::kDone;
  std::string reason;  // a line for people, unless done
};

Judgement Judge(const Plan& plan, uint32_t node, const NodeRecord& record, Step step,
                const StepResult& result);

}  // namespace rocegw::migration
