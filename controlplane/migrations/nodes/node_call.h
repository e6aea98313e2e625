// SPDX-License-Identifier: Apache-2.0
// Calls of adapters as messages for agents. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "controlplane/migrations/stored_migration.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::migrations {

// Returns a question for the node of a migration; with a command's number set it is a step.
// `call`: "hello", "inventory", or the word of a step.
fleet::v1::MigrationCall CallFor(const StoredMigration& stored, uint32_t node,
                                 const std::string& call);

}  // namespace rocegw::migrations
