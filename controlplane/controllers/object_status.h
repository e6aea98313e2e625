// SPDX-License-Identifier: Apache-2.0
// How pools and tenants stand on their gateways, from what these have reported last. Worked out
// when somebody asks: with many gateways to a pool, storing it would write to the store for every
// report. Pure.
#pragma once

#include <string>

#include "controlplane/controllers/fleet_view.h"
#include "controlplane/controllers/placement.h"

namespace rocegw::controllers {

// Rejections that a status tells of; more are only counted.
inline constexpr int kMostRejections = 5;

// Without what is used, which is not in the view.
types::v1::PoolStatus PoolStatusOf(const FleetView& view, const Placement& placement,
                                   const std::string& pool);
types::v1::TenantStatus TenantStatusOf(const FleetView& view, const Placement& placement,
                                       const std::string& tenant);

}  // namespace rocegw::controllers
