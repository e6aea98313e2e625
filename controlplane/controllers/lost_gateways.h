// SPDX-License-Identifier: Apache-2.0
// Which gateways are shown as connected though the controller that held their agents' streams is
// not there any more, so that nobody else will say that they are gone. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controlplane/controllers/fleet_view.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::controllers {

// Controllers that are there, by their ids.
using Replicas = std::map<std::string, controlplane::v1::ReplicaRecord>;

// unnamed: also those of which no controller is said to have them, as older versions write it.
std::vector<std::string> LostGateways(const FleetView& view, const Replicas& replicas,
                                      bool unnamed);

}  // namespace rocegw::controllers
