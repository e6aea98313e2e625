// SPDX-License-Identifier: Apache-2.0
// How the service captures packets of the running daemon. Implemented by the daemon on its control
// thread; called from gRPC threads. Lives longer than the service.
#pragma once

#include <functional>
#include <memory>

#include "gateway/session/state/captures.h"

namespace rocegw::service {

class CaptureSource {
 public:
  virtual ~CaptureSource() = default;

  // started: once, on any thread; ESHUTDOWN when the daemon is stopping, else as
  // session::Captures::Start says.
  virtual void StartCapture(const session::CaptureOrder& order,
                            std::shared_ptr<port::CaptureSink> sink,
                            std::function<void(const Status&)> started) = 0;
  // Nobody reads it any more.
  virtual void AbortCapture(std::shared_ptr<port::CaptureSink> sink) = 0;
};

}  // namespace rocegw::service
