// SPDX-License-Identifier: Apache-2.0
// Calls of the program that map memory, or say what to do with it. Large private anonymous mappings
// become remote. What the window cannot do with a range is done after the range was moved back.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "gateway/far/preload/next.h"
#include "gateway/far/preload/program_memory.h"

namespace rocegw::far {
namespace {

using Kind = FarMemory::Piece::Kind;

bool MayBeRemote(void* address, int protection, int flags, int fd) {
  // Other flags ask for something that a window is not: a fixed address, huge or locked pages, a
  // stack. MAP_POPULATE would read what it is not needed for.
  constexpr int kKnown = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE;
  return protection == (PROT_READ | PROT_WRITE) && (flags & ~kKnown) == 0 &&
         (flags & (MAP_PRIVATE | MAP_ANONYMOUS)) == (MAP_PRIVATE | MAP_ANONYMOUS) && fd == -1 &&
         address == nullptr;
}

int Result(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// Whether any page of the range is in the window of this process, which is then returned.
FarMemory* Touches(const void* address, size_t bytes) {
  FarMemory* memory = Known();
  if (memory == nullptr || Inside::Is()) return nullptr;
  const auto* begin = static_cast<const uint8_t*>(address);
  return begin < memory->end() && begin + bytes > memory->begin() ? memory : nullptr;
}

// Calls `remote` for the pieces in the window and `here` for those outside, until one fails.
template <typename Remote, typename Here>
int ForPieces(FarMemory& memory, void* address, size_t bytes, const Remote& remote,
              const Here& here) {
  if (reinterpret_cast<uintptr_t>(address) % FarMemory::kPage != 0) return Result(EINVAL);
  const Inside inside;
  for (const FarMemory::Piece& piece : memory.PiecesOf(address, bytes)) {
    const bool is_remote = piece.kind == Kind::kRemote;
    const int result = is_remote ? remote(piece) : here(piece);
    if (result != 0) return result;
  }
  return 0;
}

// Moves remote pieces back, and calls `call` for all but free ones, which are not mapped.
template <typename Call>
int MoveBackAnd(FarMemory& memory, void* address, size_t bytes, const Call& call) {
  return ForPieces(
      memory, address, bytes,
      [&](const FarMemory::Piece& piece) {
        const int error = memory.MoveBack(piece);
        return error != 0 ? Result(error) : call(piece);
      },
      [&](const FarMemory::Piece& piece) {
        return piece.kind == Kind::kFree ? Result(ENOMEM) : call(piece);
      });
}

// Gives the range to the kernel, for a mapping at a fixed address. False: errno says why not.
bool MakeLocal(void* address, size_t bytes) {
  FarMemory* memory = Touches(address, bytes);
  if (memory == nullptr) return true;
  return ForPieces(
             *memory, address, bytes,
             [&](const FarMemory::Piece& piece) {
               if (!memory->is_child()) return Result(memory->MoveBack(piece));
               memory->Withdraw(piece);
               return 0;
             },
             [&](const FarMemory::Piece& piece) {
               if (piece.kind == Kind::kFree) memory->Withdraw(piece);
               return 0;
             }) == 0;
}

int Unmap(FarMemory& memory, void* address, size_t bytes) {
  return ForPieces(
      memory, address, bytes,
      [&](const FarMemory::Piece& piece) {
        memory.Unmap(piece);
        return 0;
      },
      [&](const FarMemory::Piece& piece) {
        if (piece.kind == Kind::kElsewhere) return Next().munmap(piece.at, piece.bytes);
        if (piece.kind == Kind::kMoved) memory.Unmap(piece);
        return 0;
      });
}

void* Map(void* address, size_t bytes, int protection, int flags, int fd, off_t offset,
          const void* caller) {
  if (MayBeRemote(address, protection, flags, fd)) {
    if (FarMemory* memory = ForMapping(bytes, caller); memory != nullptr) {
      const Inside inside;
      if (void* at = memory->Map(bytes); at != nullptr) return at;
    }
  } else if ((flags & MAP_FIXED) != 0 && !MakeLocal(address, bytes)) {
    return MAP_FAILED;
  }
  return Next().mmap(address, bytes, protection, flags, fd, offset);
}

// The kernel moves memory, some of which is at addresses of the window, and of this host.
void* RemapMoved(FarMemory& memory, uint8_t* old, size_t old_bytes, size_t bytes, int flags,
                 void* wanted) {
  const int moved_back =
      MoveBackAnd(memory, old, old_bytes, [](const FarMemory::Piece&) { return 0; });
  if (moved_back != 0) return MAP_FAILED;
  const Inside inside;
  void* moved = Next().mremap(old, old_bytes, bytes, flags, wanted);
  if (moved == MAP_FAILED) return moved;
  // The window takes the addresses again that the kernel has left.
  const size_t kept = moved == old ? std::min(bytes, old_bytes) : 0;
  if (kept == old_bytes) return moved;
  for (const FarMemory::Piece& piece : memory.PiecesOf(old + kept, old_bytes - kept)) {
    if (piece.kind == Kind::kMoved) memory.Vacated(piece);
  }
  return moved;
}

// Content of the old range in a new mapping, which may be remote as well.
void* Remap(FarMemory& memory, void* old, size_t old_bytes, size_t bytes, int flags, void* wanted) {
  auto* begin = static_cast<uint8_t*>(old);
  const size_t page = FarMemory::kPage;
  const size_t old_end = (old_bytes + page - 1) / page * page;
  const size_t end = (bytes + page - 1) / page * page;
  bool remote = false;
  bool local = false;
  {
    const Inside inside;
    for (const FarMemory::Piece& piece : memory.PiecesOf(begin, old_end)) {
      (piece.kind == Kind::kRemote ? remote : local) = true;
    }
  }
  if (local) return RemapMoved(memory, begin, old_end, end, flags, wanted);
  const auto* target = static_cast<const uint8_t*>(wanted);
  const bool is_fixed = (flags & MREMAP_FIXED) != 0;
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0 || old_bytes == 0 || bytes == 0 || !remote ||
      (is_fixed && target < begin + old_end && begin < target + end)) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  if (memory.is_child()) {
    errno = EFAULT;
    return MAP_FAILED;
  }
  if (!is_fixed && end <= old_end) {
    if (end < old_end) Unmap(memory, begin + end, old_end - end);
    return old;
  }
  if ((flags & MREMAP_MAYMOVE) == 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  // A fixed mapping over remote memory moves it back first.
  void* moved = Map(is_fixed ? wanted : nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | (is_fixed ? MAP_FIXED : 0), -1, 0, nullptr);
  if (moved == MAP_FAILED) return moved;
  std::memcpy(moved, old, std::min(old_end, end));
  Unmap(memory, old, old_end);
  return moved;
}

}  // namespace
}  // namespace rocegw::far

using rocegw::far::FarMemory;
using rocegw::far::Inside;
using rocegw::far::Kind;
using rocegw::far::Next;

extern "C" {

[[gnu::visibility("default")]] void* mmap(void* address, size_t bytes, int protection, int flags,
                                          int fd, off_t offset) noexcept {
  // The lookup of the next functions may map memory itself.
  if (rocegw::far::IsLookingUp()) {
    return reinterpret_cast<void*>(
        syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
  }
  return rocegw::far::Map(address, bytes, protection, flags, fd, offset,
                          __builtin_return_address(0));
}

[[gnu::visibility("default")]] void* mmap64(void* address, size_t bytes, int protection, int flags,
                                            int fd, off_t offset) noexcept {
  if (rocegw::far::IsLookingUp()) return mmap(address, bytes, protection, flags, fd, offset);
  return rocegw::far::Map(address, bytes, protection, flags, fd, offset,
                          __builtin_return_address(0));
}

[[gnu::visibility("default")]] int munmap(void* address, size_t bytes) noexcept {
  if (FarMemory* memory = rocegw::far::Touches(address, bytes); memory != nullptr) {
    return rocegw::far::Unmap(*memory, address, bytes);
  }
  return Next().munmap(address, bytes);
}

[[gnu::visibility("default")]] void* mremap(void* address, size_t old_bytes, size_t bytes,
                                            int flags, ...) noexcept {
  void* wanted = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    wanted = va_arg(arguments, void*);
    va_end(arguments);
  }
  if (wanted != nullptr && !rocegw::far::MakeLocal(wanted, bytes)) return MAP_FAILED;
  if (FarMemory* memory = rocegw::far::Touches(address, old_bytes); memory != nullptr) {
    return rocegw::far::Remap(*memory, address, old_bytes, bytes, flags, wanted);
  }
  return Next().mremap(address, old_bytes, bytes, flags, wanted);
}

[[gnu::visibility("default")]] int madvise(void* address, size_t bytes, int advice) noexcept {
  FarMemory* memory = rocegw::far::Touches(address, bytes);
  if (memory == nullptr) return Next().madvise(address, bytes, advice);
  return rocegw::far::ForPieces(
      *memory, address, bytes,
      [&](const FarMemory::Piece& piece) {
        // Other advice is about speed, or about things that the window does not do.
        if (advice == MADV_DONTNEED || advice == MADV_FREE) memory->Discard(piece);
        return 0;
      },
      [&](const FarMemory::Piece& piece) {
        if (piece.kind == Kind::kFree) return rocegw::far::Result(ENOMEM);
        return Next().madvise(piece.at, piece.bytes, advice);
      });
}

[[gnu::visibility("default")]] int posix_madvise(void* address, size_t bytes, int advice) noexcept {
  // The C library does not drop pages for POSIX_MADV_DONTNEED.
  if (advice == POSIX_MADV_DONTNEED || rocegw::far::Touches(address, bytes) != nullptr) return 0;
  return madvise(address, bytes, advice) == 0 ? 0 : errno;
}

[[gnu::visibility("default")]] int mprotect(void* address, size_t bytes, int protection) noexcept {
  FarMemory* memory = rocegw::far::Touches(address, bytes);
  if (memory == nullptr) return Next().mprotect(address, bytes, protection);
  const auto protect = [&](const FarMemory::Piece& piece) {
    return Next().mprotect(piece.at, piece.bytes, protection);
  };
  if (protection == (PROT_READ | PROT_WRITE) && !memory->is_child()) {
    return rocegw::far::ForPieces(
        *memory, address, bytes, [](const FarMemory::Piece&) { return 0; },
        [&](const FarMemory::Piece& piece) {
          return piece.kind == Kind::kFree ? rocegw::far::Result(ENOMEM) : protect(piece);
        });
  }
  return rocegw::far::MoveBackAnd(*memory, address, bytes, protect);
}

[[gnu::visibility("default")]] int mlock(const void* address, size_t bytes) noexcept {
  const size_t within = reinterpret_cast<uintptr_t>(address) % FarMemory::kPage;
  auto* begin = static_cast<uint8_t*>(const_cast<void*>(address)) - within;
  FarMemory* memory = rocegw::far::Touches(address, bytes);
  if (memory == nullptr) return Next().mlock(address, bytes);
  return rocegw::far::MoveBackAnd(
      *memory, begin, bytes + within,
      [](const FarMemory::Piece& piece) { return Next().mlock(piece.at, piece.bytes); });
}

[[gnu::visibility("default")]] int mlock2(const void* address, size_t bytes,
                                          unsigned flags) noexcept {
  if (rocegw::far::Touches(address, bytes) != nullptr) return mlock(address, bytes);
  return Next().mlock2(address, bytes, flags);
}

[[gnu::visibility("default")]] int mlockall(int flags) noexcept {
  rocegw::far::Close();
  FarMemory* memory = rocegw::far::Known();
  if (memory != nullptr && !memory->is_child()) {
    const auto bytes = static_cast<size_t>(memory->end() - memory->begin());
    const Inside inside;
    for (const FarMemory::Piece& piece :
         memory->PiecesOf(const_cast<uint8_t*>(memory->begin()), bytes)) {
      const int error = piece.kind == Kind::kRemote ? memory->MoveBack(piece) : 0;
      if (error != 0) return rocegw::far::Result(error);
    }
  }
  return Next().mlockall(flags);
}

}  // extern "C"
