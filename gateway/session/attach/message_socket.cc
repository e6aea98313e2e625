// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/message_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/descriptor_message.h"

namespace rocegw::session {

namespace {

// More messages than a socket holds (sk_sndbuf).
constexpr int kMessagesTaken = 1024;

// Returns true if a message waits in a socket whose input is shut down. Leaves the message there.
bool HasMessage(int socket) {
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
  return length > 0 || (length == 0 && header.msg_controllen > 0);
}

struct Next {
  ssize_t length = -1;  // -1: errno tells why
  int flags = 0;        // msg_flags: MSG_TRUNC, MSG_CTRUNC
};

// Looks at the next message, which stays there. Without space for descriptors the kernel marks a
// message that has some by MSG_CTRUNC, and looking at it closes none.
Next Peek(int socket, std::span<uint8_t> buffer) {
  iovec part{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Next next;
  do {
    next.length = ::recvmsg(socket, &header, MSG_PEEK | MSG_DONTWAIT);
  } while (next.length < 0 && errno == EINTR);
  next.flags = header.msg_flags;
  return next;
}

// Reads the messages of a socket whose input is shut down. Runs on the thread of a call queue: the
// receiver may block.
void Empty(int socket, DescriptorReceiver& receiver) {
  const int no = 0;
  std::array<uint8_t, 1> byte{};
  for (int i = 0; i < kMessagesTaken && HasMessage(socket); ++i) {
    // With credentials, every message has more than the space for it.
    (void)::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &no, sizeof no);
    if ((Peek(socket, byte).flags & MSG_CTRUNC) == 0) {
      (void)::recv(socket, nullptr, 0, MSG_DONTWAIT);
      continue;
    }
    std::vector<UniqueFd> left;
    const bool received = receiver.Take(socket, {PassedKind::kNone}, left).received;
    // Finishes each message before the next: its rest uses descriptors of the daemon.
    receiver.Finish(left);
    if (!received) return;
  }
}

}  // namespace

void CloseConnection(UniqueFd socket, const std::shared_ptr<ClientCallQueue>& call_queue,
                     const std::shared_ptr<DescriptorReceiver>& receiver) {
  if (!socket.valid()) return;
  ::shutdown(socket.get(), SHUT_RDWR);    // no further input, and the program sees the end at once
  if (!HasMessage(socket.get())) return;  // no message: closing does not block
  // A function must be copyable, a descriptor is not.
  call_queue->Run([receiver, owned = std::make_shared<UniqueFd>(std::move(socket))] {
    Empty(owned->get(), *receiver);
    owned->Reset();
  });
}

MessageSocket::MessageSocket(UniqueFd socket, std::shared_ptr<ClientCallQueue> call_queue,
                             std::shared_ptr<DescriptorReceiver> receiver)
    : socket_(std::move(socket)),
      call_queue_(std::move(call_queue)),
      receiver_(std::move(receiver)),
      buffer_(ROCEGW_MESSAGE_MAX) {}

void MessageSocket::Close() {
  CloseConnection(std::move(socket_), call_queue_, receiver_);
  backlog_.clear();
  waits_for_descriptors_ = false;
}

MessageSocket::Received MessageSocket::Receive() {
  Received received;
  const Next next = Peek(socket_.get(), buffer_);
  if (next.length < 0) {
    received.outcome =
        errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::kNothing : Outcome::kClosed;
    return received;
  }
  received.passes = (next.flags & MSG_CTRUNC) != 0;
  if ((next.flags & MSG_TRUNC) != 0) {
    received.outcome = Outcome::kBroken;
    received.reason = "message longer than the protocol allows";
  } else if (next.length == 0) {
    received.outcome = Outcome::kClosed;
  } else {
    received.outcome = Outcome::kMessage;
    received.bytes = {buffer_.data(), static_cast<size_t>(next.length)};
    if (!received.passes) (void)::recv(socket_.get(), nullptr, 0, MSG_DONTWAIT);
  }
  return received;
}

bool MessageSocket::TrySend(std::span<const uint8_t> message, int fd) {
  const ssize_t sent =
      SendDescriptors(socket_.get(), message, std::span(&fd, fd >= 0 ? 1 : 0), MSG_DONTWAIT);
  waits_for_descriptors_ = sent < 0 && errno == ETOOMANYREFS;
  if (sent >= 0) return true;
  if (waits_for_descriptors_) return false;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  failed_ = true;
  return true;
}

void MessageSocket::Send(std::span<const uint8_t> message, int fd) {
  if (backlog_.empty() && TrySend(message, fd)) return;
  UniqueFd kept(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  // Without its descriptor the message would have another meaning.
  if (fd >= 0 && !kept.valid()) {
    failed_ = true;
    return;
  }
  backlog_.push_back({{message.begin(), message.end()}, std::move(kept)});
}

void MessageSocket::Drain() {
  while (!backlog_.empty() && TrySend(backlog_.front().bytes, backlog_.front().fd.get())) {
    backlog_.pop_front();
  }
}

}  // namespace rocegw::session
