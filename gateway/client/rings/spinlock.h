// SPDX-License-Identifier: Apache-2.0
// Lock of a queue for the few tens of nanoseconds of a post or a poll. Not recursive, not fair. A
// waiting thread yields after a short while: on a machine with few cores the holder may need the
// core. Zero-filled memory is an unlocked lock, so it may live in objects from calloc.
#pragma once

#include <sched.h>

#include <cstdint>

namespace rocegw::client {

inline void PauseBriefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class SpinLock {
 public:
  void Lock() {
    unsigned spins = 0;
    while (__atomic_exchange_n(&word_, 1u, __ATOMIC_ACQUIRE) != 0) {
      while (__atomic_load_n(&word_, __ATOMIC_RELAXED) != 0) {
        if (++spins < kSpinsBeforeYield) {
          PauseBriefly();
        } else {
          sched_yield();
        }
      }
    }
  }
  // Never waits; returns true if the caller has the lock now.
  bool TryLock() { return __atomic_exchange_n(&word_, 1u, __ATOMIC_ACQUIRE) == 0; }
  void Unlock() { __atomic_store_n(&word_, 0u, __ATOMIC_RELEASE); }
  // Call in the child after fork: the holder's thread does not exist here.
  void Reset() { Unlock(); }

 private:
  static constexpr unsigned kSpinsBeforeYield = 128;
  uint32_t word_ = 0;
};

class SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) : lock_(lock) { lock_.Lock(); }
  ~SpinGuard() { lock_.Unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace rocegw::client
