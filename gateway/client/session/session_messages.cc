// SPDX-License-Identifier: Apache-2.0
// Messages of a session, over its socket or its rings.
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/session/incoming.h"
#include "gateway/client/session/linger.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

int Session::SendBySocket(const void* message, uint32_t size, int descriptor) {
  iovec part = {const_cast<void*>(message), size};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
  }
  rings_.CountSocketRequest();
  for (;;) {
    if (!HasSocket()) return EBADF;
    const long sent = RawSendMessage(socket_.number, &header, MSG_NOSIGNAL);
    if (sent == static_cast<long>(size)) return 0;
    if (sent >= 0) return EPROTO;
    if (sent != -EINTR) return static_cast<int>(-sent);
  }
}

int Session::Send(const void* message, uint32_t size, int descriptor) {
  const auto put = descriptor < 0 ? rings_.PutRequest(message, size) : MessageRings::Put::kNot;
  if (put == MessageRings::Put::kNot) return SendBySocket(message, size, descriptor);
  return put == MessageRings::Put::kIs || rings_.WakeDaemon() ? 0 : EBADF;
}

// Returns the size of the message, or -errno.
long Session::ReceiveBySocket(Incoming* incoming, int flags) {
  iovec part = {incoming->message, ROCEGW_MESSAGE_MAX};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const long got = RawReceiveMessage(socket_.number, &header, MSG_CMSG_CLOEXEC | flags);
  if (got < 0) return got;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      if (incoming->descriptor < 0) {
        incoming->descriptor = fd;
      } else {
        RawClose(fd);
      }
    }
  }
  if (got == 0) return -ECONNRESET;
  if ((header.msg_flags & MSG_TRUNC) != 0) return -EPROTO;
  return got;
}

int Session::Receive(Incoming* incoming) {
  if (!HasSocket()) return EBADF;
  incoming->descriptor = -1;
  long got = -EAGAIN;
  const auto receive = [&](int flags) {
    got = ReceiveBySocket(incoming, flags);
    return got != -EAGAIN && got != -EINTR;
  };
  if (!Linger([&] { return receive(MSG_DONTWAIT); }))
    while (!receive(0) && HasSocket()) continue;
  if (got < 0) return got == -EAGAIN || got == -EINTR ? EBADF : static_cast<int>(-got);
  incoming->size = static_cast<uint32_t>(got);
  return incoming->size < sizeof(rocegw_reply) ? EPROTO : 0;
}

// Takes all answers of the ring. Requires the lock.
int Session::TakeFromRing() {
  alignas(16) unsigned char message[ROCEGW_RING_MESSAGE_MAX];
  uint32_t size = 0;
  int none = -1;
  while (rings_.TakeAnswer(message, &size)) {
    if (const int error = size < sizeof(rocegw_reply) ? EPROTO : TakeAnswer(message, size, &none))
      return error;
  }
  return 0;
}

// Takes all answers of the ring, and those of the socket if there may be some or `look`. Returns
// EAGAIN if an answer of the socket is still under way. A thread that reads the socket would not
// notice that its own message was taken, so the socket is left to that thread. Requires the lock.
int Session::TakeMessages(bool look) {
  if (const int error = TakeFromRing()) return error;
  while (look || rings_.SocketHasAnswers()) {
    if (being_read_) return EAGAIN;
    Incoming incoming;
    incoming.descriptor = -1;
    const long got = HasSocket() ? ReceiveBySocket(&incoming, MSG_DONTWAIT) : -EBADF;
    if (got == -EAGAIN) return rings_.SocketHasAnswers() ? EAGAIN : 0;
    if (got == -EINTR) continue;
    int error = static_cast<int>(-got);
    incoming.size = static_cast<uint32_t>(got);
    if (got >= 0) error = incoming.size < sizeof(rocegw_reply) ? EPROTO : TakeMessage(&incoming);
    if (error == 0) continue;
    CloseIfOpen(&incoming.descriptor);
    return error;
  }
  return 0;
}

}  // namespace rocegw::client
