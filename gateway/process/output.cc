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

// Asks the descriptor, since the write's errno may be overwritten. POLLERR on a pipe's or socket's
// end means that there is no reader.
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
  // Network file systems report a full disk only at close.
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
