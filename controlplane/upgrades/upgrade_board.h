// SPDX-License-Identifier: Apache-2.0
// Summary of the newest upgrade for metrics.
#pragma once

#include <optional>

#include "controlplane/api/driving/board.h"
#include "rocegw/admin/v1/upgrades.pb.h"

namespace rocegw::upgrades {

struct UpgradeSummary {
  bool drives = false;
  // Without its gateways; nothing: none has been driven here.
  std::optional<admin::v1::Upgrade> upgrade;
};

using UpgradeBoard = api::Board<UpgradeSummary>;

}  // namespace rocegw::upgrades
