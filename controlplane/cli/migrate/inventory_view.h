// SPDX-License-Identifier: Apache-2.0
// View of a storage cluster's inventory: its nodes, and the clients that a migration cannot move.
#pragma once

#include <cstddef>
#include <string>

#include "controlplane/migration/model/inventory.h"

namespace rocegw::cli {

// `limit`: characters per line, 0: none. `all_clients`: clients that follow by themselves, too.
std::string InventoryText(const migration::Inventory& inventory, size_t limit, bool all_clients);

}  // namespace rocegw::cli
