// SPDX-License-Identifier: Apache-2.0
// Judge of the gates of plans as the driver of migrations sees it. Any thread; outlives the driver.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "controlplane/migration/model/names.h"

namespace rocegw::migrations {

struct GateVerdict {
  // kDone: every gate holds; kFailed: one does not; kInconclusive: one has no answer, and none of
  // those that were asked fails.
  migration::Outcome outcome = migration::Outcome::kDone;
  std::string text;  // for people, if the outcome is not kDone
};

class GateSource {
 public:
  virtual ~GateSource() = default;
  // Returns false if this controller evaluates no gates.
  virtual bool IsConfigured() const = 0;
  // Calls `done` once, on any thread, also within this call.
  virtual void Evaluate(std::vector<std::string> gates, std::function<void(GateVerdict)> done) = 0;
};

}  // namespace rocegw::migrations
