// SPDX-License-Identifier: Apache-2.0
// fleet.v1.NodeService, called by agents. gRPC's threads.
#pragma once

#include <atomic>

#include "controlplane/api/nodes/enrollment.h"
#include "controlplane/api/nodes/node_streams.h"
#include "controlplane/identity/fleet_key_schedule.h"
#include "controlplane/sync/fleet_follower.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"

namespace rocegw::api {

class NodeService final : public fleet::v1::NodeService::CallbackService {
 public:
  // All arguments outlive it.
  NodeService(Enrollment& enrollment, const NodeStreams& streams,
              const identity::FleetKeySchedule& keys)
      : follower_(streams.backend.follower),
        enrollment_(enrollment),
        streams_(streams),
        keys_(keys) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const fleet::v1::JoinRequest* request,
                                 fleet::v1::JoinResponse* response) override;
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const fleet::v1::RenewRequest* request,
                                  fleet::v1::RenewResponse* response) override;
  grpc::ServerUnaryReactor* GetFleetKeys(grpc::CallbackServerContext* context,
                                         const fleet::v1::GetFleetKeysRequest* request,
                                         fleet::v1::GetFleetKeysResponse* response) override;
  grpc::ServerBidiReactor<fleet::v1::SyncRequest, fleet::v1::SyncResponse>* Sync(
      grpc::CallbackServerContext* context) override {
    return NewSyncStream(context, streams_);
  }
  grpc::ServerBidiReactor<fleet::v1::TunnelAnswer, fleet::v1::TunnelQuestion>* Tunnel(
      grpc::CallbackServerContext* context) override {
    return NewTunnelStream(context, streams_);
  }

 private:
  std::atomic<int> joining_{0};  // Join calls in progress
  sync::FleetFollower& follower_;
  Enrollment& enrollment_;
  const NodeStreams streams_;
  const identity::FleetKeySchedule& keys_;
};

}  // namespace rocegw::api
