// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/program_messages.h"

#include <sys/epoll.h>

#include <utility>

#include "gateway/session/exchange/request.h"

namespace rocegw::session {
namespace {

constexpr uint32_t kWakes = EPOLLIN | EPOLLET;

}  // namespace

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
  if (rings_ == nullptr) return socket_.Send(message, fd);
  if (fd >= 0 || !rings_->PutAnswer(message)) {
    socket_.Send(message, fd);
    rings_->CountSocketAnswer();
  }
  // An announcement has no number; the answer behind it wakes the thread.
  const auto header = DecodeAs<rocegw_reply>(message);
  if (header.type >= ROCEGW_MSG_CHUNK) return;
  if (answered_.none()) wakes_.Add(*this);
  answered_.set(header.request_id % ROCEGW_RING_SLOTS);
}

void ProgramMessages::WakeWaiters() {
  for (size_t i = 0; i < answered_.size(); ++i)
    if (answered_.test(i)) rings_->WakeWaiter(i);
  answered_.reset();
}

void ProgramMessages::UseRings(std::unique_ptr<MessageRings> rings) {
  DropRings();
  rings_ = std::move(rings);
  if (loop_ != nullptr)
    watch_ = std::make_unique<ScopedWatch>(*loop_, rings_->wake_fd(), kWakes, on_wake_);
  heeds_wakes_ = true;
}

bool ProgramMessages::HasRequest() const {
  return rings_ != nullptr && (held_.has_value() || rings_->HasRequest());
}

void ProgramMessages::SetAwake(bool awake) {
  if (rings_ != nullptr && !rings_->closed()) rings_->SetAwake(awake);
}

void ProgramMessages::SetHeedsWakes(bool heeds) {
  if (watch_ == nullptr || heeds == heeds_wakes_) return;
  heeds_wakes_ = heeds;
  watch_->Rearm(heeds ? kWakes : 0);
}

void ProgramMessages::CloseRings() {
  watch_.reset();
  if (rings_ != nullptr) rings_->Close();
  DropClosedRings();
}

bool ProgramMessages::closing() const {
  return rings_ != nullptr && rings_->closed() && HasRequest();
}

void ProgramMessages::DropClosedRings() {
  if (rings_ != nullptr && rings_->closed() && !HasRequest()) DropRings();
}

void ProgramMessages::DropRings() {
  watch_.reset();
  // All waiting threads are woken when the rings are closed.
  if (answered_.any()) wakes_.Remove(*this);
  answered_.reset();
  rings_.reset();
}

void PendingWakes::Wake() {
  for (ProgramMessages* const program : programs_) program->WakeWaiters();
  programs_.clear();
}

void ProgramMessages::Close() {
  DropRings();
  held_.reset();
  socket_.Close();
}

}  // namespace rocegw::session
