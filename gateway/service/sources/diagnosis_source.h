// SPDX-License-Identifier: Apache-2.0
// Interface of the service to the examination of the daemon's host. Implemented by the daemon;
// called from gRPC threads. Outlives the service.
#pragma once

#include <functional>

#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::service {

class DiagnosisSource {
 public:
  virtual ~DiagnosisSource() = default;

  // Examines the host and calls `done` exactly once, later or at once, on any thread; the response
  // has no time. Never blocks.
  virtual void Diagnose(std::function<void(const gateway::v1::DiagnoseResponse&)> done) = 0;
};

}  // namespace rocegw::service
