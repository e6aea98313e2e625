// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/page_mover.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/signals_blocked.h"

namespace rocegw::client {

namespace {

// Bytes per step: larger steps make writers wait longer, smaller ones cost more system calls per
// byte.
constexpr uint64_t kPiece = 256 * 1024;
constexpr uint64_t kMostPages = kPiece / 4096;

// Flags that older kernels' headers lack.
constexpr uint64_t kWriteProtectShared = 1u << 12;       // UFFD_FEATURE_WP_HUGETLBFS_SHMEM
constexpr uint64_t kWriteProtectUnpopulated = 1u << 13;  // UFFD_FEATURE_WP_UNPOPULATED
constexpr int kPopulateWrite = 23;                       // MADV_POPULATE_WRITE
// Bits of /proc/self/pagemap: the page is in memory, or in swap.
constexpr uint64_t kTouched = (uint64_t{1} << 63) | (uint64_t{1} << 62);

void* Place(uint64_t address) { return reinterpret_cast<void*>(address); }

bool SetProtection(int userfault, uint64_t start, uint64_t length, uint64_t mode) {
  uffdio_writeprotect protect = {};
  protect.range = {start, length};
  protect.mode = mode;
  return RawIoctl(userfault, UFFDIO_WRITEPROTECT, &protect) == 0;
}

void Wake(int userfault, uint64_t start, uint64_t length) {
  uffdio_range range = {start, length};
  RawIoctl(userfault, UFFDIO_WAKE, &range);
}

// Copies between a file and memory; `number`: SYS_pread64 or SYS_pwrite64.
bool Transfer(long number, int file, uint64_t memory, uint64_t length, uint64_t offset) {
  while (length != 0) {
    const long done = RawSyscall(number, file, memory, length, offset);
    if (done == -EINTR) continue;
    if (done <= 0) return false;
    memory += static_cast<uint64_t>(done);
    offset += static_cast<uint64_t>(done);
    length -= static_cast<uint64_t>(done);
  }
  return true;
}

// Not instrumented, since the program may have poisoned unused memory.
[[gnu::no_sanitize("address"), gnu::no_sanitize("thread")]] bool IsZero(uint64_t start,
                                                                        uint64_t length) {
  const auto* words = reinterpret_cast<const volatile uint64_t*>(start);
  for (uint64_t i = 0; i < length / sizeof(uint64_t); ++i) {
    if (words[i] != 0) return false;
  }
  return true;
}

// Pages of a step that have content.
struct Touched {
  bool page[kMostPages];
};

// Called before the protection, since pages look different under it. A page that is first written
// afterwards is found by its content.
void FindTouched(int pagemap, uint64_t start, uint64_t pages, uint64_t page, Touched* touched) {
  uint64_t entries[kMostPages] = {};
  const long got = pagemap < 0 ? -1
                               : RawSyscall(SYS_pread64, pagemap, entries, pages * sizeof(uint64_t),
                                            start / page * sizeof(uint64_t));
  for (uint64_t i = 0; i < pages; ++i) {
    touched->page[i] =
        got != static_cast<long>(pages * sizeof(uint64_t)) || (entries[i] & kTouched) != 0;
  }
}

// Calls visit(offset in step, length) for each run of touched pages while it returns true.
template <typename Visit>
bool ForEachRun(const Touched& touched, uint64_t pages, uint64_t page, Visit visit) {
  for (uint64_t begin = 0; begin < pages;) {
    uint64_t end = begin + 1;
    if (touched.page[begin]) {
      while (end < pages && touched.page[end]) ++end;
      if (!visit(begin * page, (end - begin) * page)) return false;
    }
    begin = end;
  }
  return true;
}

bool MovePiece(int userfault, int pagemap, uint64_t page, uint64_t start, uint64_t length,
               int memfd, uint64_t offset) {
  const uint64_t pages = length / page;
  Touched touched;
  FindTouched(pagemap, start, pages, page, &touched);
  // Fails for a mapping that replaced the registered one.
  if (!SetProtection(userfault, start, length, UFFDIO_WRITEPROTECT_MODE_WP)) return false;
  for (uint64_t i = 0; i < pages; ++i) {
    if (!touched.page[i]) touched.page[i] = !IsZero(start + i * page, page);
  }
  const bool copied = ForEachRun(touched, pages, page, [&](uint64_t at, uint64_t run) {
    return Transfer(SYS_pwrite64, memfd, start + at, run, offset + at);
  });
  if (!copied || RawMap(Place(start), length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd,
                        offset) == MAP_FAILED) {
    SetProtection(userfault, start, length, 0);  // wakes waiting writers as well
    return false;
  }
  // Before the writers wake up, so that they do not all fault again.
  ForEachRun(touched, pages, page, [&](uint64_t at, uint64_t run) {
    RawAdvise(Place(start + at), run, kPopulateWrite);
    return true;
  });
  Wake(userfault, start, length);
  return true;
}

// Returns the end of the data that begins at `at`, at most `end`. Searches page by page: SEEK_HOLE
// searches to the end of all data, for every step of a large region.
uint64_t EndOfData(int memfd, uint64_t at, uint64_t end, uint64_t page) {
  for (at += page; at < end; at += page) {
    if (RawSyscall(SYS_lseek, memfd, at, SEEK_DATA) != static_cast<long>(at)) return at;
  }
  return end;
}

// Reads a part of the memfd; its holes stay untouched memory. `offset` and `length` are whole
// pages.
bool ReadContent(int memfd, uint64_t offset, uint64_t length, uint64_t page, uint64_t memory) {
  const uint64_t end = offset + length;
  for (uint64_t at = offset; at < end;) {
    const long data = RawSyscall(SYS_lseek, memfd, at, SEEK_DATA);
    if (data == -ENXIO || data >= static_cast<long>(end)) return true;
    if (data < 0) return false;
    const auto from = static_cast<uint64_t>(data);
    at = EndOfData(memfd, from, end, page);
    if (!Transfer(SYS_pread64, memfd, memory + (from - offset), at - from, from)) return false;
  }
  return true;
}

struct BackPiece {
  uint64_t start;
  uint64_t length;
  uint64_t page;     // page size
  uint64_t offset;   // offset in the memfd
  uint64_t copy_at;  // private memory that replaces it
};

bool MovePieceBack(int userfault, const BackPiece& piece, int memfd, int protection) {
  if (!SetProtection(userfault, piece.start, piece.length, UFFDIO_WRITEPROTECT_MODE_WP)) {
    return false;
  }
  const bool ready = ReadContent(memfd, piece.offset, piece.length, piece.page, piece.copy_at) &&
                     (protection == (PROT_READ | PROT_WRITE) ||
                      RawSyscall(SYS_mprotect, piece.copy_at, piece.length, protection) == 0);
  const long moved = ready ? RawSyscall(SYS_mremap, piece.copy_at, piece.length, piece.length,
                                        MREMAP_MAYMOVE | MREMAP_FIXED, piece.start)
                           : -1;
  if (moved < 0 && moved > -4096) {
    SetProtection(userfault, piece.start, piece.length, 0);
    return false;
  }
  Wake(userfault, piece.start, piece.length);
  return true;
}

void Unwatch(int userfault, uint64_t start, uint64_t length) {
  uffdio_range rest = {start, length};
  RawIoctl(userfault, UFFDIO_UNREGISTER, &rest);
}

uint64_t Shorter(uint64_t a, uint64_t b) { return a < b ? a : b; }

}  // namespace

int OpenUserfault(int device) {
  // Without UFFD_USER_MODE_ONLY: with it, a read(2) of another thread into a protected page would
  // fail with EFAULT.
  const int flags = O_CLOEXEC | O_NONBLOCK;
  long made = device >= 0 ? RawSyscall(SYS_ioctl, device, USERFAULTFD_IOC_NEW, flags) : -1;
  if (made < 0) made = RawSyscall(SYS_userfaultfd, flags);
  if (made < 0) return -1;
  const int userfault = static_cast<int>(made);
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | kWriteProtectShared | kWriteProtectUnpopulated;
  if (RawIoctl(userfault, UFFDIO_API, &api) != 0) {
    RawClose(userfault);
    return -1;
  }
  return userfault;
}

bool WatchWrites(int userfault, uint64_t start, uint64_t length) {
  uffdio_register all = {};
  all.range = {start, length};
  all.mode = UFFDIO_REGISTER_MODE_WP;
  return RawIoctl(userfault, UFFDIO_REGISTER, &all) == 0;
}

uint64_t MovePages(int userfault, uint64_t start, uint64_t length, int memfd,
                   const PieceGuard& guard) {
  const int pagemap = static_cast<int>(RawOpen("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t done = 0;
  while (done < length) {
    const uint64_t piece = Shorter(length - done, kPiece);
    const SignalsBlocked blocked;
    guard.enter();
    const bool moved = MovePiece(userfault, pagemap, page, start + done, piece, memfd, done);
    guard.leave();
    if (!moved) break;
    done += piece;
  }
  if (done < length) Unwatch(userfault, start + done, length - done);
  if (pagemap >= 0) RawClose(pagemap);
  return done;
}

uint64_t MovePagesBack(int userfault, uint64_t start, uint64_t length, int memfd, uint64_t offset,
                       int protection, bool release, const PieceGuard& guard) {
  // Reserves the whole range at once: the kernel then merges the parts to one mapping again.
  void* reserved =
      RawMap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED) {
    Unwatch(userfault, start, length);
    return 0;
  }
  const auto copy_at = reinterpret_cast<uint64_t>(reserved);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t done = 0;
  while (done < length) {
    const uint64_t piece = Shorter(length - done, kPiece);
    const SignalsBlocked blocked;
    guard.enter();
    const bool moved = MovePieceBack(
        userfault, {start + done, piece, page, offset + done, copy_at + done}, memfd, protection);
    guard.leave();
    if (!moved) break;
    if (release) {
      RawSyscall(SYS_fallocate, memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset + done,
                 piece);
    }
    done += piece;
  }
  if (done < length) Unwatch(userfault, start + done, length - done);
  if (done < length) RawUnmap(Place(copy_at + done), length - done);
  return done;
}

}  // namespace rocegw::client
