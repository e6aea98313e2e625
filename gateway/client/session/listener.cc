// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/session/listener.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/process/raw_syscall.h"

namespace rocegw::client {
namespace {

// The raw call, since the program's own lstat may be replaced.
uid_t OwnerOfGatewayFolder() {
  char folder[sizeof(ROCEGW_ATTACH_SOCKET)];
  memcpy(folder, ROCEGW_ATTACH_SOCKET, sizeof(folder));
  *strrchr(folder, '/') = '\0';
  struct stat found;
  if (RawSyscall(SYS_newfstatat, AT_FDCWD, folder, &found, AT_SYMLINK_NOFOLLOW) != 0)
    return kNoUser;
  return S_ISDIR(found.st_mode) ? found.st_uid : kNoUser;
}

}  // namespace

bool ListenerMayHaveMemory(int socket, uid_t* user) {
  ucred peer = {0, kNoUser, kNoUser};
  socklen_t length = sizeof(peer);
  if (RawSyscall(SYS_getsockopt, socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    peer.uid = kNoUser;
  *user = peer.uid;
  return MayHaveMemory(peer.uid, geteuid(), OwnerOfGatewayFolder());
}

}  // namespace rocegw::client
