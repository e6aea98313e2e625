// SPDX-License-Identifier: Apache-2.0
// What each gateway should run: its own spec, the pools it serves, their tenants, all congestion
// policies, and the other gateways of the fleet. Pure functions of a view and its placement.
// Objects carry the store's revision of the intent that they were made from. Any thread.
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

// Everything, in the order in which a gateway applies it: gateway, policies, tenants, pools, peers.
std::vector<types::v1::ConfigObject> FullConfig(const FleetView& view, const Placement& placement,
                                                const std::string& gateway);

// Digest of FullConfig's objects, without making them: a fleet that comes back asks for as many of
// these as it has gateways, each of which knows all others.
uint64_t ConfigDigest(const FleetView& view, const Placement& placement,
                      const std::string& gateway);

// One object as the gateway should have it; "removed" when it should not have it.
types::v1::ConfigObject ConfigOf(const FleetView& view, const Placement& placement,
                                 const std::string& gateway, const model::ResourceName& object);

// Names of objects that a change touches, by gateway. View and placement are those after it;
// `moves` is what the placement's update returned.
using Touches = std::map<std::string, std::set<std::string>>;
Touches Touched(const FleetView& view, const Placement& placement,
                const std::vector<Changed>& changed, const std::vector<Move>& moves);

// Applies in the given order; removals come last and the other way round.
void SortForApply(std::vector<types::v1::ConfigObject>& objects);

}  // namespace rocegw::controllers
