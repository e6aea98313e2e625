// SPDX-License-Identifier: Apache-2.0
// Corrects the store when a controller vanishes without reporting its gateways as disconnected. The
// first running controller by id does it, so that it is done once. A controller that was taken for
// gone by mistake corrects the store itself (node_hub.h). Any thread; follower and status writer
// outlive it.
#pragma once

#include <string>

#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/status_writer.h"

namespace rocegw::sync {

class ConnectionKeeper {
 public:
  // `self`: id of this controller, which is registered in the store.
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
