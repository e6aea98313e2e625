// SPDX-License-Identifier: Apache-2.0
// Brings into the store that gateways are not connected any more whose controller went without
// saying so. Of the controllers that are there the first by id does it, so that it is done once.
// One that is taken for gone and is not puts it right itself (node_hub.h). Any thread; follower and
// status writer outlive it.
#pragma once

#include <string>

#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/status_writer.h"

namespace rocegw::sync {

class ConnectionKeeper {
 public:
  // self: id of this controller, whose presence is in the store.
  ConnectionKeeper(FleetFollower& follower, StatusWriter& statuses, std::string self);
  ~ConnectionKeeper();
  ConnectionKeeper(const ConnectionKeeper&) = delete;
  ConnectionKeeper& operator=(const ConnectionKeeper&) = delete;

 private:
  void Write(const Fleet& fleet, bool unnamed);

  FleetFollower& follower_;
  StatusWriter& statuses_;
  const std::string self_;
  FleetFollower::ListenerId listener_;
};

}  // namespace rocegw::sync
