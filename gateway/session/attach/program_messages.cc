// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/program_messages.h"

#include <utility>

#include "gateway/session/object_bytes.h"

namespace rocegw::session {

MessageSocket::Received ProgramMessages::Receive(bool look_at_socket) {
  using Outcome = MessageSocket::Outcome;
  if (rings_ == nullptr) return look_at_socket ? socket_.Receive() : MessageSocket::Received{};
  if (!held_ && look_at_socket && !rings_->HasRequest()) {
    const MessageSocket::Received next = socket_.Receive();
    if (next.outcome != Outcome::kMessage) return next;
    // The program may have put requests into the ring meanwhile, before this message.
    held_ = next;
  }
  MessageSocket::Received received;
  const MessageRings::Request request = rings_->TakeRequest(buffer_);
  if (request.taken != MessageRings::Taken::kNothing) {
    const bool broken = request.taken == MessageRings::Taken::kBroken;
    received.outcome = broken ? Outcome::kBroken : Outcome::kMessage;
    received.bytes = {buffer_.data(), request.length};
    received.reason = request.reason;
    return received;
  }
  if (!held_) return received;
  rings_->CountSocketRequest();
  return *std::exchange(held_, std::nullopt);
}

void ProgramMessages::Send(std::span<const uint8_t> message, int fd) {
  if (rings_ == nullptr) return socket_.Send(message, fd);
  DropClosedRings();
  if (rings_ == nullptr || fd >= 0 || !rings_->PutAnswer(message)) {
    socket_.Send(message, fd);
    if (rings_ != nullptr) rings_->CountSocketAnswer();
    return;
  }
  if (!rings_->client_sleeps()) return;
  // The thread that reads answers may have gone to the socket before it saw this one.
  rocegw_reply wake{};
  wake.type = ROCEGW_MSG_WAKE_CLIENT;
  wake.length = sizeof wake;
  socket_.Send(BytesOf(wake), -1);
  rings_->CountSocketAnswer();
}

void ProgramMessages::UseRings(std::unique_ptr<MessageRings> rings) { rings_ = std::move(rings); }

bool ProgramMessages::HasRequest() const {
  return rings_ != nullptr && (held_.has_value() || rings_->HasRequest());
}

void ProgramMessages::SetAwake(bool awake) {
  if (rings_ != nullptr && !rings_->closed()) rings_->SetAwake(awake);
}

void ProgramMessages::CloseRings() {
  if (rings_ != nullptr) rings_->Close();
  DropClosedRings();
}

bool ProgramMessages::closing() const {
  return rings_ != nullptr && rings_->closed() && HasRequest();
}

void ProgramMessages::DropClosedRings() {
  if (rings_ != nullptr && rings_->closed() && !HasRequest()) rings_.reset();
}

void ProgramMessages::Close() {
  rings_.reset();
  held_.reset();
  socket_.Close();
}

}  // namespace rocegw::session
