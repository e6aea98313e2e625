// SPDX-License-Identifier: Apache-2.0
// Parts of rocegwctl migrate.
#pragma once

#include "controlplane/cli/program.h"

namespace rocegw::cli {

// Commands that call an adapter.
void AddAdapterCommands(CLI::App& migrate, Program& program);
// Commands for migrations that a controller drives.
void AddRunningCommands(CLI::App& migrate, Program& program);
// Verification by hand.
void AddVerifyCommand(CLI::App& migrate, Program& program);

}  // namespace rocegw::cli
