// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/page_mover.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include "gateway/client/raw_syscall.h"

namespace rocegw::client {

namespace {

// Large pieces let writers wait longer, small ones cost more system calls per byte.
constexpr uint64_t kPiece = 256 * 1024;

// Not in the headers of older kernels.
constexpr uint64_t kWriteProtectUnpopulated = 1u << 13;  // UFFD_FEATURE_WP_UNPOPULATED
constexpr int kPopulateWrite = 23;                       // MADV_POPULATE_WRITE

bool SetProtection(int userfault, uint64_t start, uint64_t length, uint64_t mode) {
  uffdio_writeprotect protect = {};
  protect.range = {start, length};
  protect.mode = mode;
  return RawIoctl(userfault, UFFDIO_WRITEPROTECT, &protect) == 0;
}

bool Copy(uint64_t start, uint64_t length, int memfd, uint64_t offset) {
  while (length != 0) {
    const long written = RawSyscall(SYS_pwrite64, memfd, start, length, offset);
    if (written == -EINTR) continue;
    if (written <= 0) return false;
    start += static_cast<uint64_t>(written);
    offset += static_cast<uint64_t>(written);
    length -= static_cast<uint64_t>(written);
  }
  return true;
}

bool MovePiece(int userfault, uint64_t start, uint64_t length, int memfd, uint64_t offset) {
  if (!SetProtection(userfault, start, length, UFFDIO_WRITEPROTECT_MODE_WP)) return false;
  void* place = reinterpret_cast<void*>(start);
  if (!Copy(start, length, memfd, offset) ||
      RawMap(place, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd, offset) ==
          MAP_FAILED) {
    SetProtection(userfault, start, length, 0);  // wakes as well
    return false;
  }
  // Before the writers come back, so that they do not all fault again.
  RawAdvise(place, length, kPopulateWrite);
  uffdio_range range = {start, length};
  RawIoctl(userfault, UFFDIO_WAKE, &range);
  return true;
}

}  // namespace

int OpenUserfault(int device) {
  // Not UFFD_USER_MODE_ONLY: then a read(2) of another thread into a protected page would fail with
  // EFAULT.
  const int flags = O_CLOEXEC | O_NONBLOCK;
  const long made = device >= 0 ? RawSyscall(SYS_ioctl, device, USERFAULTFD_IOC_NEW, flags)
                                : RawSyscall(SYS_userfaultfd, flags);
  if (made < 0) return -1;
  const int userfault = static_cast<int>(made);
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | kWriteProtectUnpopulated;
  if (RawIoctl(userfault, UFFDIO_API, &api) != 0) {
    RawClose(userfault);
    return -1;
  }
  return userfault;
}

MoveResult MovePages(int userfault, uint64_t start, uint64_t length, int memfd) {
  uffdio_register all = {};
  all.range = {start, length};
  all.mode = UFFDIO_REGISTER_MODE_WP;
  if (RawIoctl(userfault, UFFDIO_REGISTER, &all) != 0) return MoveResult::kNothingMoved;
  for (uint64_t offset = 0; offset < length; offset += kPiece) {
    const uint64_t piece = length - offset < kPiece ? length - offset : kPiece;
    if (MovePiece(userfault, start + offset, piece, memfd, offset)) continue;
    uffdio_range rest = {start + offset, length - offset};
    RawIoctl(userfault, UFFDIO_UNREGISTER, &rest);
    return offset == 0 ? MoveResult::kNothingMoved : MoveResult::kPartlyMoved;
  }
  return MoveResult::kMoved;
}

}  // namespace rocegw::client
