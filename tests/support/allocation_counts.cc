// SPDX-License-Identifier: Apache-2.0
#include "tests/support/allocation_counts.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

// The C library's own, which its wrappers lead to.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace rocegw::testing {
namespace {

AllocationCounts g_counts;
bool g_counting = false;

}  // namespace

void AllocationCounts::Start() { g_counting = true; }
void AllocationCounts::Stop() { g_counting = false; }
AllocationCounts AllocationCounts::Read() { return g_counts; }
void AllocationCounts::Reset() { g_counts = {}; }

}  // namespace rocegw::testing

using rocegw::testing::g_counting;
using rocegw::testing::g_counts;

extern "C" {

void* malloc(size_t size) {
  g_counts.allocations += g_counting ? 1 : 0;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  g_counts.allocations += g_counting ? 1 : 0;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  g_counts.allocations += g_counting ? 1 : 0;
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  g_counts.allocations += g_counting ? 1 : 0;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  g_counts.mappings += g_counting ? 1 : 0;
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}
int memfd_create(const char* name, unsigned flags) noexcept {
  g_counts.files += g_counting ? 1 : 0;
  return static_cast<int>(::syscall(SYS_memfd_create, name, flags));
}

}  // extern "C"
