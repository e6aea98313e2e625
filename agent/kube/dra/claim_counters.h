// SPDX-License-Identifier: Apache-2.0
// What the driver for claims did, for metrics. Written on the agent's loop, read by any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace rocegw::agent {

struct ClaimCounters {
  std::atomic<uint64_t> prepared{0};    // claims that are prepared now
  std::atomic<uint64_t> prepares{0};    // claims that were prepared since the start
  std::atomic<uint64_t> refusals{0};    // preparations that failed
  std::atomic<uint64_t> unprepares{0};  // claims that kubelet ended
  std::atomic<uint64_t> stale{0};       // claims that ended without kubelet
  std::atomic<uint64_t> devices{0};     // devices that the API server has
  std::atomic<bool> published{false};   // the API server has the node's devices as they are
};

}  // namespace rocegw::agent
