// SPDX-License-Identifier: Apache-2.0
// fleet.v1.ReplicaService: questions that another controller passes on, for gateways whose streams
// end here. gRPC's threads.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/tunnel_hub.h"
#include "rocegw/fleet/v1/replica.grpc.pb.h"

namespace rocegw::api {

class ReplicaService final : public fleet::v1::ReplicaService::CallbackService {
 public:
  // Both outlive it.
  ReplicaService(const sync::FleetFollower& follower, sync::TunnelHub& tunnels)
      : follower_(follower), tunnels_(tunnels) {}

  grpc::ServerBidiReactor<fleet::v1::ForwardRequest, fleet::v1::TunnelAnswer>* Forward(
      grpc::CallbackServerContext* context) override;

 private:
  const sync::FleetFollower& follower_;
  sync::TunnelHub& tunnels_;
};

}  // namespace rocegw::api
