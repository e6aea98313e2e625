// SPDX-License-Identifier: Apache-2.0
// Configuration of each gateway: its own spec, its pools, their tenants, all congestion policies,
// and the other gateways of the fleet. Pure functions of a view and its placement. Objects carry
// the store revision of their intent. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controlplane/controllers/fleet_view.h"
#include "controlplane/controllers/placement.h"
#include "rocegw/types/v1/push.pb.h"

namespace rocegw::controllers {

// Returns all objects in the order in which a gateway applies them: gateway, policies, tenants,
// pools, peers.
std::vector<types::v1::ConfigObject> FullConfig(const FleetView& view, const Placement& placement,
                                                const std::string& gateway);

// Returns the digest of FullConfig's objects without building them: a returning fleet asks for one
// digest per gateway, and each includes all peers.
uint64_t ConfigDigest(const FleetView& view, const Placement& placement,
                      const std::string& gateway);

// Returns the object as the gateway should have it; "removed" if it should not have it.
types::v1::ConfigObject ConfigOf(const FleetView& view, const Placement& placement,
                                 const std::string& gateway, const model::ResourceName& object);

// Returns the names of objects that a change affects, by gateway. View and placement are those
// after the change; `moves` is the result of the placement's update.
using Touches = std::map<std::string, std::set<std::string>>;
Touches Touched(const FleetView& view, const Placement& placement,
                const std::vector<Changed>& changed, const std::vector<Move>& moves);

// Sorts by the order of application; removals last, in reverse order.
void SortForApply(std::vector<types::v1::ConfigObject>& objects);

}  // namespace rocegw::controllers
