// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/program_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>

#include "gateway/base/descriptor_message.h"
#include "gateway/session/descriptors/unread_messages.h"

namespace rocegw::session {
namespace {

// Time after which a message that could not be received, for lack of descriptors or processes, is
// tried again.
constexpr int kReceiveAgainMs = 100;

// Reads all messages of a socket whose input is shut down. Runs on the thread of a call queue: the
// receiver may block, and until it returns the call counts as the program's.
void Empty(int socket, DescriptorReceiver& receiver) {
  std::array<uint8_t, 1> byte{};
  while (HasUnreadMessage(socket)) {
    if ((PeekMessage(socket, byte).flags & MSG_CTRUNC) == 0) {
      (void)::recv(socket, nullptr, 0, MSG_DONTWAIT);
    } else if (!receiver.Discard(socket)) {
      (void)::poll(nullptr, 0, kReceiveAgainMs);
    }
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
  if (!HasUnreadMessage(socket_.get())) {
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
