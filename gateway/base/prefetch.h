// SPDX-License-Identifier: Apache-2.0
// Prefetching of memory that is read soon. A prefetch never faults.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocegw::base {

inline void Prefetch(const void* at) { __builtin_prefetch(at); }

// Prefetches the cache lines of [begin, begin + bytes).
inline void PrefetchLines(const void* begin, size_t bytes) {
  constexpr uintptr_t kLine = 64;
  const auto first = reinterpret_cast<uintptr_t>(begin);
  for (uintptr_t line = first & ~(kLine - 1); line < first + bytes; line += kLine)
    Prefetch(reinterpret_cast<const void*>(line));
}

}  // namespace rocegw::base
