// SPDX-License-Identifier: Apache-2.0
// Attach connection: bounded messages with at most one descriptor each, in both directions, without
// blocking. Messages that do not fit the socket wait here in order. So does a message whose
// descriptor the kernel refuses because too many descriptors of the daemon's user are in unread
// sockets (ETOOMANYREFS, unix(7)). Descriptors are not received here: a message that passes some
// stays the next one in its socket (passed_descriptor.h). Control thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/session/attach/program_connection.h"

namespace rocegw::session {

class MessageRings;

// Output of a session's messages.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  // Sends a message. `fd`: a descriptor, which stays the caller's; -1: none.
  virtual void Send(std::span<const uint8_t> message, int fd) = 0;
  // Begins to use rings, which the program knows by the last message that was sent.
  virtual void UseRings(std::unique_ptr<MessageRings> rings) = 0;
  virtual bool has_rings() const = 0;
};

class MessageSocket {
 public:
  enum class Outcome : uint8_t {
    kMessage,
    kNothing,  // no message now
    kClosed,   // the client has closed
    kBroken,   // the client broke the rules: message too long
  };
  struct Received {
    Outcome outcome = Outcome::kNothing;
    std::span<const uint8_t> bytes;  // valid until the next Receive
    bool passes = false;             // the message passes descriptors and stays in the socket
    const char* reason = "";
  };

  explicit MessageSocket(ProgramConnection connection);
  ~MessageSocket() { Close(); }
  MessageSocket(const MessageSocket&) = delete;
  MessageSocket& operator=(const MessageSocket&) = delete;

  int fd() const { return connection_.get(); }
  // See ProgramConnection.
  void Use(std::shared_ptr<ClientCallQueue> call_queue) { connection_.Use(std::move(call_queue)); }
  Received Receive();
  // Sends a message, now or when the socket has space. `fd`: as with MessageSink.
  void Send(std::span<const uint8_t> message, int fd);

  // Sends waiting messages. Call when the socket is writable, or after a while if
  // waits_for_descriptors().
  void Drain();
  bool has_backlog() const { return !backlog_.empty(); }
  // Returns true if the socket is writable but the kernel refuses the descriptor of the first
  // waiting message. No event reports when the kernel accepts it.
  bool waits_for_descriptors() const { return waits_for_descriptors_; }
  // Returns true if a message can never be sent: the connection is unusable.
  bool failed() const { return failed_; }
  // Closes the connection and drops waiting messages.
  void Close();

 private:
  struct Message {
    std::vector<uint8_t> bytes;
    UniqueFd fd;
  };

  bool TrySend(std::span<const uint8_t> message, int fd);

  ProgramConnection connection_;
  std::vector<uint8_t> buffer_;
  std::deque<Message> backlog_;
  bool failed_ = false;
  bool waits_for_descriptors_ = false;
};

}  // namespace rocegw::session
