// SPDX-License-Identifier: Apache-2.0
// Interface of the service to programs that wait for an attach verdict. Implemented by the daemon
// on its control thread; called from gRPC threads. Outlives the service.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/session/state/state_rows.h"
#include "gateway/tenant/slot_share.h"

namespace rocegw::service {

class AttachSource {
 public:
  virtual ~AttachSource() = default;

  // Each function calls `done` exactly once, on any thread.
  virtual void ListHeld(uint64_t after, Duration wait,
                        std::function<void(std::vector<session::HeldRow>)> done) = 0;
  // Passes on a verdict; done(false) if the program does not wait any more. `limits`: of the
  // programs at its attach socket together.
  virtual void AnswerHeld(uint64_t id, bool allowed, const std::string& reason,
                          const tenant::SlotLimits& limits,
                          std::function<void(bool known)> done) = 0;
  // Ends the sessions of an attach socket and passes the number of those still ending.
  // `expect_program`: a program will attach there soon.
  virtual void ClearSocket(const std::string& path, bool expect_program,
                           std::function<void(uint32_t)> done) = 0;
};

}  // namespace rocegw::service
