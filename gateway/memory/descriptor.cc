// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/descriptor.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace rocegw::memory {
namespace {

// Returns true for "/proc/123/mem" and the like, under any mount point of procfs.
bool EndsInPidMem(std::string_view path) {
  constexpr std::string_view kName = "/mem";
  if (!path.ends_with(kName)) return false;
  path.remove_suffix(kName.size());
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == path.size()) return false;
  return path.substr(slash + 1).find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Status DescriptorMemory::Check(int fd) {
  struct statfs file_system;
  struct stat file;
  if (::fstatfs(fd, &file_system) != 0 || ::fstat(fd, &file) != 0) {
    return {EBADF, std::string("memory descriptor: ") + std::strerror(errno)};
  }
  const int flags = ::fcntl(fd, F_GETFL);
  if (file_system.f_type != PROC_SUPER_MAGIC || !S_ISREG(file.st_mode)) {
    return {EINVAL, "memory descriptor is not a file of proc"};
  }
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || (flags & O_PATH) != 0) {
    return {EINVAL, "memory descriptor is not open for reading and writing"};
  }
  char path[256];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  if (length <= 0 || !EndsInPidMem({path, static_cast<size_t>(length)})) {
    return {EINVAL, "memory descriptor is not a process's mem file"};
  }
  return OkStatus();
}

Status DescriptorMemory::Replace(UniqueFd memory) {
  if (!memory_.valid()) return {ENOTSUP, "this session does not use a memory descriptor"};
  if (::dup3(memory.get(), memory_.get(), O_CLOEXEC) < 0) {
    return {errno, std::string("memory descriptor: ") + std::strerror(errno)};
  }
  return OkStatus();
}

uint64_t DescriptorMemory::Move(bool write, Pieces& pieces) {
  const auto call = write ? ::pwritev : ::preadv;
  uint64_t total = 0;
  size_t local = 0;
  for (size_t i = 0; i < pieces.remotes; ++i) {
    const auto address = reinterpret_cast<uint64_t>(pieces.remote[i].iov_base);
    ssize_t moved = 0;
    do {
      moved = call(memory_.get(), pieces.local + local, pieces.remote_locals[i],
                   static_cast<off_t>(address));
    } while (moved < 0 && errno == EINTR);
    if (moved == 0) MarkGone();  // 0: no process. An unmapped page gives EIO
    if (moved <= 0) return total;
    total += static_cast<uint64_t>(moved);
    if (static_cast<uint64_t>(moved) < pieces.remote[i].iov_len) return total;
    local += pieces.remote_locals[i];
  }
  return total;
}

}  // namespace rocegw::memory
