// SPDX-License-Identifier: Apache-2.0
// Progress of the gateways of this controller, reported once all changes up to a revision were sent
// to them.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>

#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/node_hub.h"

namespace rocegw::api {

// Calls `done`, now or later, or finishes the call if the store has not reached the revision.
// Follower and hub outlive the call.
void AwaitSent(sync::FleetFollower& follower, sync::NodeHub& hub, store::Revision revision,
               grpc::ServerUnaryReactor& reactor,
               std::function<void(const sync::FleetProgress&)> done);

}  // namespace rocegw::api
