// SPDX-License-Identifier: Apache-2.0
// Reads of memory that a client may change at any time: every value is loaded or copied exactly
// once, then checked, then used. The barrier keeps the compiler from reading the source again.
#pragma once

#include <cstdint>
#include <cstring>

namespace rocegw::shm {

inline uint32_t LoadAcquire(const uint32_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline uint32_t LoadOrdered(const uint32_t* p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
inline void StoreRelease(uint32_t* p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }

inline void CopyOut(void* destination, const void* source, size_t length) {
  std::memcpy(destination, source, length);
  __asm__ __volatile__("" ::: "memory");
}

}  // namespace rocegw::shm
