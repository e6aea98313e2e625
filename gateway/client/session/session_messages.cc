// SPDX-License-Identifier: Apache-2.0
// Messages of a session, over its socket or its rings.
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/rings/monotonic_time.h"
#include "gateway/client/session/incoming.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

namespace {

// Most answers come before a CPU could halt and wake up: the thread waits for them awake, unless
// other threads need the CPU (shown for a while by a yield that took long).
constexpr int64_t kLingerNs = 40000;
constexpr int64_t kLateYieldNs = 20000;
constexpr int64_t kCrowdedNs = 20000000;
int64_t g_crowded_until = 0;

}  // namespace

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
  if (put == MessageRings::Put::kIs) return 0;
  if (put == MessageRings::Put::kNot) return SendBySocket(message, size, descriptor);
  rocegw_request wake = {};
  wake.type = ROCEGW_MSG_WAKE_DAEMON;
  wake.length = sizeof(wake);
  return SendBySocket(&wake, sizeof(wake), -1);
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

// Waits awake. Returns true if a message is there, or an error: *got as with ReceiveBySocket, 0 for
// a message of the ring.
bool Session::Linger(Incoming* incoming, long* got) {
  const int64_t begin = MonotonicNs();
  if (begin < __atomic_load_n(&g_crowded_until, __ATOMIC_RELAXED)) return false;
  bool has_socket = false;
  for (int64_t at = begin; at - begin < kLingerNs;) {
    *got = 0;
    if (rings_.TakeAnswer(incoming->message, &incoming->size)) return true;
    if (rings_.MayUseSocket()) {
      has_socket = has_socket || HasSocket();
      *got = has_socket ? ReceiveBySocket(incoming, MSG_DONTWAIT) : -EBADF;
      if (*got != -EAGAIN) return true;
    }
    RawSyscall(SYS_sched_yield);
    const int64_t back = MonotonicNs();
    if (back - at > kLateYieldNs) {
      __atomic_store_n(&g_crowded_until, back + kCrowdedNs, __ATOMIC_RELAXED);
    }
    at = back;
  }
  return false;
}

int Session::Receive(Incoming* incoming) {
  incoming->descriptor = -1;
  incoming->by_ring = true;
  if (rings_.TakeAnswer(incoming->message, &incoming->size)) return 0;
  long got = -EAGAIN;
  rings_.SetAwake(true);
  if (!Linger(incoming, &got)) {
    rings_.SetAwake(false);
    if (rings_.TakeAnswer(incoming->message, &incoming->size)) {
      got = 0;
    } else {
      do {
        got = HasSocket() ? ReceiveBySocket(incoming, 0) : -EBADF;
      } while (got == -EAGAIN || got == -EINTR);
    }
    rings_.SetAwake(true);
  }
  if (got == 0) return 0;
  incoming->by_ring = false;
  if (got < 0) return static_cast<int>(-got);
  incoming->size = static_cast<uint32_t>(got);
  return incoming->size < sizeof(rocegw_reply) ? EPROTO : 0;
}

}  // namespace rocegw::client
