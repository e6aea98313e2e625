// SPDX-License-Identifier: Apache-2.0
// Differences between the kinds of stored objects for the standard methods: place in the fleet,
// references, obstacles to deletion, and rules over several objects. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "controlplane/api/writes/write.h"
#include "controlplane/model/check.h"
#include "controlplane/model/resource_name.h"
#include "controlplane/sync/fleet_follower.h"

namespace rocegw::api {

// Relations beyond the rules in the descriptors.
struct Relations {
  // Objects that must exist.
  std::vector<std::string> needs;
  // Guards of the rules that were checked, or that the write could break for others.
  std::vector<std::string> guards;
  // Violated rules.
  std::vector<model::Violation> violations;
};

// Returns the relations of an object that is about to be written.
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Tenant& tenant);
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Pool& pool);
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::CcPolicy& policy);
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Gateway& gateway);
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::RoleBinding& binding);
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Donor& donor);

// Reasons against deleting an object; guards of this decision.
struct Holders {
  std::vector<std::string> names;  // some of the objects that refer to it
  std::vector<std::string> guards;
};
Holders HoldersOf(const sync::Fleet& fleet, const model::ResourceName& name);

}  // namespace rocegw::api
