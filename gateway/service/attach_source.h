// SPDX-License-Identifier: Apache-2.0
// How the service tells of attaches that wait for a verdict, and passes verdicts on. Implemented by
// the daemon on its control thread; called from gRPC threads. Lives longer than the service.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/session/state/state_rows.h"

namespace rocegw::service {

class AttachSource {
 public:
  virtual ~AttachSource() = default;

  // Each calls `done` exactly once, on any thread.
  virtual void ListHeld(uint64_t after, Duration wait,
                        std::function<void(std::vector<session::HeldRow>)> done) = 0;
  // False: it is not held any more.
  virtual void AnswerHeld(uint64_t id, bool allowed, const std::string& reason,
                          std::function<void(bool known)> done) = 0;
  // Ends the sessions of an attach socket; yields how many are still ending. expect_program: one
  // should come by it soon.
  virtual void ClearSocket(const std::string& path, bool expect_program,
                           std::function<void(uint32_t)> done) = 0;
};

}  // namespace rocegw::service
