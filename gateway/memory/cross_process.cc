// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/cross_process.h"

#include <sys/uio.h>

#include <cerrno>

namespace rocegw::memory {

bool CrossProcessMemory::Permitted(pid_t pid) {
  // No page is mapped below mmap_min_addr, so a permitted call fails with EFAULT before it copies
  // anything.
  uint8_t byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{nullptr, 1};
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT;
}

uint64_t CrossProcessMemory::Move(bool write, Pieces& pieces) {
  const auto call = write ? ::process_vm_writev : ::process_vm_readv;
  ssize_t moved = 0;
  do {
    moved = call(pid_, pieces.local, pieces.locals, pieces.remote, pieces.remotes, 0);
  } while (moved < 0 && errno == EINTR);
  if (moved < 0 && errno == ESRCH) MarkGone();
  return moved < 0 ? 0 : static_cast<uint64_t>(moved);
}

}  // namespace rocegw::memory
