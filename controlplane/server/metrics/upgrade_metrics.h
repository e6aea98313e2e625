// SPDX-License-Identifier: Apache-2.0
// Upgrade of the fleet's gateways as Prometheus metric families: of the newest upgrade that this
// controller has driven, counts by state. Any thread.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "controlplane/upgrades/upgrade_board.h"

namespace rocegw::server {

void AddUpgradeFamilies(const upgrades::UpgradeBoard::View& view,
                        std::vector<prometheus::MetricFamily>& families);

}  // namespace rocegw::server
