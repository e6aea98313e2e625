// SPDX-License-Identifier: Apache-2.0
// Control: the TCP connection on which the two sides of rdma_check agree on what to do next.
// Messages are length-prefixed text; the first word is the kind. Both sides run the same case code
// in lock step, so an exchange is always symmetrical. Every receive has a deadline; a lost or
// failed peer throws (PeerFailure when it said why).
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rocegw::interop {

inline constexpr std::chrono::seconds kControlTimeout{60};

class Control {
 public:
  // Takes over a connected socket.
  explicit Control(int fd);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  static int Connect(const std::string& address, uint16_t port);
  // Listens on an address, or on all, of both families, for "". Returns the listening socket.
  static int Listen(const std::string& address, uint16_t port);

  void Send(std::string_view kind, std::string_view body = {});
  // The next message's body; throws when it is of another kind.
  std::string Expect(std::string_view kind);
  // Next message whatever it is. False when the peer closed the connection in an orderly way.
  bool Receive(std::string* kind, std::string* body,
               std::chrono::seconds timeout = kControlTimeout);

  // Both sides arrive at the same point.
  void Sync(std::string_view point);
  // Both sides give and get a text.
  std::string Exchange(std::string_view mine);
  // Both sides finish a case with their verdict ("" is success); returns the peer's. Discards what
  // an aborted case left.
  std::string End(std::string_view verdict);

  sockaddr_storage LocalAddress() const;
  sockaddr_storage PeerAddress() const;

 private:
  bool ReadAll(void* data, size_t length, std::chrono::seconds timeout);
  int fd_;
  std::optional<std::string> peer_end_;  // the peer's verdict, when it arrived before ours was due
};

}  // namespace rocegw::interop
