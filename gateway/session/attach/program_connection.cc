// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/program_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <vector>

#include "gateway/base/descriptor_message.h"

namespace rocegw::session {
namespace {

// Time after which a message that could not be received, for lack of descriptors or processes, is
// tried again.
constexpr int kReceiveAgainMs = 100;

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

// Reads all messages of a socket whose input is shut down. Runs on the thread of a call queue: the
// receiver may block, and until it returns the call counts as the program's.
void Empty(int socket, DescriptorReceiver& receiver) {
  const int no = 0;
  std::array<uint8_t, 1> byte{};
  while (HasMessage(socket)) {
    // With credentials, every message has more than the space for it.
    (void)::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &no, sizeof no);
    if ((PeekMessage(socket, byte).flags & MSG_CTRUNC) == 0) {
      (void)::recv(socket, nullptr, 0, MSG_DONTWAIT);
      continue;
    }
    std::vector<UniqueFd> left;
    const bool received = receiver.Take(socket, {PassedKind::kNone}, left).received;
    // Finishes each message before the next: its rest uses descriptors of the daemon.
    receiver.Finish(left);
    if (!received) (void)::poll(nullptr, 0, kReceiveAgainMs);
  }
}

}  // namespace

ProgramConnection::ProgramConnection(UniqueFd socket, std::shared_ptr<ClientCallQueue> call_queue,
                                     std::shared_ptr<DescriptorReceiver> receiver)
    : socket_(std::move(socket)),
      call_queue_(std::move(call_queue)),
      receiver_(std::move(receiver)) {
  if (socket_.valid()) receiver_->Keep(socket_.get());
}

ProgramConnection& ProgramConnection::operator=(ProgramConnection&& other) noexcept {
  if (this == &other) return *this;
  Close();
  socket_ = std::move(other.socket_);
  call_queue_ = std::move(other.call_queue_);
  receiver_ = std::move(other.receiver_);
  return *this;
}

void ProgramConnection::Close() {
  if (!socket_.valid()) return;
  ::shutdown(socket_.get(), SHUT_RDWR);  // no further input, and the program sees the end at once
  if (!HasMessage(socket_.get())) {
    receiver_->Release(socket_.get());
    return socket_.Reset();
  }
  // A function must be copyable, a descriptor is not.
  call_queue_->Run([receiver = receiver_, owned = std::make_shared<UniqueFd>(std::move(socket_))] {
    Empty(owned->get(), *receiver);
    receiver->Release(owned->get());
    owned->Reset();
  });
}

}  // namespace rocegw::session
