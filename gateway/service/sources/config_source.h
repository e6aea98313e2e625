// SPDX-License-Identifier: Apache-2.0
// Interface of the service to the running daemon's configuration. Implemented by the daemon on its
// control thread; called from gRPC threads. Outlives the service.
#pragma once

#include <functional>

#include "gateway/session/state/state_rows.h"
#include "rocegw/gateway/v1/config.pb.h"

namespace rocegw::service {

class ConfigSource {
 public:
  virtual ~ConfigSource() = default;

  // Each function calls `done` exactly once, on any thread; `running` is false if the daemon is
  // stopping and nothing was done.
  virtual void Apply(const types::v1::Push& push,
                     std::function<void(bool running, types::v1::PushReport)> done) = 0;
  // Starts or ends a drain, for this run of the process only. The row is the state afterwards.
  virtual void Drain(bool drain, std::function<void(bool running, session::DrainRow)> done) = 0;
  virtual void Describe(std::function<void(bool running, gateway::v1::GetConfigResponse)> done) = 0;
};

}  // namespace rocegw::service
