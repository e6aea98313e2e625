// SPDX-License-Identifier: Apache-2.0
// madvise and mremap of programs, for memory that was moved onto shared pages: there the calls
// would have other effects than on the private memory that the program expects. Passed straight on
// while nothing was moved.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include "gateway/client/hooks/next.h"
#include "gateway/client/memory/regions.h"
#include "gateway/client/process/libc_symbols.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/real.h"

namespace rocegw::client {

namespace {

using Madvise = int(void*, size_t, int);
using Mremap = void*(void*, size_t, size_t, int, ...);

// Looked up before there are threads: allocators call these with their locks held, and the lookup
// takes the loader's lock, which an allocating thread may hold.
Madvise* g_next_madvise = nullptr;
Mremap* g_next_mremap = nullptr;

// Calls of the program reach us if the library was preloaded, but not behind the drop-in pair: the
// C library comes first then.
[[gnu::constructor]] void LookUp() {
  g_next_madvise = reinterpret_cast<Madvise*>(FindNext("madvise"));
  g_next_mremap = reinterpret_cast<Mremap*>(FindNext("mremap"));
  // Looks up from the program: RTLD_DEFAULT begins with the caller if that is linked -Bsymbolic.
  void* program = OpenLibrary(nullptr, RTLD_LAZY);
  if (program == nullptr) return;
  if (LibcDlsym()(program, "madvise") == reinterpret_cast<void*>(&::madvise)) SetHooked();
}

// Earlier calls come from allocators that start; no memory was moved by then.
int NextMadvise(void* address, size_t length, int advice) {
  if (g_next_madvise != nullptr) return g_next_madvise(address, length, advice);
  const long result = RawAdvise(address, length, advice);
  if (result == 0) return 0;
  errno = static_cast<int>(-result);
  return -1;
}

void* NextMremap(void* old_address, size_t old_size, size_t new_size, int flags,
                 void* new_address) {
  if (g_next_mremap != nullptr) {
    return g_next_mremap(old_address, old_size, new_size, flags, new_address);
  }
  const long result = RawSyscall(SYS_mremap, old_address, old_size, new_size, flags, new_address);
  if (result >= 0 || result < -4095) return reinterpret_cast<void*>(result);
  errno = static_cast<int>(-result);
  return MAP_FAILED;
}

// MADV_DONTNEED_LOCKED of Linux 5.18.
constexpr int kDontNeedLocked = 24;

// Grows a mapping in place: private zeros behind the mapping, as the kernel would provide.
void* GrowInPlace(void* address, size_t old_size, size_t new_size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t old_pages = (old_size + page - 1) & ~(page - 1);
  const size_t new_pages = (new_size + page - 1) & ~(page - 1);
  if (new_pages < new_size) return MAP_FAILED;
  if (new_pages == old_pages) return address;
  void* wanted = static_cast<uint8_t*>(address) + old_pages;
  void* got = RawMap(wanted, new_pages - old_pages, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted) return address;
  if (got != MAP_FAILED) RawUnmap(got, new_pages - old_pages);
  return MAP_FAILED;
}

}  // namespace

}  // namespace rocegw::client

using rocegw::client::AnyRegions;
using rocegw::client::GrowInPlace;
using rocegw::client::ShowsRegions;
using rocegw::client::ZeroRegions;

ROCEGW_EXPORT int madvise(void* address, size_t length, int advice) noexcept {
  const bool drops =
      advice == MADV_DONTNEED || advice == MADV_FREE || advice == rocegw::client::kDontNeedLocked;
  if (drops && AnyRegions()) {
    const auto start = reinterpret_cast<uint64_t>(address);
    int error = 0;
    // Private pages would read as zero afterwards (at once, or some time after MADV_FREE); shared
    // pages would keep their content, and MADV_FREE is refused for them.
    if (start + length > start && ZeroRegions(start, start + length, &error)) {
      if (error != 0) {
        errno = error;
        return -1;
      }
      if (advice == MADV_FREE) advice = MADV_DONTNEED;
    }
  }
  return rocegw::client::NextMadvise(address, length, advice);
}

ROCEGW_EXPORT void* mremap(void* old_address, size_t old_size, size_t new_size, int flags,
                           ...) noexcept {
  void* new_address = nullptr;
  const bool may_only_move_if_needed = (flags & ~MREMAP_MAYMOVE) == 0;
  if (!may_only_move_if_needed) {
    va_list arguments;
    va_start(arguments, flags);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): started right above
    new_address = va_arg(arguments, void*);
    va_end(arguments);
  }
  const bool shrinks_in_place = new_size <= old_size && may_only_move_if_needed;
  const auto start = reinterpret_cast<uint64_t>(old_address);
  if (!shrinks_in_place && AnyRegions() && start + old_size > start &&
      ShowsRegions(start, start + old_size)) {
    // Registered memory does not move: the daemon and fork would not find it any more. Callers take
    // the error as "no space here" and copy.
    void* grown =
        may_only_move_if_needed ? GrowInPlace(old_address, old_size, new_size) : MAP_FAILED;
    if (grown == MAP_FAILED) errno = ENOMEM;
    return grown;
  }
  return rocegw::client::NextMremap(old_address, old_size, new_size, flags, new_address);
}
