// SPDX-License-Identifier: Apache-2.0
// How the service asks the running daemon for its state. Implemented by the daemon on its control
// thread; called from gRPC and metrics threads. Lives longer than the service.
#pragma once

#include <functional>

#include "gateway/session/state/state_rows.h"

namespace rocegw::service {

class StateSource {
 public:
  virtual ~StateSource() = default;

  // Calls `done` exactly once, on any thread, possibly before returning. Never blocks and never
  // waits for client memory. A daemon that is stopping answers with an empty snapshot.
  virtual void Snapshot(const session::StateQuery& query,
                        std::function<void(session::StateSnapshot)> done) = 0;
};

}  // namespace rocegw::service
