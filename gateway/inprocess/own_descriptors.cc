// SPDX-License-Identifier: Apache-2.0
#include "gateway/inprocess/own_descriptors.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "gateway/base/unique_fd.h"

namespace rocegw::inprocess {
namespace {

// Wrapper of the system call, which the C library has since 2.34.
bool CloseRange(unsigned first, unsigned last, unsigned flags) {
  return ::syscall(SYS_close_range, first, last, flags) == 0;
}

}  // namespace

Status LeaveDescriptorsOfProgram(int keep, bool keep_stderr) {
  const auto kept = static_cast<unsigned>(keep);
  constexpr unsigned kFirst = STDERR_FILENO + 1;
  if (!CloseRange(kept + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) ||
      (kept > kFirst && !CloseRange(kFirst, kept - 1, 0))) {
    const int error = errno;
    return {error, std::string("the system does not give a thread descriptors of its own (") +
                       std::strerror(error) + "); that needs Linux 5.9"};
  }
  // Needs no file system, which a bare root may lack.
  const UniqueFd nowhere(::memfd_create("rocegw-nowhere", MFD_CLOEXEC));
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fd == STDERR_FILENO && keep_stderr) continue;
    if (!nowhere.valid() || ::dup3(nowhere.get(), fd, O_CLOEXEC) < 0) ::close(fd);
  }
  return OkStatus();
}

}  // namespace rocegw::inprocess
