// SPDX-License-Identifier: Apache-2.0
// Messages of one program, in order: over its attach socket, and over rings once the program asked
// for them. Each side uses a ring only while the other one looks at it and has nothing unread in
// the socket. So what is in a ring always comes before what is in the socket. Control thread.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gateway/loop/control_loop.h"
#include "gateway/session/attach/message_rings.h"
#include "gateway/session/attach/message_socket.h"

namespace rocegw::session {

class ProgramMessages;

// Programs whose threads are woken at the end of a round of the control thread, for all answers of
// the round at once: a thread that is woken earlier may take the CPU from the control thread for
// each answer. Control thread.
class PendingWakes {
 public:
  void Add(ProgramMessages& program) { programs_.push_back(&program); }
  void Remove(ProgramMessages& program) { std::erase(programs_, &program); }
  // Wakes the threads that wait for answers. Call after each round.
  void Wake();

 private:
  std::vector<ProgramMessages*> programs_;
};

class ProgramMessages final : public MessageSink {
 public:
  // `wakes` outlives this.
  ProgramMessages(ProgramConnection connection, PendingWakes& wakes)
      : wakes_(wakes), socket_(std::move(connection)) {}
  ~ProgramMessages() override { DropRings(); }

  // Calls `on_wake` when the program has put requests into its ring while the loop slept.
  void Watch(ControlLoop& loop, std::function<void()> on_wake) {
    loop_ = &loop;
    on_wake_ = [wake = std::move(on_wake)](uint32_t) { wake(); };
  }

  MessageSocket& socket() { return socket_; }
  const MessageSocket& socket() const { return socket_; }

  // Returns the program's next request. `look_at_socket`: false if the socket need not be looked
  // at.
  MessageSocket::Received Receive(bool look_at_socket);

  // Sends a message to the program.
  void Send(std::span<const uint8_t> message, int fd) override;
  // Begins to use rings, which the program knows by the last message that was sent.
  void UseRings(std::unique_ptr<MessageRings> rings) override;
  bool has_rings() const override { return rings_ != nullptr && !rings_->closed(); }

  // Returns true if Receive would return a message without a look at the socket.
  bool HasRequest() const;
  void SetAwake(bool awake);
  // Ignores wake-ups by the program, or looks at them again. A wake-up from meanwhile is then
  // reported.
  void SetHeedsWakes(bool heeds);
  // Wakes the threads whose answers were sent since the last call.
  void WakeWaiters();
  // Closes the rings: all further messages go over the socket.
  void CloseRings();
  // Returns true while requests wait that came before CloseRings. They are executed by this gateway
  // whatever holds up requests otherwise, at most one ring of them.
  bool closing() const;

  void Close();

 private:
  void DropRings();
  void DropClosedRings();

  PendingWakes& wakes_;
  std::bitset<ROCEGW_RING_SLOTS> answered_;  // requests whose threads must be woken, by futex
  ControlLoop* loop_ = nullptr;              // nullptr: the owner looks at the ring by itself
  std::function<void(uint32_t)> on_wake_;
  MessageSocket socket_;
  std::unique_ptr<MessageRings> rings_;
  std::unique_ptr<ScopedWatch> watch_;  // on the rings' eventfd
  bool heeds_wakes_ = true;
  MessageRings::Buffer buffer_{};
  // Message of the socket that waits for earlier ones in the ring.
  std::optional<MessageSocket::Received> held_;
};

}  // namespace rocegw::session
