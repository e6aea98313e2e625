// SPDX-License-Identifier: Apache-2.0
// Conformance test of an adapter, which a site runs on its own program: what the protocol asks for,
// and, for one node that may be changed, the whole way there and back. Blocks; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controlplane/migration/adapter_process/adapter.h"

namespace rocegw::migration {

struct ConformanceOptions {
  std::string cluster = "test";
  std::string change_node;  // empty: nothing is changed
  Transport to = Transport::kGateway;
  int64_t deadline_seconds = 60;
};

struct ConformanceCheck {
  std::string name;
  bool passed = false;
  std::string text;  // why not
};

// Calls `report` after each check. Returns the number of those that failed.
size_t TestAdapter(const std::vector<std::string>& words, const ConformanceOptions& options,
                   const std::function<void(const ConformanceCheck&)>& report);

}  // namespace rocegw::migration
