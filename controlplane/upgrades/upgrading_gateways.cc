// SPDX-License-Identifier: Apache-2.0
#include "controlplane/upgrades/upgrading_gateways.h"

#include "controlplane/upgrades/stored_upgrade.h"

namespace rocegw::upgrades {

std::map<std::string, std::string> UpgradingGateways(const std::vector<store::Entry>& entries) {
  std::map<std::string, std::vector<store::Entry>> by_id;
  for (const store::Entry& entry : entries) by_id[IdOfKey(entry.key)].push_back(entry);
  std::map<std::string, std::string> gateways;
  for (const auto& [id, own] : by_id) {
    std::string problem;
    const StoredUpgrade stored = ReadUpgrade(id, own, problem);
    if (!problem.empty() || HasEnded(stored.upgrade)) continue;
    for (const admin::v1::UpgradedGateway& gateway : stored.upgrade.gateways())
      gateways.emplace(gateway.name(), "upgrades/" + id);
  }
  return gateways;
}

}  // namespace rocegw::upgrades
