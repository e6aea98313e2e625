// SPDX-License-Identifier: Apache-2.0
// Views of upgrades of gateways that a controller drives.
#pragma once

#include <string>

#include "rocegw/admin/v1/upgrades.pb.h"

namespace rocegw::cli {

// State, progress, and one line for each gateway. `limit`: characters per line of tables, 0: none.
std::string UpgradeStatusText(const admin::v1::Upgrade& upgrade, size_t limit);
std::string UpgradeListText(const admin::v1::ListUpgradesResponse& list, size_t limit);

}  // namespace rocegw::cli
