// SPDX-License-Identifier: Apache-2.0
// Gateways of the upgrade in progress, for migrations: a step of a migration compares the version
// of its gateway. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controlplane/store/transaction.h"

namespace rocegw::upgrades {

// Returns the gateways ("gateways/G") of upgrades that have not ended, each with its upgrade
// ("upgrades/U"). `entries`: all entries below kUpgradePrefix. An upgrade whose rows cannot be read
// is not driven and has none. A migration reads the row of api::kGatewayOrdersKey before.
std::map<std::string, std::string> UpgradingGateways(const std::vector<store::Entry>& entries);

}  // namespace rocegw::upgrades
