// SPDX-License-Identifier: Apache-2.0
// Brings how operations stand into the store as their targets move. What it writes follows from the
// store alone, so all controllers may do it at once. Any thread; follower and status writer outlive
// it.
#pragma once

#include <set>
#include <string>

#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/status_writer.h"

namespace rocegw::sync {

class OperationKeeper {
 public:
  OperationKeeper(FleetFollower& follower, StatusWriter& statuses);
  ~OperationKeeper();
  OperationKeeper(const OperationKeeper&) = delete;
  OperationKeeper& operator=(const OperationKeeper&) = delete;

 private:
  void Look(const Fleet& fleet, const FleetChange& change);

  FleetFollower& follower_;
  StatusWriter& statuses_;
  FleetFollower::ListenerId listener_;
};

}  // namespace rocegw::sync
