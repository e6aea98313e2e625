// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/descriptors/unread_messages.h"

#include <sys/socket.h>

#include <array>
#include <cstdint>

#include "gateway/base/descriptor_message.h"

namespace rocegw::session {

bool HasUnreadMessage(int socket) {
  // A message without bytes looks like the end of the connection, except for its sender's
  // credentials.
  const int yes = 1;
  (void)::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
  uint8_t first = 0;
  iovec part{&first, sizeof first};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t length = ::recvmsg(socket, &header, MSG_PEEK | MSG_DONTWAIT);
  // With credentials, other readers would take every message for one that passes descriptors.
  const int no = 0;
  (void)::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &no, sizeof no);
  return length > 0 || (length == 0 && header.msg_controllen > 0);
}

bool DiscardUnreadMessages(int socket) {
  std::array<uint8_t, 1> byte{};
  while (HasUnreadMessage(socket)) {
    if (ReceiveDescriptors(socket, byte, MSG_DONTWAIT).length < 0) return false;
  }
  return true;
}

}  // namespace rocegw::session
