// SPDX-License-Identifier: Apache-2.0
// Parts of rocegwctl migrate.
#pragma once

#include <string>

#include "controlplane/cli/client/call_result.h"
#include "controlplane/cli/program.h"
#include "rocegw/admin/v1/migrations.pb.h"

namespace rocegw::cli {

// Commands that call an adapter.
void AddAdapterCommands(CLI::App& migrate, Program& program);
// Commands for migrations that a controller drives.
void AddRunningCommands(CLI::App& migrate, Program& program);
// Verification by hand.
void AddVerifyCommand(CLI::App& migrate, Program& program);

// Reads a migration of the controller. `id`: "m" or "migrations/m".
CallResult GetMigration(Program& program, const std::string& id, admin::v1::Migration& migration);
// Returns the characters per line of a migration's tables; 0: no limit.
size_t StatusLimit(const Program& program);

}  // namespace rocegw::cli
