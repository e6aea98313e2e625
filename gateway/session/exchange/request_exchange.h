// SPDX-License-Identifier: Apache-2.0
// Requests of one program and their replies. Requests are processed one at a time, so replies are
// in order and commands never interleave. A command replies at once, or from the continuation of a
// message to the workers or of a blocking call. Owner: the session, control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/time.h"
#include "gateway/session/attach/client_call_queue.h"
#include "gateway/session/attach/message_socket.h"
#include "gateway/session/descriptors/descriptor_receiver.h"
#include "gateway/session/exchange/pending_reply.h"
#include "gateway/session/exchange/request.h"
#include "gateway/session/objects/join.h"

namespace rocegw::session {

// Session whose requests an exchange receives.
class RequestOwner {
 public:
  // Executes a request; the command replies exactly once, now or later.
  virtual void Execute(Request& request) = 0;
  // Called when a request failed for whose reply the program does not wait. `subject`: its first
  // argument.
  virtual void OnUnanswered(uint32_t type, uint32_t subject, int error) = 0;
  // Called before a reply is sent: the program must know its memory first.
  virtual void BeforeReply() = 0;
  // Called after a reply. `began`: begin of the request.
  virtual void AfterReply(TimePoint began) = 0;
  // Ends the session; closes the exchange.
  virtual void End(const std::string& reason) = 0;

 protected:
  ~RequestOwner() = default;
};

class RequestExchange {
 public:
  // The owner and the sink outlive the object. `call_queue`: runs the calls that the program may
  // block; `returned_calls` reports their return.
  RequestExchange(RequestOwner& owner, MessageSink& sink,
                  std::shared_ptr<ClientCallQueue> call_queue,
                  std::shared_ptr<ReturnedCalls> returned_calls,
                  std::shared_ptr<DescriptorReceiver> receiver);
  RequestExchange(const RequestExchange&) = delete;
  RequestExchange& operator=(const RequestExchange&) = delete;

  // Handles a message of the program. `passing`: the connection, if the message passes a descriptor
  // and is still the next one there; else -1. Must not be called while busy.
  void OnMessage(std::span<const uint8_t> bytes, int passing);
  bool busy() const { return pending_.owed() || dropping_ != 0; }
  // Returns true if no request is in progress.
  bool settled() const { return !busy() && blocking_ == 0; }
  // Called when the exchange is ready for the next message after being busy.
  std::function<void()> on_ready;

  // Returns true after a greeting, which must be the first request and must not be repeated.
  bool greeted() const { return greeted_; }
  void SetGreeted() { greeted_ = true; }

  // Functions for commands. One of the following replies to the current request.
  // T begins with rocegw_reply; `fd` stays the caller's.
  template <typename T>
  void Reply(T reply, int fd = -1) {
    reply.header.error = 0;
    Send({reinterpret_cast<uint8_t*>(&reply), sizeof reply}, fd);
  }
  // Replies with success.
  void Done();
  // Replies with the errno.
  void Error(int error);
  // Replies with success, or with the errno.
  void Answer(int error);
  // Replies with the handle of an object.
  void Object(uint32_t handle, uint64_t events_reported, int fd = -1);
  // Ends the session without a reply, because the request violates the protocol.
  void Violation(const std::string& reason);

  // Runs a call that the program may block on the call queue, then `done` on the control thread,
  // unless the session ends before. `done` replies to the current request.
  void RunBlocking(std::function<void()> call, std::function<void()> done);
  // Receives the request's descriptor, then runs `done` on the control thread, unless the session
  // ends before. `done` replies to the current request. Without a descriptor: `done` gets EBADF
  // now.
  void TakeDescriptor(Request& request, const WantedDescriptor& wanted,
                      std::function<void(PassedDescriptor passed)> done);
  const std::shared_ptr<ClientCallQueue>& call_queue() const { return call_queue_; }

  // Closes the exchange: handles no further message, sends no further reply. Blocking calls are
  // abandoned.
  void Close();
  // Holds `join` until the request that is still in progress after Close is over.
  void HoldUntilSettled(const Join& join);

 private:
  void Send(std::span<uint8_t> reply, int fd);
  // Drops a request whose command did not take its descriptor. No other is read meanwhile.
  void DropDescriptor(int passing);
  // Takes the next message of a connection with its descriptor; `done` as with RunBlocking. A
  // message that was not received stays the next one.
  void TakeMessage(uint64_t& pending, int passing, const WantedDescriptor& wanted,
                   std::function<void(PassedDescriptor passed)> done);
  // `pending`: number of the call, 0 when it has returned.
  void RunBlocking(uint64_t& pending, std::function<void()> call, std::function<void()> done);

  RequestOwner& owner_;
  MessageSink& sink_;
  const std::shared_ptr<ClientCallQueue> call_queue_;
  const std::shared_ptr<ReturnedCalls> returned_calls_;
  const std::shared_ptr<DescriptorReceiver> receiver_;
  uint64_t blocking_ = 0;  // pending call of RunBlocking
  uint64_t dropping_ = 0;  // pending call of DropDescriptor
  bool greeted_ = false;
  bool closed_ = false;
  PendingReply pending_;
  Join end_waits_for_pending_;
};

}  // namespace rocegw::session
