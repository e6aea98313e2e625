// SPDX-License-Identifier: Apache-2.0
// Report on worker threads that do not answer.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gateway/base/time.h"

namespace rocegw {

// Returns "worker 1 has not answered for 12 s" for the worker that has been silent longest, if that
// is at least `at_least`; else empty. silent: time since each worker owes an answer.
inline std::string SilentWorker(const std::vector<Duration>& silent, Duration at_least) {
  const auto longest = std::ranges::max_element(silent);
  if (longest == silent.end() || *longest < at_least) return {};
  return "worker " + std::to_string(longest - silent.begin()) + " has not answered for " +
         std::to_string(longest->ns / Seconds(1).ns) + " s";
}

}  // namespace rocegw
