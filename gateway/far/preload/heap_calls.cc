// SPDX-License-Identifier: Apache-2.0
// Calls of the program that allocate memory. Large blocks are mappings of the window; what keeps
// account of them stays here.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "gateway/far/preload/next.h"
#include "gateway/far/preload/program_memory.h"

namespace rocegw::far {
namespace {

// Memory for the lookup of the next functions. It is never freed.
class EarlyMemory {
 public:
  void* Allocate(size_t bytes) {
    const size_t at = used_.fetch_add((bytes + 15) / 16 * 16);
    return at + bytes <= sizeof bytes_ ? bytes_ + at : nullptr;
  }
  bool Contains(const void* at) const {
    return at >= bytes_ && at < static_cast<const void*>(bytes_ + sizeof bytes_);
  }
  // Bytes from a block on, of it and of those behind it.
  size_t Behind(const void* block) const {
    return sizeof bytes_ - static_cast<size_t>(static_cast<const char*>(block) - bytes_);
  }

 private:
  alignas(16) char bytes_[64 << 10];
  std::atomic<size_t> used_;
};

EarlyMemory g_early;  // zero, without a constructor

// A large block; nullptr: it stays here.
void* Allocate(size_t bytes, const void* caller) {
  FarMemory* memory = ForMapping(bytes, caller);
  if (memory == nullptr) return nullptr;
  const Inside inside;
  return memory->Allocate(bytes);
}

size_t SizeOf(FarMemory& memory, const void* block) {
  const Inside inside;
  return memory.SizeOf(block);
}

void* Resize(void* block, size_t old_bytes, size_t bytes) {
  void* moved = std::malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(old_bytes, bytes));
  std::free(block);
  return moved;
}

}  // namespace
}  // namespace rocegw::far

using rocegw::far::Next;

extern "C" {

[[gnu::visibility("default")]] void* malloc(size_t bytes) noexcept {
  if (rocegw::far::IsLookingUp()) return rocegw::far::g_early.Allocate(bytes);
  if (void* block = rocegw::far::Allocate(bytes, __builtin_return_address(0)); block != nullptr)
    return block;
  return Next().malloc(bytes);
}

[[gnu::visibility("default")]] void free(void* block) noexcept {
  if (block == nullptr || rocegw::far::g_early.Contains(block)) return;
  if (rocegw::far::FarMemory* memory = rocegw::far::Owner(block); memory != nullptr) {
    const rocegw::far::Inside inside;
    memory->Free(block);
    return;
  }
  Next().free(block);
}

[[gnu::visibility("default")]] void* calloc(size_t count, size_t size) noexcept {
  // Mappings are zero, and so is the early memory.
  size_t bytes = 0;
  const bool fits = !__builtin_mul_overflow(count, size, &bytes);
  if (fits && rocegw::far::IsLookingUp()) return rocegw::far::g_early.Allocate(bytes);
  if (fits) {
    if (void* block = rocegw::far::Allocate(bytes, __builtin_return_address(0)); block != nullptr)
      return block;
  }
  return Next().calloc(count, size);
}

[[gnu::visibility("default")]] void* realloc(void* block, size_t bytes) noexcept {
  if (block == nullptr) return malloc(bytes);
  if (rocegw::far::FarMemory* memory = rocegw::far::Owner(block); memory != nullptr) {
    const size_t old_bytes = rocegw::far::SizeOf(*memory, block);
    if (bytes == 0) {
      free(block);
      return nullptr;
    }
    if (bytes <= old_bytes && bytes > old_bytes / 2) return block;
    return rocegw::far::Resize(block, old_bytes, bytes);
  }
  if (rocegw::far::g_early.Contains(block)) {
    return rocegw::far::Resize(block, rocegw::far::g_early.Behind(block), bytes);
  }
  if (rocegw::far::ForMapping(bytes, __builtin_return_address(0)) != nullptr) {
    // A block that grows to a large one moves to remote memory.
    const size_t old_bytes = Next().malloc_usable_size(block);
    if (old_bytes < bytes) return rocegw::far::Resize(block, old_bytes, bytes);
  }
  return Next().realloc(block, bytes);
}

[[gnu::visibility("default")]] void* reallocarray(void* block, size_t count, size_t size) noexcept {
  size_t bytes = 0;
  if (!__builtin_mul_overflow(count, size, &bytes)) return realloc(block, bytes);
  errno = ENOMEM;
  return nullptr;
}

// Blocks of the window begin at pages.
[[gnu::visibility("default")]] void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  if (alignment <= rocegw::far::FarMemory::kPage) {
    if (void* block = rocegw::far::Allocate(bytes, __builtin_return_address(0)); block != nullptr)
      return block;
  }
  return Next().aligned_alloc(alignment, bytes);
}

[[gnu::visibility("default")]] void* memalign(size_t alignment, size_t bytes) noexcept {
  if (alignment <= rocegw::far::FarMemory::kPage) {
    if (void* block = rocegw::far::Allocate(bytes, __builtin_return_address(0)); block != nullptr)
      return block;
  }
  return Next().memalign(alignment, bytes);
}

[[gnu::visibility("default")]] int posix_memalign(void** out, size_t alignment,
                                                  size_t bytes) noexcept {
  const bool valid =
      alignment % sizeof(void*) == 0 && alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (valid && alignment <= rocegw::far::FarMemory::kPage) {
    if (void* block = rocegw::far::Allocate(bytes, __builtin_return_address(0)); block != nullptr) {
      *out = block;
      return 0;
    }
  }
  return Next().posix_memalign(out, alignment, bytes);
}

[[gnu::visibility("default")]] void* valloc(size_t bytes) noexcept {
  return memalign(rocegw::far::FarMemory::kPage, bytes);
}

[[gnu::visibility("default")]] void* pvalloc(size_t bytes) noexcept {
  const size_t page = rocegw::far::FarMemory::kPage;
  return memalign(page, (bytes + page - 1) / page * page);
}

[[gnu::visibility("default")]] size_t malloc_usable_size(void* block) noexcept {
  if (rocegw::far::FarMemory* memory = rocegw::far::Owner(block); memory != nullptr) {
    return rocegw::far::SizeOf(*memory, block);
  }
  return Next().malloc_usable_size(block);
}

}  // extern "C"
