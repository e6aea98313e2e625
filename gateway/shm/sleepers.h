// SPDX-License-Identifier: Apache-2.0
// Wakes threads of a client that sleep on a futex in client memory until the daemon has something
// for them. The client can write anything there; it costs at most one system call per burst.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdint>

namespace rocegw::shm {

// Wakes the sleepers if `word` (client memory) is not 0, and sets it to 0. Returns the number of
// threads woken.
inline uint32_t WakeSleepers(uint32_t* word) {
  if (__atomic_load_n(word, __ATOMIC_RELAXED) == 0) return 0;
  if (__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL) == 0) return 0;
  const long woken = syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return woken > 0 ? static_cast<uint32_t>(woken) : 0;
}

}  // namespace rocegw::shm
