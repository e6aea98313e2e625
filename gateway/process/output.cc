// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

namespace rocegw::process {
namespace {

// The write's errno may be long gone. POLLERR on a pipe's or socket's end says that nobody reads.
bool ReaderHasLeft() {
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace

int FinishOutput(const char* program, int status, int failed) {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  bool good = flushed && std::cout.good() && std::ferror(stdout) == 0;
  int error = errno;
  // File systems of the network tell of a full disk as late as this.
  if (good && close(STDOUT_FILENO) != 0 && errno != EBADF) {
    good = false;
    error = errno;
  }
  if (good || error == EPIPE || ReaderHasLeft()) return status;
  std::cerr << program << ": cannot write to standard output"
            << (error == 0 ? "" : std::string(": ") + std::strerror(error)) << "\n";
  return status == 0 ? failed : status;
}

}  // namespace rocegw::process
