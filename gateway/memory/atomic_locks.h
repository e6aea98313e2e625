// SPDX-License-Identifier: Apache-2.0
// The locks that make atomics of several workers atomic to each other (IBV_ATOMIC_HCA): one stripe
// for every eight bytes of a page, so that two names of the same memory (another process's, or our
// own mapping of it) always meet on one stripe, whatever their addresses. Shared by all who may
// wait for each other: one table for trusted sessions, whose memory never blocks; an untrusted
// session has its own, because a holder may be stopped for long by that session's memory. Thread
// safe. Spins, then yields: holders make two system calls at most.
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
