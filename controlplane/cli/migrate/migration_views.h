// SPDX-License-Identifier: Apache-2.0
// Output of plans and simulations of migrations: tables of at most 80 columns, and JSON.
#pragma once

#include <string>
#include <vector>

#include "controlplane/migration/plan/plan.h"
#include "controlplane/migration/plan/plan_diff.h"
#include "controlplane/migration/simulate/simulation.h"

namespace rocegw::cli {

// `limit`: characters per line, 0: none.
std::string PlanText(const migration::Plan& plan, size_t limit);
std::string DifferencesText(const std::vector<migration::PlanDifference>& differences,
                            size_t limit);
std::string DifferencesJson(const std::vector<migration::PlanDifference>& differences);

struct SimulationView {
  const migration::Plan& plan;
  const migration::Simulation& simulation;
  int64_t begun_at = 0;
  bool events = false;  // each change of a state
};
std::string SimulationText(const SimulationView& view, size_t limit);
std::string SimulationJson(const SimulationView& view);

}  // namespace rocegw::cli
