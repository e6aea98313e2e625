// SPDX-License-Identifier: Apache-2.0
// rocegwctl upgrade: upgrades of gateways that a controller drives.
#pragma once

#include "controlplane/cli/program.h"

namespace rocegw::cli {

void AddUpgradeCommands(CLI::App& app, Program& program);

}  // namespace rocegw::cli
