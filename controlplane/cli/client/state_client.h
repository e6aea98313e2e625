// SPDX-License-Identifier: Apache-2.0
// Live state of one gateway: from gateway.v1.StateService and DebugService on its unix socket, or
// through its agent's tunnel from admin.v1.Gateways of the controller; the answers are the same.
// One thread; each call blocks at most for the timeout of `rpc`.
#pragma once

#include <google/protobuf/message.h>

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
  // Reads a list to its last page. `list`: response of the gateway's call, such as ListQpsResponse.
  CallResult List(google::protobuf::Message& list);
  CallResult GetCounters(gateway::v1::GetCountersResponse& out);
  CallResult Diagnose(gateway::v1::DiagnoseResponse& out);

 private:
  Rpc& rpc_;
  std::string gateway_;
};

}  // namespace rocegw::cli
