// SPDX-License-Identifier: Apache-2.0
// Live state of one gateway: from gateway.v1.StateService and DebugService on its unix socket, or
// through its agent's tunnel from admin.v1.Gateways of the controller; the answers are the same.
// Lists are read to their last page. One thread; each call blocks at most for the timeout of `rpc`.
#pragma once

#include <string>

#include "controlplane/cli/client/rpc.h"
#include "rocegw/gateway/v1/debug.pb.h"
#include "rocegw/gateway/v1/state.pb.h"

namespace rocegw::cli {

class StateClient {
 public:
  // `gateway`: "gateways/G", asked through the controller; empty: `rpc` is the gateway's own.
  StateClient(Rpc& rpc, std::string gateway) : rpc_(rpc), gateway_(std::move(gateway)) {}

  CallResult GetStatus(types::v1::GatewayStatus& out);
  CallResult ListSessions(gateway::v1::ListSessionsResponse& out);
  CallResult ListQps(gateway::v1::ListQpsResponse& out);
  CallResult ListConnections(gateway::v1::ListConnectionsResponse& out);
  CallResult ListChannels(gateway::v1::ListChannelsResponse& out);
  CallResult ListMrs(gateway::v1::ListMrsResponse& out);
  CallResult ListSrqs(gateway::v1::ListSrqsResponse& out);
  CallResult ListPools(gateway::v1::ListPoolsResponse& out);
  CallResult ListEvents(gateway::v1::ListEventsResponse& out);
  CallResult GetCounters(gateway::v1::GetCountersResponse& out);
  CallResult Diagnose(gateway::v1::DiagnoseResponse& out);

 private:
  template <typename Response, typename MoveRows>
  CallResult ReadPages(const char* list, Response& all, MoveRows move_rows);

  Rpc& rpc_;
  std::string gateway_;
};

}  // namespace rocegw::cli
