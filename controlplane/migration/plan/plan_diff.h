// SPDX-License-Identifier: Apache-2.0
// Differences between a plan and the cluster as it is now. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "controlplane/migration/model/inventory.h"
#include "controlplane/migration/plan/plan.h"

namespace rocegw::migration {

struct PlanDifference {
  std::string subject;  // "node n3", "cluster"
  std::string planned;
  std::string now;
};

// Returns nothing if the plan fits the inventory. Transports do not count: a migration changes
// them.
std::vector<PlanDifference> DifferencesOf(const Plan& plan, const Inventory& inventory);

}  // namespace rocegw::migration
