// SPDX-License-Identifier: Apache-2.0
// Locks that make atomics of several workers atomic to each other (IBV_ATOMIC_HCA). There is one
// stripe for every eight bytes of a page, so that different addresses of the same memory (in
// another process, or in the gateway's mapping) always use the same stripe. Threads that may wait
// for each other share a table: trusted sessions use one, because their memory never blocks; each
// untrusted session has its own, because its memory may stop a lock holder for long. Thread-safe. A
// waiter spins, then yields: a holder makes at most two system calls.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rocegw::memory {

class AtomicLocks {
 public:
  static constexpr size_t kStripes = 512;  // 4096 / 8

  class Guard {
   public:
    Guard(AtomicLocks& locks, uint64_t address)
        : flag_(locks.stripes_[(address >> 3) % kStripes].taken) {
      for (int spins = 0; flag_.exchange(true, std::memory_order_acquire);) {
        if (++spins % 64 == 0) ::sched_yield();
      }
    }
    ~Guard() { flag_.store(false, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<bool>& flag_;
  };

 private:
  struct alignas(64) Stripe {
    std::atomic<bool> taken{false};
  };
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace rocegw::memory
