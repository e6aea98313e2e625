// SPDX-License-Identifier: Apache-2.0
// Calls of the program that close descriptors: some programs close all. Without its descriptor, the
// kernel would take the window for ordinary memory and fill it with zeroes; without those of the
// session all pages would be lost.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "gateway/far/preload/next.h"
#include "gateway/far/preload/own_descriptors.h"
#include "gateway/far/preload/program_memory.h"

using rocegw::far::Inside;
using rocegw::far::IsOwnDescriptor;
using rocegw::far::Next;

namespace {

bool IsForbidden(int fd) { return IsOwnDescriptor(fd) && !Inside::Is(); }

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int close(int fd) {
  if (IsForbidden(fd)) {
    errno = EBADF;
    return -1;
  }
  rocegw::far::DisownDescriptor(fd);
  return Next().close(fd);
}

[[gnu::visibility("default")]] int close_range(unsigned first, unsigned last, int flags) noexcept {
  // The ranges between the descriptors that stay.
  while (first <= last && !Inside::Is()) {
    const int own =
        rocegw::far::NextOwnDescriptor(first <= INT_MAX ? static_cast<int>(first) : INT_MAX);
    if (own < 0 || static_cast<unsigned>(own) > last) break;
    const auto number = static_cast<unsigned>(own);
    if (first < number && Next().close_range(first, number - 1, flags) != 0) return -1;
    if (number == last) return 0;
    first = number + 1;
  }
  return Next().close_range(first, last, flags);
}

[[gnu::visibility("default")]] void closefrom(int first) noexcept {
  close_range(first > 0 ? static_cast<unsigned>(first) : 0, ~0U, 0);
}

[[gnu::visibility("default")]] int dup2(int from, int to) noexcept {
  if (IsForbidden(to)) {
    errno = EBUSY;
    return -1;
  }
  return Next().dup2(from, to);
}

[[gnu::visibility("default")]] int dup3(int from, int to, int flags) noexcept {
  if (IsForbidden(to)) {
    errno = EBUSY;
    return -1;
  }
  return Next().dup3(from, to, flags);
}

}  // extern "C"
