// SPDX-License-Identifier: Apache-2.0
// Threads that owe answers and give none: what is said of them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gateway/base/time.h"

namespace rocegw {

// silent: how long each worker has owed answers. "worker 1 has not answered for 12 s" of the one
// that has for longest, when that is at least so long; else empty.
inline std::string SilentWorker(const std::vector<Duration>& silent, Duration at_least) {
  const auto longest = std::ranges::max_element(silent);
  if (longest == silent.end() || *longest < at_least) return {};
  return "worker " + std::to_string(longest - silent.begin()) + " has not answered for " +
         std::to_string(longest->ns / Seconds(1).ns) + " s";
}

}  // namespace rocegw
