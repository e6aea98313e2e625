// SPDX-License-Identifier: Apache-2.0
// fleet.v1.NodeService: what agents call. gRPC's threads.
#pragma once

#include "controlplane/api/enrollment.h"
#include "controlplane/sync/fleet_follower.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"

namespace rocegw::api {

class NodeService : public fleet::v1::NodeService::CallbackService {
 public:
  // Both outlive it.
  NodeService(sync::FleetFollower& follower, Enrollment& enrollment)
      : follower_(follower), enrollment_(enrollment) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const fleet::v1::JoinRequest* request,
                                 fleet::v1::JoinResponse* response) override;
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const fleet::v1::RenewRequest* request,
                                  fleet::v1::RenewResponse* response) override;

 private:
  sync::FleetFollower& follower_;
  Enrollment& enrollment_;
};

}  // namespace rocegw::api
