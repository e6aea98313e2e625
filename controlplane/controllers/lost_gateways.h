// SPDX-License-Identifier: Apache-2.0
// Gateways that count as connected although the controller with their streams is gone, so that no
// other controller will report them as disconnected. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controlplane/controllers/fleet_view.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::controllers {

// Running controllers by id.
using Replicas = std::map<std::string, controlplane::v1::ReplicaRecord>;

// `unnamed`: also gateways without a named controller, as older versions write them.
std::vector<std::string> LostGateways(const FleetView& view, const Replicas& replicas,
                                      bool unnamed);

}  // namespace rocegw::controllers
