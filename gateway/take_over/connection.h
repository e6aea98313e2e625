// SPDX-License-Identifier: Apache-2.0
// Connection between the running gateway and the process that replaces it: a seqpacket Unix socket
// that carries messages and, with DESCRIPTORS, as many descriptors as labels. Calls do not block.
// Control thread of either process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/take_over/messages.h"

namespace rocegw::take_over {

// Opens the listening socket, with access for its owner only. The caller holds the runtime
// directory's lock, so a socket file that is there has no server and is replaced.
StatusOr<UniqueFd> ListenForSuccessor(const std::string& path);
// Connects to the running gateway. ENOENT or ECONNREFUSED: none runs.
StatusOr<UniqueFd> ConnectToPredecessor(const std::string& path);

struct PeerProcess {
  pid_t pid = 0;
  uid_t uid = 0;
};
// Returns the process at the other end.
StatusOr<PeerProcess> PeerOf(int socket);
// Returns true for root and for the user of this process.
bool IsTrusted(const PeerProcess& peer);

class Connection {
 public:
  enum class Outcome : uint8_t {
    kMessage,
    kNothing,    // no message now
    kClosed,     // the other process has ended or closed
    kMalformed,  // not a message of this protocol
  };
  struct Received {
    Outcome outcome = Outcome::kNothing;
    std::optional<Message> message;  // with kMessage
    std::vector<UniqueFd> fds;       // with DESCRIPTORS
  };

  Connection() = default;
  explicit Connection(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  bool valid() const { return socket_.valid(); }
  // Sends a message now or, if the socket is full, with the next Flush. The descriptors stay with
  // the caller.
  void Send(const Message& message, const std::vector<int>& fds = {});
  void Flush();
  bool has_backlog() const { return !backlog_.empty(); }
  Received Receive();
  // Drops the backlog.
  void Close();

 private:
  struct Waiting {
    std::vector<uint8_t> bytes;
    std::vector<UniqueFd> fds;  // copies
  };

  // Returns false if the socket is full.
  bool TrySend(const std::vector<uint8_t>& bytes, const std::vector<int>& fds) const;

  UniqueFd socket_;
  std::deque<Waiting> backlog_;
};

}  // namespace rocegw::take_over
