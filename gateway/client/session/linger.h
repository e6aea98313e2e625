// SPDX-License-Identifier: Apache-2.0
// Waiting awake for an answer of the daemon: most answers come before a CPU could halt and wake up.
// Any thread.
#pragma once

#include <cstdint>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/rings/monotonic_time.h"

namespace rocegw::client {

// Until then threads sleep at once, because others need the CPU: a yield took long.
inline int64_t g_crowded_until = 0;

// Waits awake for the condition. Returns false if it did not come about soon.
template <typename F>
bool Linger(F&& condition) {
  constexpr int64_t kLingerNs = 40000;
  constexpr int64_t kLateYieldNs = 20000;
  constexpr int64_t kCrowdedNs = 20000000;
  const int64_t begin = MonotonicNs();
  if (begin < __atomic_load_n(&g_crowded_until, __ATOMIC_RELAXED)) return false;
  for (int64_t at = begin; at - begin < kLingerNs;) {
    if (condition()) return true;
    RawSyscall(SYS_sched_yield);
    const int64_t back = MonotonicNs();
    if (back - at > kLateYieldNs)
      __atomic_store_n(&g_crowded_until, back + kCrowdedNs, __ATOMIC_RELAXED);
    at = back;
  }
  return false;
}

}  // namespace rocegw::client
