// SPDX-License-Identifier: Apache-2.0
// Updates operations in the store as their targets change. Its writes depend on the store only, so
// all controllers may make them at once. Any thread; follower and status writer outlive it.
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
