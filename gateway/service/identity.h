// SPDX-License-Identifier: Apache-2.0
// Who answers, and whether it is fit for work: what the service adds to the rows of the state
// source.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace rocegw::service {

struct GatewayIdentity {
  std::string name;      // "host-a"; resources are "gateways/host-a/..."
  std::string version;   // "0.1.0"
  std::string revision;  // of the source; empty: unknown
  std::string compiler;
  int64_t start_ns = 0;             // since 1970
  std::function<int64_t()> now_ns;  // since 1970
};

// Ready means: running with a configuration, never "controller reachable". Any thread.
class Readiness {
 public:
  void SetReady() { Set(""); }
  // reason is for a person and not empty.
  void SetNotReady(std::string reason) { Set(std::move(reason)); }
  // Empty: ready.
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

}  // namespace rocegw::service
