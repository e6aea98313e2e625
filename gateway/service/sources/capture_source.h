// SPDX-License-Identifier: Apache-2.0
// Interface of the service to packet captures of the running daemon. Implemented by the daemon on
// its control thread; called from gRPC threads. Outlives the service.
#pragma once

#include <functional>
#include <memory>

#include "gateway/session/state/captures.h"

namespace rocegw::service {

class CaptureSource {
 public:
  virtual ~CaptureSource() = default;

  // Starts a capture. `started` is called once, on any thread: ESHUTDOWN if the daemon is stopping,
  // else the result of session::Captures::Start.
  virtual void StartCapture(const session::CaptureOrder& order,
                            std::shared_ptr<port::CaptureSink> sink,
                            std::function<void(const Status&)> started) = 0;
  // Ends a capture that has no reader any more.
  virtual void AbortCapture(std::shared_ptr<port::CaptureSink> sink) = 0;
};

}  // namespace rocegw::service
