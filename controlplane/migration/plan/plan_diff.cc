// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/plan/plan_diff.h"

#include <algorithm>
#include <map>

namespace rocegw::migration {

std::vector<PlanDifference> DifferencesOf(const Plan& plan, const Inventory& inventory) {
  std::vector<PlanDifference> differences;
  if (plan.cluster != inventory.cluster) {
    differences.push_back({"cluster", plan.cluster, inventory.cluster});
    return differences;
  }
  if (plan.inventory_hash == HashOf(inventory)) return differences;
  std::map<std::string_view, const InventoryNode*> nodes;
  for (const InventoryNode& node : inventory.nodes) nodes[node.name] = &node;
  for (const PlannedNode& planned : plan.nodes) {
    const auto found = nodes.find(planned.name);
    if (found == nodes.end()) {
      differences.push_back({"node " + planned.name, "there", "not there"});
      continue;
    }
    const InventoryNode& node = *found->second;
    nodes.erase(found);
    const auto domain = node.domains.find(plan.per_domain);
    const std::string now = domain == node.domains.end() ? "" : domain->second;
    if (!plan.per_domain.empty() && now != planned.domain)
      differences.push_back({"node " + planned.name, plan.per_domain + " " + planned.domain,
                             now.empty() ? "no " + plan.per_domain : plan.per_domain + " " + now});
    if (node.quorum != planned.quorum) {
      const auto text = [](bool quorum) { return std::string(quorum ? "a vote" : "no vote"); };
      differences.push_back({"node " + planned.name, text(planned.quorum), text(node.quorum)});
    }
  }
  for (const std::string& skipped : plan.skipped) {
    if (nodes.erase(skipped) == 0) differences.push_back({"node " + skipped, "there", "not there"});
  }
  for (const auto& [name, node] : nodes)
    differences.push_back({"node " + std::string(name), "not there", "there"});
  if (differences.empty())
    differences.push_back({"cluster", "as planned", "daemons, clients or hardware changed"});
  return differences;
}

}  // namespace rocegw::migration
