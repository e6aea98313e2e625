// SPDX-License-Identifier: Apache-2.0
// State of pools and tenants on their gateways, from the gateways' last reports. Computed on
// demand: storing it would write to the store for every report of every gateway. Pure.
#pragma once

#include <string>

#include "controlplane/controllers/fleet_view.h"
#include "controlplane/controllers/placement.h"

namespace rocegw::controllers {

// Limit of rejections listed in a status; others are only counted.
inline constexpr int kMostRejections = 5;

// Without usage, which is not in the view.
types::v1::PoolStatus PoolStatusOf(const FleetView& view, const Placement& placement,
                                   const std::string& pool);
types::v1::TenantStatus TenantStatusOf(const FleetView& view, const Placement& placement,
                                       const std::string& tenant);

}  // namespace rocegw::controllers
