// SPDX-License-Identifier: Apache-2.0
// Check of committed amounts. They are always admitted, so before one is written their sums are
// compared with what exists: on every gateway with its capacity (a tenant counts with its own
// committed amount, or its pools' sum if that is more; the same rule as in
// gateway/tenant/commitments.h), per tenant with the tenant's peak there, and over the fleet with
// the tenant's cap. Pure functions of a view and its placement; each returns everything that would
// not fit if the object were as given, new or changed. Any thread.
#pragma once

#include <vector>

#include "controlplane/controllers/fleet_view.h"
#include "controlplane/controllers/placement.h"
#include "controlplane/model/check.h"

namespace rocegw::controllers {

// Fields of the violations are below "pool.", "tenant.", "gateway.".
std::vector<model::Violation> CheckPool(const FleetView& view, const Placement& placement,
                                        const types::v1::Pool& pool);
std::vector<model::Violation> CheckTenant(const FleetView& view, const Placement& placement,
                                          const types::v1::Tenant& tenant);
std::vector<model::Violation> CheckGateway(const FleetView& view, const Placement& placement,
                                           const types::v1::Gateway& gateway);

}  // namespace rocegw::controllers
