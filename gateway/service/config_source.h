// SPDX-License-Identifier: Apache-2.0
// How the service changes and asks the running daemon's configuration. Implemented by the daemon on
// its control thread; called from gRPC threads. Lives longer than the service.
#pragma once

#include <functional>

#include "gateway/session/state/state_rows.h"
#include "rocegw/gateway/v1/config.pb.h"

namespace rocegw::service {

class ConfigSource {
 public:
  virtual ~ConfigSource() = default;

  // Each calls `done` exactly once, on any thread; `running` is false when the daemon is stopping
  // and nothing was done.
  virtual void Apply(const types::v1::Push& push,
                     std::function<void(bool running, types::v1::PushReport)> done) = 0;
  // For the life of the process only. The row tells how it stands afterwards.
  virtual void Drain(bool drain, std::function<void(bool running, session::DrainRow)> done) = 0;
  virtual void Describe(std::function<void(bool running, gateway::v1::GetConfigResponse)> done) = 0;
};

}  // namespace rocegw::service
