// SPDX-License-Identifier: Apache-2.0
// Hosts of the fleet, asked through the tunnels of their agents. Any thread; follower and router
// outlive it.
#pragma once

#include <string>

#include "controlplane/api/questions/question_router.h"
#include "controlplane/sync/fleet_follower.h"
#include "controlplane/upgrades/host_access.h"

namespace rocegw::upgrades {

class FleetHosts final : public HostAccess {
 public:
  FleetHosts(sync::FleetFollower& follower, api::QuestionRouter& router)
      : follower_(follower), router_(router) {}

  HostState StateOf(const std::string& gateway) override;
  TakeOverReports TakeOvers() override;
  void Ask(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
           std::chrono::seconds limit, std::function<void(HostAnswer)> done) override;

 private:
  sync::FleetFollower& follower_;
  api::QuestionRouter& router_;
};

}  // namespace rocegw::upgrades
