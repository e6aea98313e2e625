// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/message_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::session {

MessageSocket::MessageSocket(UniqueFd socket)
    : socket_(std::move(socket)), buffer_(ROCEGW_MESSAGE_MAX) {}

MessageSocket::Received MessageSocket::Receive() {
  Received received;
  iovec part{buffer_.data(), buffer_.size()};
  // Room for one descriptor exactly: CMSG_SPACE would leave padding in which the kernel puts a
  // second one.
  alignas(cmsghdr) char control[CMSG_LEN(sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t length = 0;
  do {
    length = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (length < 0 && errno == EINTR);
  if (length < 0) {
    received.outcome =
        errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::kNothing : Outcome::kClosed;
    return received;
  }
  if (header.msg_controllen >= CMSG_LEN(sizeof(int))) {
    const cmsghdr* const message = CMSG_FIRSTHDR(&header);
    if (message != nullptr && message->cmsg_level == SOL_SOCKET &&
        message->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(message), sizeof fd);
      received.fd.Reset(fd);
    }
  }
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    received.outcome = Outcome::kBroken;
    received.reason = "message longer than the protocol allows";
  } else if ((header.msg_flags & MSG_CTRUNC) != 0) {
    received.outcome = Outcome::kBroken;
    received.reason = "more than one descriptor in a message";
  } else if (length == 0) {
    received.outcome = Outcome::kClosed;
  } else {
    received.outcome = Outcome::kMessage;
    received.bytes = {buffer_.data(), static_cast<size_t>(length)};
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
  // Without its descriptor the message would mean something else.
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
