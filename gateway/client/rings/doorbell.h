// SPDX-License-Identifier: Apache-2.0
// Bit of one QP in the doorbell page that its process shares with one worker of the daemon. Setting
// a bit is idempotent, so any thread may ring at any time; a producer that dies here blocks no
// other.
//
// Order: the queue's index was stored before; everything here is sequentially consistent. The leaf
// is set before the summary, so that a worker that takes the summary finds the leaf. A set bit is
// left alone, which keeps its cache line shared between the producers: the worker takes that bit
// after we saw it, so after the index was stored, and then reads the index. Either the worker's
// last check before it sleeps sees the bit, or we see that it sleeps.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

struct Doorbell {
  rocegw_doorbell_page* page;
  const rocegw_worker_line* line;
  int wake_fd;     // eventfd of the worker, with our mark; -1: none
  uint32_t* lost;  // set to 1 if the program closed wake_fd; nullptr: not needed
  uint32_t bit;
};

// Mark of our eventfds: the program may close one and reuse its number, and all eventfds share one
// inode. The mark is the signal number of a file that never sends a signal.
constexpr int kWakeMark = 57;

// Returns 0 or -1, as fcntl.
inline long MarkWake(int wake_fd) { return syscall(SYS_fcntl, wake_fd, F_SETSIG, kWakeMark); }

// Outside of the hot path: system calls, without cancellation points.
[[gnu::cold, gnu::noinline]] inline void WakeWorker(const Doorbell& bell) {
  const int saved = errno;
  const uint64_t one = 1;
  if (syscall(SYS_fcntl, bell.wake_fd, F_GETSIG) == kWakeMark) {
    (void)syscall(SYS_write, bell.wake_fd, &one, sizeof(one));
  } else if (bell.lost != nullptr) {
    __atomic_store_n(bell.lost, 1, __ATOMIC_RELAXED);
  }
  errno = saved;
}

inline void SetBit(uint64_t* word, uint64_t bit) {
  if ((LoadOrdered(word) & bit) == 0) __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
}

inline void Ring(const Doorbell& bell) {
  FullFence();
  const uint32_t leaf = bell.bit / 64;
  SetBit(&bell.page->leaf[leaf], uint64_t{1} << (bell.bit % 64));
  SetBit(&bell.page->summary, uint64_t{1} << leaf);
  if (LoadOrdered(&bell.line->need_wakeup) != 0) WakeWorker(bell);
}

}  // namespace rocegw::client
