// SPDX-License-Identifier: Apache-2.0
// Identity and readiness of the answering gateway, which the service adds to the rows of the state
// source.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gateway/process/readiness.h"

namespace rocegw::service {

struct GatewayIdentity {
  std::string name;      // "host-a"; resources are "gateways/host-a/..."
  std::string version;   // "0.1.0"
  std::string revision;  // git revision; empty: unknown
  std::string compiler;
  int64_t start_ns = 0;             // since 1970
  std::function<int64_t()> now_ns;  // since 1970
};

using process::Readiness;

}  // namespace rocegw::service
