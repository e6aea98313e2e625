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

// Identities of files that are no sockets have this bit.
constexpr uint64_t kNoSocket = uint64_t{1} << 63;

// Returns 0 if the number is not open, or no socket.
uint64_t IdentifySocket(int number) {
  // A socket cookie is unique; inode numbers of sockets may be reused.
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return RawSyscall(SYS_getsockopt, number, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie
                                                                                        : 0;
}

// Returns 0 if the number is not open.
uint64_t IdentifyFile(int number) {
  struct statx about = {};
  if (RawSyscall(SYS_statx, number, "", AT_EMPTY_PATH, STATX_INO, &about) != 0) return 0;
  const uint64_t device = uint64_t{about.stx_dev_major} << 20 | about.stx_dev_minor;
  return (about.stx_ino ^ device << 40) | kNoSocket;
}

}  // namespace

OwnDescriptor Own(int number) {
  if (number < 0) return kNoDescriptor;
  const uint64_t cookie = IdentifySocket(number);
  return {number, cookie != 0 ? cookie : IdentifyFile(number)};
}

bool IsStillOwn(const OwnDescriptor& descriptor) {
  if (descriptor.number < 0 || descriptor.identity == 0) return false;
  const bool socket = (descriptor.identity & kNoSocket) == 0;
  return (socket ? IdentifySocket(descriptor.number) : IdentifyFile(descriptor.number)) ==
         descriptor.identity;
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
