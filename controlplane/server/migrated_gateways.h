// SPDX-License-Identifier: Apache-2.0
// Gateways whose migration has not ended, for upgrades: a step of a migration compares the version
// of its gateway. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controlplane/store/transaction.h"

namespace rocegw::server {

// Returns the gateways ("gateways/G") that are nodes of migrations that have not ended, each with
// one such migration ("migrations/M"). `entries`: all entries of migrations. A migration whose rows
// cannot be read is not driven and has none.
std::map<std::string, std::string> MigratedGateways(const std::vector<store::Entry>& entries);

}  // namespace rocegw::server
