// SPDX-License-Identifier: Apache-2.0
// Choice of donors for a session of a tenant: those that the tenant may use, with room, in as many
// failure domains as pages have replicas. Reports of donors are older than the donors' own answers,
// which decide. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controlplane/controllers/fleet_view.h"

namespace rocegw::donors {

struct WantedRoom {
  std::string tenant;  // "tenants/T"
  uint64_t bytes = 0;
  uint32_t replicas = 0;    // 0: 1
  uint32_t donors = 0;      // to return; 0: 8
  std::string not_of = {};  // gateway that asks, whose own donors are not meant; empty: none
  std::string pool = {};    // shared block pool, all of whose donors are meant; empty: none
};

struct FoundRoom {
  std::vector<types::v1::FoundDonor> donors;
  // Sentence about why there is not enough room; empty: there is.
  std::string problem;
};

// Returns the donors that a session of the tenant should use, best first: those with most room up
// to what is wanted, and of equal ones others for each gateway and tenant that asks. Domains
// alternate, so that the first donors have as many domains as possible. Of a block pool: all its
// donors that are open for the tenant, the same for each that asks, since its members place values
// by the list.
FoundRoom FindRoom(const controllers::FleetView& view, const WantedRoom& wanted);

// Returns the bytes that the tenant can still lease from the donor, as last reported, by the
// donor's own quotas. Its share of the tenant's limit over all donors may be less
// (donor_shares.h).
uint64_t FreeFor(const types::v1::Donor& donor, const std::string& tenant);

// Returns the most that the tenant has leased from the donor, as last reported. A report names only
// the tenants with the most.
uint64_t LeasedBy(const types::v1::Donor& donor, const std::string& tenant);

// Returns the failure domain of the donor: its own, that of its gateway, or its gateway.
std::string FailureDomainOf(const controllers::FleetView& view, const types::v1::Donor& donor);

// Returns true if sessions can use the donor now: it is approved and reported, its host is
// connected, and neither is being drained.
bool Serves(const controllers::FleetView& view, const types::v1::Donor& donor);

// Returns true if the donor or its gateway is to be drained, or the donor has no approval.
bool IsToDrain(const controllers::FleetView& view, const types::v1::Donor& donor);

}  // namespace rocegw::donors
