// SPDX-License-Identifier: Apache-2.0
// The two streams of an agent, as reactors of gRPC: they admit the caller at its first message,
// then pass messages between the agent and the hubs (sync/node_hub.h, sync/tunnel_hub.h). They
// delete themselves when the call is done. gRPC's threads.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "controlplane/api/services/standard_service.h"
#include "controlplane/identity/revocations.h"
#include "controlplane/sync/node_hub.h"
#include "controlplane/sync/tunnel_hub.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"

namespace rocegw::api {

// All of these outlive the streams.
struct NodeStreams {
  const Backend& backend;
  sync::NodeHub& hub;
  sync::TunnelHub& tunnels;
  identity::Revocations& revocations;
};

grpc::ServerBidiReactor<fleet::v1::SyncRequest, fleet::v1::SyncResponse>* NewSyncStream(
    grpc::CallbackServerContext* context, const NodeStreams& streams);
grpc::ServerBidiReactor<fleet::v1::TunnelAnswer, fleet::v1::TunnelQuestion>* NewTunnelStream(
    grpc::CallbackServerContext* context, const NodeStreams& streams);

}  // namespace rocegw::api
