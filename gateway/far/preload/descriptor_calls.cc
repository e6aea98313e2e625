// SPDX-License-Identifier: Apache-2.0
// Calls of the program that close descriptors: some programs close all. Without its descriptor, the
// kernel would take the window for ordinary memory and fill it with zeroes; without those of the
// session all pages would be lost.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "gateway/far/preload/next.h"
#include "gateway/far/preload/program_memory.h"

namespace rocegw::far {
namespace {

// The descriptor that the program must not close; -1: there is none.
int Kept() {
  if (Inside::Is()) return -1;
  FarMemory* memory = Opened();
  return memory != nullptr ? memory->descriptor() : -1;
}

}  // namespace
}  // namespace rocegw::far

using rocegw::far::Kept;
using rocegw::far::Next;

extern "C" {

[[gnu::visibility("default")]] int close(int fd) {
  if (fd >= 0 && fd == Kept()) {
    errno = EBADF;
    return -1;
  }
  return Next().close(fd);
}

[[gnu::visibility("default")]] int close_range(unsigned first, unsigned last, int flags) noexcept {
  if (Kept() < 0 || first > last) return Next().close_range(first, last, flags);
  // The ranges between the descriptors that stay.
  for (const int kept : rocegw::far::KeptDescriptors()) {
    const auto number = static_cast<unsigned>(kept);
    if (number < first || number > last) continue;
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
  if (to >= 0 && to == Kept()) {
    errno = EBUSY;
    return -1;
  }
  return Next().dup2(from, to);
}

[[gnu::visibility("default")]] int dup3(int from, int to, int flags) noexcept {
  if (to >= 0 && to == Kept()) {
    errno = EBUSY;
    return -1;
  }
  return Next().dup3(from, to, flags);
}

}  // extern "C"
