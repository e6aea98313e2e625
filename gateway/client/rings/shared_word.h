// SPDX-License-Identifier: Apache-2.0
// Atomic access to single words of memory that two processes share: plain words with explicit
// memory orders, because the layout is a C header. Any thread. Only the orders that the rings need.
#pragma once

#include <cstdint>

namespace rocegw::client {

template <typename T>
inline T LoadRelaxed(const T* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}
template <typename T>
inline T LoadAcquire(const T* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
template <typename T>
inline T LoadOrdered(const T* word) {
  return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}
template <typename T>
inline void StoreRelaxed(T* word, T value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
template <typename T>
inline void StoreRelease(T* word, T value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
template <typename T>
inline void StoreOrdered(T* word, T value) {
  __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

// Orders a store before later loads. ThreadSanitizer does not model fences; under it an exchange
// provides the order.
inline void FullFence() {
#if defined(__SANITIZE_THREAD__)
  int word = 0;
  __atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// Fetches a cache line that the other side has read into this core's cache for writing, while other
// work goes on; otherwise the fence behind the publishing store would wait for it. Uses the
// instruction, because __builtin_prefetch fetches for reading unless the program is compiled for
// newer CPUs; older CPUs execute it as a no-op (Intel's manual, PREFETCHW).
inline void FetchForWriting(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace rocegw::client
