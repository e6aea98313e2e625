// SPDX-License-Identifier: Apache-2.0
// madvise and mremap of programs, for memory that was moved onto shared pages: there they would do
// something else than on the private memory that the program believes it has. Straight through as
// long as nothing was moved.
#include <sys/mman.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include "gateway/client/hooks/next.h"
#include "gateway/client/raw_syscall.h"
#include "gateway/client/real.h"
#include "gateway/client/remap.h"

namespace rocegw::client {

namespace {

int Zero(uint64_t start, uint64_t length) {
  return static_cast<int>(-RawAdvise(reinterpret_cast<void*>(start), length, MADV_REMOVE));
}

int Nothing(uint64_t, uint64_t) { return 0; }

}  // namespace

}  // namespace rocegw::client

using rocegw::client::AnyRegions;
using rocegw::client::ForEachRemappedPiece;

ROCEGW_EXPORT int madvise(void* address, size_t length, int advice) noexcept {
  using Function = int(void*, size_t, int);
  static void* cache = nullptr;
  auto* const next = rocegw::client::Next<Function>(&cache, "madvise");
  if ((advice == MADV_DONTNEED || advice == MADV_FREE) && AnyRegions()) {
    const auto start = reinterpret_cast<uint64_t>(address);
    int error = 0;
    // Private pages would read as zero afterwards (at once, or some time after MADV_FREE); shared
    // ones would keep their content, and MADV_FREE is refused for them.
    if (ForEachRemappedPiece(start, start + length, &rocegw::client::Zero, &error)) {
      if (error != 0) {
        errno = error;
        return -1;
      }
      advice = MADV_DONTNEED;
    }
  }
  return next(address, length, advice);
}

ROCEGW_EXPORT void* mremap(void* old_address, size_t old_size, size_t new_size, int flags,
                           ...) noexcept {
  using Function = void*(void*, size_t, size_t, int, ...);
  static void* cache = nullptr;
  auto* const next = rocegw::client::Next<Function>(&cache, "mremap");
  void* new_address = nullptr;
  if ((flags & ~MREMAP_MAYMOVE) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    new_address = va_arg(arguments, void*);
    va_end(arguments);
  }
  const bool shrinks_in_place = new_size <= old_size && (flags & ~MREMAP_MAYMOVE) == 0;
  if (!shrinks_in_place && AnyRegions()) {
    const auto start = reinterpret_cast<uint64_t>(old_address);
    int error = 0;
    // Pages behind the end of the file could not be touched, and fork would not find pages that
    // moved. Callers take this as "cannot grow here" and copy.
    if (ForEachRemappedPiece(start, start + old_size, &rocegw::client::Nothing, &error)) {
      errno = ENOMEM;
      return MAP_FAILED;
    }
  }
  return next(old_address, old_size, new_size, flags, new_address);
}
