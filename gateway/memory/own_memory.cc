// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/own_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "gateway/base/unique_fd.h"

namespace rocegw::memory {
namespace {

// From this size on, the second copy costs more than the page lookup of process_vm_writev.
constexpr uint64_t kMostThroughFile = 32 << 10;

// File whose pages are mapped here, so file reads and writes act on the mapping.
class CopyFile {
 public:
  CopyFile() : fd_(::memfd_create("rocegw-copy", MFD_CLOEXEC)) {
    if (!fd_.valid() || ::ftruncate(fd_.get(), kMostThroughFile) != 0) return;
    void* const base = ::mmap(nullptr, kMostThroughFile, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_POPULATE, fd_.get(), 0);
    if (base != MAP_FAILED) base_ = static_cast<uint8_t*>(base);
  }
  ~CopyFile() {
    if (base_ != nullptr) ::munmap(base_, kMostThroughFile);
  }
  CopyFile(const CopyFile&) = delete;
  CopyFile& operator=(const CopyFile&) = delete;

  // nullptr: the file or its mapping could not be made.
  uint8_t* base() const { return base_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  uint8_t* base_ = nullptr;
};

uint64_t CopyLocals(bool in, const iovec* locals, size_t count, uint8_t* scratch, uint64_t most) {
  uint64_t at = 0;
  for (size_t i = 0; i < count && at < most; ++i) {
    const uint64_t length = std::min<uint64_t>(locals[i].iov_len, most - at);
    if (in) {
      std::memcpy(scratch + at, locals[i].iov_base, length);
    } else {
      std::memcpy(locals[i].iov_base, scratch + at, length);
    }
    at += length;
  }
  return at;
}

// Returns the number of bytes moved. Returns nothing if the file cannot be used for a reason that
// says nothing about the memory, such as a limit on file sizes.
std::optional<uint64_t> MoveThroughFile(const CopyFile& file, bool write, const iovec* locals,
                                        size_t local_count, const iovec* remotes,
                                        size_t remote_count, uint64_t bytes) {
  if (write) CopyLocals(true, locals, local_count, file.base(), bytes);
  // Raw system calls: sanitizers would check the C library's functions and treat an inaccessible
  // page as a bug.
  const long call = write ? SYS_preadv : SYS_pwritev;
  long moved = 0;
  do {
    moved = ::syscall(call, file.fd(), remotes, remote_count, 0L, 0L);
  } while (moved < 0 && errno == EINTR);
  if (moved < 0) return errno == EFAULT ? std::optional<uint64_t>(0) : std::nullopt;
  if (!write) CopyLocals(false, locals, local_count, file.base(), static_cast<uint64_t>(moved));
  return static_cast<uint64_t>(moved);
}

}  // namespace

uint64_t OwnMemory::Move(bool write, Pieces& pieces) {
  if (pieces.bytes <= kMostThroughFile) {
    thread_local const CopyFile file;
    if (file.base() != nullptr) {
      const auto moved = MoveThroughFile(file, write, pieces.local, pieces.locals, pieces.remote,
                                         pieces.remotes, pieces.bytes);
      if (moved) return *moved;
    }
  }
  const auto call = write ? ::process_vm_writev : ::process_vm_readv;
  ssize_t moved = 0;
  do {
    moved = call(::getpid(), pieces.local, pieces.locals, pieces.remote, pieces.remotes, 0);
  } while (moved < 0 && errno == EINTR);
  return moved < 0 ? 0 : static_cast<uint64_t>(moved);
}

}  // namespace rocegw::memory
