// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/connection_keeper.h"

#include <utility>

#include "controlplane/controllers/lost_gateways.h"
#include "controlplane/model/serialized.h"

namespace rocegw::sync {

ConnectionKeeper::ConnectionKeeper(FleetFollower& follower, StatusWriter& statuses,
                                   std::string self)
    : follower_(follower), statuses_(statuses), self_(std::move(self)) {
  listener_ = follower_.Listen([this](const Fleet& fleet, const FleetChange& change) {
    if (!change.everything && !change.replicas) return;
    if (!fleet.replicas.empty() && fleet.replicas.begin()->first == self_) Write(fleet, false);
  });
  // Each controller checks once at its start for gateways that an older version left without a
  // controller; running controllers of that version report theirs again.
  follower_.Read([this](const Fleet& fleet) { Write(fleet, true); });
}

ConnectionKeeper::~ConnectionKeeper() { follower_.Unlisten(listener_); }

void ConnectionKeeper::Write(const Fleet& fleet, bool unnamed) {
  for (const std::string& name : controllers::LostGateways(fleet.view, fleet.replicas, unnamed)) {
    types::v1::Gateway gateway;
    *gateway.mutable_status() = fleet.view.gateways.at(name).object.status();
    gateway.mutable_status()->set_connected(false);
    statuses_.Set(model::NameOf(name), model::Serialized(gateway));
  }
}

}  // namespace rocegw::sync
