// SPDX-License-Identifier: Apache-2.0
// Atomic access to single words of memory that two processes share. Plain words with explicit
// orders, because the layout is a C header; any thread. All four orders that the rings need, and
// none else.
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

// Orders a store before later loads, also on machines that let them pass. ThreadSanitizer knows no
// fences: what it runs on gets the order from an exchange, which every machine takes for one.
inline void FullFence() {
#if defined(__SANITIZE_THREAD__)
  int word = 0;
  __atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

}  // namespace rocegw::client
