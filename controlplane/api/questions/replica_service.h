// SPDX-License-Identifier: Apache-2.0
// fleet.v1.ReplicaService: calls of other controllers, for gateways that are connected to this one.
// gRPC's threads.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/node_hub.h"
#include "controlplane/sync/tunnel_hub.h"
#include "rocegw/fleet/v1/replica.grpc.pb.h"

namespace rocegw::api {

class ReplicaService final : public fleet::v1::ReplicaService::CallbackService {
 public:
  // All arguments outlive it.
  ReplicaService(sync::FleetFollower& follower, sync::TunnelHub& tunnels, sync::NodeHub& hub)
      : follower_(follower), tunnels_(tunnels), hub_(hub) {}

  grpc::ServerBidiReactor<fleet::v1::ForwardRequest, fleet::v1::TunnelAnswer>* Forward(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetProgress(grpc::CallbackServerContext* context,
                                        const fleet::v1::ReplicaProgressRequest* request,
                                        fleet::v1::ReplicaProgress* response) override;
  grpc::ServerUnaryReactor* Adopt(grpc::CallbackServerContext* context,
                                  const fleet::v1::ReplicaAdoptRequest* request,
                                  fleet::v1::ReplicaAdopted* response) override;

 private:
  sync::FleetFollower& follower_;
  sync::TunnelHub& tunnels_;
  sync::NodeHub& hub_;
};

}  // namespace rocegw::api
