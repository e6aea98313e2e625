// SPDX-License-Identifier: Apache-2.0
// What the standard methods need to know about each kind of stored object: where it is in a fleet,
// what it refers to, what stands in the way of its removal, and which rules over several objects it
// takes part in. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "controlplane/api/writes/write.h"
#include "controlplane/model/check.h"
#include "controlplane/model/resource_name.h"
#include "controlplane/sync/fleet_follower.h"

namespace rocegw::api {

// Beyond what the descriptors' rules say.
struct Relations {
  // Objects that must exist.
  std::vector<std::string> needs;
  // Guards of the rules that it was checked against or could break for others.
  std::vector<std::string> guards;
  // What does not fit.
  std::vector<model::Violation> violations;
};

// Relations of an object as it would be written.
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Tenant& tenant);
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Pool& pool);
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::CcPolicy& policy);
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Gateway& gateway);
Relations RelationsOf(const sync::Fleet& fleet, const types::v1::RoleBinding& binding);

// Why an object may not be removed; guards that this was decided by.
struct Holders {
  std::vector<std::string> names;  // objects that still refer to it, some of them
  std::vector<std::string> guards;
};
Holders HoldersOf(const sync::Fleet& fleet, const model::ResourceName& name);

}  // namespace rocegw::api
