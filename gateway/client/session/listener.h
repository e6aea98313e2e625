// SPDX-License-Identifier: Apache-2.0
// Judgement on who listens at an attach socket. Whoever gets the descriptor of this process's
// memory can write to it, and so has the rights of the process.
#pragma once

#include <sys/types.h>

namespace rocegw::client {

constexpr uid_t kNoUser = static_cast<uid_t>(-1);

// Returns true if a listener of that user may have the memory of a process of the user `own`:
// root, the user itself, or the gateway's user. `gateway`: kNoUser if there is none. Pure.
constexpr bool MayHaveMemory(uid_t listener, uid_t own, uid_t gateway) {
  return listener != kNoUser && (listener == 0 || listener == own || listener == gateway);
}

// Judges the listener that the socket is connected to, by the user who called listen(2). The
// gateway's user is the owner of the folder of the default attach socket, since only root makes
// folders in /run. `user`: set to the listener's user.
bool ListenerMayHaveMemory(int socket, uid_t* user);

}  // namespace rocegw::client
