// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/message_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/descriptor_message.h"

namespace rocegw::session {

MessageSocket::MessageSocket(ProgramConnection connection)
    : connection_(std::move(connection)), buffer_(ROCEGW_MESSAGE_MAX) {}

void MessageSocket::Close() {
  connection_.Close();
  backlog_.clear();
  waits_for_descriptors_ = false;
}

MessageSocket::Received MessageSocket::Receive() {
  Received received;
  const PeekedMessage next = PeekMessage(fd(), buffer_);
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
    if (!received.passes) (void)::recv(fd(), nullptr, 0, MSG_DONTWAIT);
  }
  return received;
}

bool MessageSocket::TrySend(std::span<const uint8_t> message, int fd) {
  const ssize_t sent =
      SendDescriptors(connection_.get(), message, std::span(&fd, fd >= 0 ? 1 : 0), MSG_DONTWAIT);
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
