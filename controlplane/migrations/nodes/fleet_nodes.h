// SPDX-License-Identifier: Apache-2.0
// Nodes of migrations as gateways of the fleet, called through the tunnels of their agents. Any
// thread; follower and router outlive it.
#pragma once

#include <chrono>
#include <string>

#include "controlplane/api/questions/question_router.h"
#include "controlplane/migrations/nodes/free_qps.h"
#include "controlplane/migrations/nodes/node_access.h"
#include "controlplane/sync/fleet_follower.h"
#include "rocegw/types/v1/gateway.pb.h"

namespace rocegw::migrations {

class FleetNodes final : public NodeAccess {
 public:
  // `certificate_lifetime`: what nodes get when they join and renew.
  FleetNodes(sync::FleetFollower& follower, api::QuestionRouter& router,
             std::chrono::seconds certificate_lifetime)
      : follower_(follower), router_(router), certificate_lifetime_(certificate_lifetime) {}

  bool IsReachable(const std::string& node) override;
  std::string Problem(const std::string& node) override;
  void Call(const std::string& node, const fleet::v1::MigrationCall& call,
            std::chrono::seconds limit, std::function<void(NodeAnswer)> done) override;
  void ReadQuota(const std::string& node, std::chrono::seconds limit,
                 std::function<void(NodeAnswer)> done) override;
  void TestPath(const std::string& from, const std::string& to, std::chrono::seconds limit,
                std::function<void(NodeAnswer)> done) override;

 private:
  // Returns the limits of queue pairs that the controller knows for the pool of probes on the node.
  QpLimits LimitsOf(const std::string& node);

  sync::FleetFollower& follower_;
  api::QuestionRouter& router_;
  const std::chrono::seconds certificate_lifetime_;
};

// Returns why a node's certificate may end while a migration runs, or an empty text. A status
// without an end is of a fleet without certificates.
std::string CertificateProblem(const types::v1::GatewayState& status, std::chrono::seconds lifetime,
                               std::chrono::system_clock::time_point now);

}  // namespace rocegw::migrations
