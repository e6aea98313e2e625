// SPDX-License-Identifier: Apache-2.0
// Does what is committed fit? Committed amounts are always admitted, so before one is written their
// sums are compared with what there is: on every gateway with its capacity (a tenant counts with
// what is committed to it, or to its pools together if that is more; gateway/tenant/commitments.h
// has the same rule), per tenant with the tenant's peak there, and over the fleet with the tenant's
// cap. Pure functions of a view and its placement; each says all that would not fit if the object
// were as it is given, new or changed. Any thread.
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
