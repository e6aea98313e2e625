// SPDX-License-Identifier: Apache-2.0
// One attach connection: bounded messages with at most one descriptor each, both ways, without ever
// blocking. What the client has not room for waits here in order. So does a message whose
// descriptor the kernel does not take because too many descriptors of the daemon's user are in
// sockets that their receivers have not read (ETOOMANYREFS, unix(7)). Descriptors that come are
// never closed here, nor by the kernel in a call made here: the program's lane closes them. Control
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/session/attach/client_lane.h"

namespace rocegw::session {

// Where a session's messages go.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  // fd -1: none; otherwise it stays the caller's.
  virtual void Send(std::span<const uint8_t> message, int fd) = 0;
};

// Ends a connection with a program. Messages that were not read may hold descriptors, so they are
// taken first; a socket that has too many of them is left to the lane.
void CloseConnection(UniqueFd socket, const std::shared_ptr<ClientLane>& lane);

class MessageSocket final : public MessageSink {
 public:
  enum class Outcome : uint8_t {
    kMessage,
    kNothing,  // now
    kClosed,   // the client is gone
    kBroken,  // the client broke the rules of the connection: too long, or more than one descriptor
  };
  struct Received {
    Outcome outcome = Outcome::kNothing;
    std::span<const uint8_t> bytes;  // until the next Receive
    ClientFd fd;
    const char* reason = "";
  };

  MessageSocket(UniqueFd socket, std::shared_ptr<ClientLane> lane);
  ~MessageSocket() override { Close(); }
  MessageSocket(const MessageSocket&) = delete;
  MessageSocket& operator=(const MessageSocket&) = delete;

  Received Receive();
  void Send(std::span<const uint8_t> message, int fd) override;

  // Sends what waits; to be called when the socket is writable, or after a while when
  // waits_for_descriptors().
  void Drain();
  bool has_backlog() const { return !backlog_.empty(); }
  // The socket is writable, but the first message that waits carries a descriptor too many. No
  // event reports when the kernel takes it.
  bool waits_for_descriptors() const { return waits_for_descriptors_; }
  // A message could not be sent and never will: the connection is of no more use.
  bool failed() const { return failed_; }
  // The client sees the end of the connection; what waits is dropped.
  void Close();

 private:
  struct Message {
    std::vector<uint8_t> bytes;
    UniqueFd fd;
  };

  bool TrySend(std::span<const uint8_t> message, int fd);

  UniqueFd socket_;
  const std::shared_ptr<ClientLane> lane_;
  std::vector<uint8_t> buffer_;
  std::deque<Message> backlog_;
  bool failed_ = false;
  bool waits_for_descriptors_ = false;
};

}  // namespace rocegw::session
