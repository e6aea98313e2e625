// SPDX-License-Identifier: Apache-2.0
// Threads of a client that sleep until the daemon has something for them: a futex in memory that
// the client writes. Whatever it writes there costs one system call of a burst at most.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdint>

namespace rocegw::shm {

// `word`: client memory; not 0: somebody may sleep. Becomes 0. Returns how many were woken.
inline uint32_t WakeSleepers(uint32_t* word) {
  if (__atomic_load_n(word, __ATOMIC_RELAXED) == 0) return 0;
  if (__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL) == 0) return 0;
  const long woken = syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return woken > 0 ? static_cast<uint32_t>(woken) : 0;
}

}  // namespace rocegw::shm
