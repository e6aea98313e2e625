// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/descriptor_message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace rocegw {

ssize_t SendDescriptors(int socket, std::span<const uint8_t> bytes, std::span<const int> fds,
                        int flags) {
  iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)] = {};
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

DescriptorMessage ReceiveDescriptors(int socket, std::span<uint8_t> buffer, int flags) {
  DescriptorMessage message;
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  do {
    message.length = ::recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC);
  } while (message.length < 0 && errno == EINTR);
  if (message.length < 0) return message;
  message.flags = header.msg_flags;
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof fd, sizeof fd);
      message.fds.emplace_back(fd);
    }
  }
  return message;
}

PeekedMessage PeekMessage(int socket, std::span<uint8_t> buffer) {
  iovec part{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  PeekedMessage message;
  // Without space for descriptors the kernel marks a message that has some by MSG_CTRUNC, and
  // closes none.
  do {
    message.length = ::recvmsg(socket, &header, MSG_PEEK | MSG_DONTWAIT);
  } while (message.length < 0 && errno == EINTR);
  message.flags = header.msg_flags;
  return message;
}

}  // namespace rocegw
