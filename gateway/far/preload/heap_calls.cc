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

// The calls below pass on which code called them. A call of one by another would look like one of
// this library, which never gets remote memory.
void* AllocateAnywhere(size_t bytes, const void* caller) {
  if (void* block = Allocate(bytes, caller); block != nullptr) return block;
  return Next().malloc(bytes);
}

void* AllocateAligned(size_t alignment, size_t bytes, const void* caller) {
  // Blocks of the window begin at pages.
  void* block = alignment <= FarMemory::kPage ? Allocate(bytes, caller) : nullptr;
  return block != nullptr ? block : Next().memalign(alignment, bytes);
}

void Free(void* block) {
  if (block == nullptr || g_early.Contains(block)) return;
  if (FarMemory* memory = Owner(block); memory != nullptr) {
    const Inside inside;
    return memory->Free(block);
  }
  Next().free(block);
}

void* Move(void* block, size_t old_bytes, size_t bytes, const void* caller) {
  void* moved = AllocateAnywhere(bytes, caller);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(old_bytes, bytes));
  Free(block);
  return moved;
}

void* Resize(void* block, size_t bytes, const void* caller) {
  if (block == nullptr) return AllocateAnywhere(bytes, caller);
  if (FarMemory* memory = Owner(block); memory != nullptr) {
    const size_t old_bytes = SizeOf(*memory, block);
    if (bytes == 0) {
      Free(block);
      return nullptr;
    }
    if (bytes <= old_bytes && bytes > old_bytes / 2) return block;
    return Move(block, old_bytes, bytes, caller);
  }
  if (g_early.Contains(block)) return Move(block, g_early.Behind(block), bytes, caller);
  if (ForMapping(bytes, caller) != nullptr) {
    // A block that grows to a large one moves to remote memory.
    const size_t old_bytes = Next().malloc_usable_size(block);
    if (old_bytes < bytes) return Move(block, old_bytes, bytes, caller);
  }
  return Next().realloc(block, bytes);
}

}  // namespace
}  // namespace rocegw::far

using rocegw::far::Next;

extern "C" {

[[gnu::visibility("default")]] void* malloc(size_t bytes) noexcept {
  if (rocegw::far::IsLookingUp()) return rocegw::far::g_early.Allocate(bytes);
  return rocegw::far::AllocateAnywhere(bytes, __builtin_return_address(0));
}

[[gnu::visibility("default")]] void free(void* block) noexcept { rocegw::far::Free(block); }

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
  if (block == nullptr && rocegw::far::IsLookingUp()) return rocegw::far::g_early.Allocate(bytes);
  return rocegw::far::Resize(block, bytes, __builtin_return_address(0));
}

[[gnu::visibility("default")]] void* reallocarray(void* block, size_t count, size_t size) noexcept {
  size_t bytes = 0;
  if (!__builtin_mul_overflow(count, size, &bytes))
    return rocegw::far::Resize(block, bytes, __builtin_return_address(0));
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
  return rocegw::far::AllocateAligned(alignment, bytes, __builtin_return_address(0));
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
  return rocegw::far::AllocateAligned(rocegw::far::FarMemory::kPage, bytes,
                                      __builtin_return_address(0));
}

[[gnu::visibility("default")]] void* pvalloc(size_t bytes) noexcept {
  const size_t page = rocegw::far::FarMemory::kPage;
  return rocegw::far::AllocateAligned(page, (bytes + page - 1) / page * page,
                                      __builtin_return_address(0));
}

[[gnu::visibility("default")]] size_t malloc_usable_size(void* block) noexcept {
  if (rocegw::far::FarMemory* memory = rocegw::far::Owner(block); memory != nullptr) {
    return rocegw::far::SizeOf(*memory, block);
  }
  return Next().malloc_usable_size(block);
}

}  // extern "C"
