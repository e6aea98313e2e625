// SPDX-License-Identifier: Apache-2.0
// Makes a plan from an inventory, or says why there is none. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "controlplane/migration/model/inventory.h"
#include "controlplane/migration/plan/plan.h"
#include "controlplane/migration/plan/wave_sizes.h"

namespace rocegw::migration {

struct PlanRequest {
  std::string name;
  Transport target = Transport::kGateway;
  std::vector<WaveSize> waves;
  std::string per_domain;
  bool allow_flag_day = false;  // a window without service is accepted
  Knobs knobs;
  std::vector<std::string> gates;
};

struct PlanResult {
  Plan plan;
  std::vector<std::string> problems;  // empty: there is a plan
};

PlanResult MakePlan(const Inventory& inventory, const PlanRequest& request);

}  // namespace rocegw::migration
