// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/message_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::session {

namespace {

// Most descriptors that one message can carry (SCM_MAX_FD of the kernel). With less space the
// kernel would close the rest inside the receiving call.
constexpr size_t kMostDescriptors = 253;
// Messages that the thread of a call queue reads from a connection that ends. The close drops the
// rest.
constexpr int kMessagesTaken = 64;
// Threshold of calls that wait in call queues, mostly closes of one descriptor each. Beyond it a
// message is peeked at before its descriptors are received.
constexpr size_t kManyCalls = 512;
constexpr char kManyDescriptors[] = "more than one descriptor in a message";

struct Arrival {
  ssize_t length = 0;
  int flags = 0;
  ClientFd fd;             // first descriptor
  size_t descriptors = 0;  // number of descriptors; the others are with the call queue already
};

// Returns true if the next message carries more than one descriptor. Leaves the message in the
// socket. The call queue closes the one that was looked at: each close of a FUSE file waits for its
// server, also while the message keeps the file open.
bool HasManyDescriptors(int socket, const std::shared_ptr<ClientCallQueue>& call_queue) {
  uint8_t first = 0;
  iovec part{&first, sizeof first};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_LEN(sizeof(int));  // the space has room for two
  if (::recvmsg(socket, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) return false;
  size_t taken = 0;
  for (cmsghdr* message = CMSG_FIRSTHDR(&header); message != nullptr;
       message = CMSG_NXTHDR(&header, message)) {
    if (message->cmsg_level != SOL_SOCKET || message->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (message->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(message) + i * sizeof fd, sizeof fd);
      call_queue->Close(UniqueFd(fd));
      ++taken;
    }
  }
  return taken > 1 || (header.msg_flags & MSG_CTRUNC) != 0;
}

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

// Reads the messages of a socket whose input is shut down. Runs on the thread of a call queue,
// because the kernel closes the messages' descriptors here, which may block.
void Empty(int socket) {
  for (int i = 0; i < kMessagesTaken && HasMessage(socket); ++i) {
    uint8_t ignored = 0;
    (void)::recv(socket, &ignored, sizeof ignored, MSG_DONTWAIT);
  }
}

Arrival Take(int socket, std::span<uint8_t> buffer,
             const std::shared_ptr<ClientCallQueue>& call_queue) {
  Arrival arrival;
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  do {
    arrival.length = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (arrival.length < 0 && errno == EINTR);
  if (arrival.length < 0) return arrival;
  arrival.flags = header.msg_flags;
  for (cmsghdr* message = CMSG_FIRSTHDR(&header); message != nullptr;
       message = CMSG_NXTHDR(&header, message)) {
    if (message->cmsg_level != SOL_SOCKET || message->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (message->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(message) + i * sizeof fd, sizeof fd);
      ClientFd owned(UniqueFd(fd), call_queue);
      if (arrival.descriptors++ == 0) arrival.fd = std::move(owned);
    }
  }
  return arrival;
}

}  // namespace

void CloseConnection(UniqueFd socket, const std::shared_ptr<ClientCallQueue>& call_queue) {
  if (!socket.valid()) return;
  ::shutdown(socket.get(), SHUT_RD);      // stops further input
  if (!HasMessage(socket.get())) return;  // no message: closing does not block
  ::shutdown(socket.get(), SHUT_WR);      // the program sees the end at once
  // A function must be copyable, a descriptor is not.
  call_queue->Run([owned = std::make_shared<UniqueFd>(std::move(socket))] {
    Empty(owned->get());
    owned->Reset();
  });
}

MessageSocket::MessageSocket(UniqueFd socket, std::shared_ptr<ClientCallQueue> call_queue)
    : socket_(std::move(socket)), call_queue_(std::move(call_queue)), buffer_(ROCEGW_MESSAGE_MAX) {}

void MessageSocket::Close() {
  CloseConnection(std::move(socket_), call_queue_);
  backlog_.clear();
  waits_for_descriptors_ = false;
}

MessageSocket::Received MessageSocket::Receive() {
  Received received;
  if (ClientCallQueue::HeldByAll() > kManyCalls && HasManyDescriptors(socket_.get(), call_queue_)) {
    received.outcome = Outcome::kBroken;
    received.reason = kManyDescriptors;
    return received;
  }
  Arrival arrival = Take(socket_.get(), buffer_, call_queue_);
  if (arrival.length < 0) {
    received.outcome =
        errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::kNothing : Outcome::kClosed;
    return received;
  }
  received.fd = std::move(arrival.fd);
  if ((arrival.flags & MSG_TRUNC) != 0) {
    received.outcome = Outcome::kBroken;
    received.reason = "message longer than the protocol allows";
  } else if (arrival.descriptors > 1 || (arrival.flags & MSG_CTRUNC) != 0) {
    received.outcome = Outcome::kBroken;
    received.reason = kManyDescriptors;
  } else if (arrival.length == 0) {
    received.outcome = Outcome::kClosed;
  } else {
    received.outcome = Outcome::kMessage;
    received.bytes = {buffer_.data(), static_cast<size_t>(arrival.length)};
  }
  return received;
}

bool MessageSocket::TrySend(std::span<const uint8_t> message, int fd) {
  iovec part{const_cast<uint8_t*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
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
