// SPDX-License-Identifier: Apache-2.0
// Division of a tenant's limit of donated memory (TenantSpec.donated_bytes) among donors. A donor
// enforces its share by itself, so the shares of a tenant must never exceed the limit, whatever the
// order in which donors learn of them: a share grows only by bytes that no other donor may still
// use. The shares are stored in the tenant's status; the revision of that status says which shares
// a donor follows. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controlplane/controllers/fleet_view.h"
#include "rocegw/fleet/v1/donors.pb.h"

namespace rocegw::donors {

// Limit of the number of donors that have a share of one tenant's limit.
inline constexpr size_t kMostShares = 1024;

// Returns the shares of the tenant as they should be stored, by name of the donor; nullopt: as
// they are.
std::optional<types::v1::TenantStatus> NewShares(
    const controllers::FleetView& view, const controllers::Known<types::v1::Tenant>& tenant);

// Returns the bytes that are left of the donor's share of the tenant's limit; without such a limit
// UINT64_MAX.
uint64_t ShareLeft(const controllers::FleetView& view, const types::v1::Donor& donor,
                   const std::string& tenant);

// Fills in the quotas that the donor should enforce: those of its spec, and its shares.
void AddQuotas(const controllers::FleetView& view, const types::v1::Donor& donor,
               fleet::v1::DonorOrder& order);

}  // namespace rocegw::donors
