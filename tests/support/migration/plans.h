// SPDX-License-Identifier: Apache-2.0
// Inventories and plans for tests of migrations.
#pragma once

#include <string>

#include "controlplane/migration/model/inventory.h"
#include "controlplane/migration/plan/planner.h"

namespace rocegw::migration {

struct PlanShape {
  uint32_t nodes = 6;
  SystemClass system_class = SystemClass::kDualPath;
  Transport from = Transport::kTcp;
  Transport target = Transport::kGateway;
  const char* waves = "canary=1,50%,100%";
  const char* per_domain = "";
  uint32_t max_unavailable = 1;
  bool flag_day = false;
  uint32_t votes = 0;  // the last nodes hold a vote
  bool approval = true;
  std::vector<std::string> gates = {};
};

// Nodes n1, n2, ... in racks r1 to r3.
inline Inventory TestInventory(const PlanShape& shape) {
  Inventory inventory{.cluster = "c1", .adapter = "generic", .system_class = shape.system_class};
  for (uint32_t i = 1; i <= shape.nodes; ++i) {
    InventoryNode node{.name = "n" + std::to_string(i)};
    node.domains["rack"] = "r" + std::to_string(i % 3 + 1);
    node.transport = shape.from;
    node.has_rnic = true;
    node.quorum = i + shape.votes > shape.nodes;
    node.gateway_version = "1.2.0";
    inventory.nodes.push_back(std::move(node));
  }
  return inventory;
}

inline PlanRequest TestRequest(const PlanShape& shape) {
  PlanRequest request{.name = "p1", .target = shape.target};
  std::string problem;
  request.waves = ReadWaveSizes(shape.waves, problem);
  request.per_domain = shape.per_domain;
  request.allow_flag_day = shape.flag_day;
  request.knobs.max_unavailable = shape.max_unavailable;
  request.gates = shape.gates;
  request.knobs.automatic_approval = !shape.approval;
  return request;
}

inline Plan TestPlan(const PlanShape& shape) {
  return MakePlan(TestInventory(shape), TestRequest(shape)).plan;
}

inline PlanShape FlagDay(uint32_t nodes) {
  return {
      .nodes = nodes, .system_class = SystemClass::kFlagDay, .waves = "all=100%", .flag_day = true};
}

inline PlanShape Rolling(uint32_t nodes) {
  return {.nodes = nodes,
          .system_class = SystemClass::kFlagDay,
          .from = Transport::kGateway,
          .target = Transport::kRnic};
}

}  // namespace rocegw::migration
