// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/own_descriptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "gateway/client/process/raw_syscall.h"

namespace rocegw::client {

namespace {

constexpr int kLowestOwnDescriptor = 100;

// Returns 0 if the number is not open.
uint64_t Identify(int number) {
  // A socket cookie is unique; inode numbers of sockets may be reused.
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  if (RawSyscall(SYS_getsockopt, number, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0) return cookie;
  struct statx about = {};
  if (RawSyscall(SYS_statx, number, "", AT_EMPTY_PATH, STATX_INO, &about) != 0) return 0;
  const uint64_t device = uint64_t{about.stx_dev_major} << 20 | about.stx_dev_minor;
  return about.stx_ino ^ device << 40 ^ uint64_t { 1 } << 63;
}

}  // namespace

OwnDescriptor Own(int number) {
  return number >= 0 ? OwnDescriptor{number, Identify(number)} : kNoDescriptor;
}

bool IsStillOwn(const OwnDescriptor& descriptor) {
  return descriptor.number >= 0 && Identify(descriptor.number) == descriptor.identity;
}

void CloseOwn(OwnDescriptor* descriptor) {
  if (IsStillOwn(*descriptor)) RawClose(descriptor->number);
  *descriptor = kNoDescriptor;
}

void CloseIfOpen(int* descriptor) {
  if (*descriptor >= 0) RawClose(*descriptor);
  *descriptor = -1;
}

int MoveAside(int descriptor) {
  if (descriptor < 0 || descriptor >= kLowestOwnDescriptor) return descriptor;
  const int moved = static_cast<int>(RawFcntl(descriptor, F_DUPFD_CLOEXEC, kLowestOwnDescriptor));
  if (moved < 0) return descriptor;
  RawClose(descriptor);
  return moved;
}

}  // namespace rocegw::client
