// SPDX-License-Identifier: Apache-2.0
// Messages with descriptors over Unix sockets (SCM_RIGHTS, unix(7)). Any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/base/unique_fd.h"

namespace rocegw {

// Most descriptors that one message can carry (SCM_MAX_FD of the kernel).
inline constexpr size_t kMostDescriptors = 253;

struct DescriptorMessage {
  ssize_t length = -1;  // -1: errno tells why
  int flags = 0;        // msg_flags: MSG_TRUNC, MSG_CTRUNC
  std::vector<UniqueFd> fds;
};

struct PeekedMessage {
  ssize_t length = -1;  // -1: errno tells why
  int flags = 0;        // MSG_CTRUNC: the message has descriptors; MSG_TRUNC: it is longer
};

// Sends one message. `flags`: of sendmsg(2), besides MSG_NOSIGNAL. Returns the result of sendmsg; a
// signal does not interrupt it.
ssize_t SendDescriptors(int socket, std::span<const uint8_t> bytes, std::span<const int> fds,
                        int flags);
// Receives one message with all its descriptors, so the kernel closes none in this call. `flags`:
// of recvmsg(2), besides MSG_CMSG_CLOEXEC.
DescriptorMessage ReceiveDescriptors(int socket, std::span<uint8_t> buffer, int flags);
// Looks at the next message, which stays in the socket with its descriptors. Does not wait. The
// socket must not have SO_PASSCRED, since credentials are marked like descriptors.
PeekedMessage PeekMessage(int socket, std::span<uint8_t> buffer);

}  // namespace rocegw
