// SPDX-License-Identifier: Apache-2.0
// Readiness of a daemon, for /readyz and its health service. Any thread.
#pragma once

#include <mutex>
#include <string>
#include <utility>

namespace rocegw::process {

// Ready means: running with a configuration, never "controller reachable". Any thread.
class Readiness {
 public:
  void SetReady() { Set(""); }
  // `reason` is for display and not empty.
  void SetNotReady(std::string reason) { Set(std::move(reason)); }
  // Returns the reason; empty: ready.
  std::string reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

 private:
  void Set(std::string reason) {
    const std::lock_guard lock(mutex_);
    reason_ = std::move(reason);
  }

  mutable std::mutex mutex_;
  std::string reason_ = "starting";
};

}  // namespace rocegw::process
