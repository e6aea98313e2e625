// SPDX-License-Identifier: Apache-2.0
// How the service has the running daemon's host examined. Implemented by the daemon; called from
// gRPC threads. Lives longer than the service.
#pragma once

#include <functional>

#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::service {

class DiagnosisSource {
 public:
  virtual ~DiagnosisSource() = default;

  // Calls `done` exactly once, later or at once, on any thread; without a time. Never blocks.
  virtual void Diagnose(std::function<void(const gateway::v1::DiagnoseResponse&)> done) = 0;
};

}  // namespace rocegw::service
