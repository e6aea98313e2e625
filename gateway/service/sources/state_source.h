// SPDX-License-Identifier: Apache-2.0
// Interface of the service to the running daemon's state. Implemented by the daemon on its control
// thread; called from gRPC and metrics threads. Outlives the service.
#pragma once

#include <functional>

#include "gateway/session/state/state_rows.h"

namespace rocegw::service {

class StateSource {
 public:
  virtual ~StateSource() = default;

  // Calls `done` exactly once, on any thread, possibly before returning. Never blocks and never
  // waits for client memory. A stopping daemon answers with an empty snapshot.
  virtual void Snapshot(const session::StateQuery& query,
                        std::function<void(session::StateSnapshot)> done) = 0;
};

}  // namespace rocegw::service
