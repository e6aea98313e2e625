// SPDX-License-Identifier: Apache-2.0
// Calls of gateway.v1.StateService over the daemon's unix socket. Lists are read to their last
// page. One thread; every call blocks at most until the timeout given at construction, counted anew
// for each call.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "controlplane/cli/exit_code.h"
#include "rocegw/gateway/v1/state.pb.h"

namespace rocegw::cli {

// code kOk, or the exit code and one line for a person.
struct CallResult {
  ExitCode code = kOk;
  std::string text;
  bool ok() const { return code == kOk; }
};

class StateClient {
 public:
  StateClient(std::string socket, std::chrono::milliseconds timeout);
  ~StateClient();

  // Finds out why nobody answers before gRPC says only "unavailable".
  CallResult Connect();

  CallResult GetStatus(types::v1::GatewayStatus& out);
  CallResult ListSessions(gateway::v1::ListSessionsResponse& out);
  CallResult ListQps(gateway::v1::ListQpsResponse& out);
  CallResult ListMrs(gateway::v1::ListMrsResponse& out);
  CallResult GetCounters(gateway::v1::GetCountersResponse& out);

 private:
  struct Channel;
  std::string socket_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace rocegw::cli
