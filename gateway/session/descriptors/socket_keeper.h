// SPDX-License-Identifier: Apache-2.0
// Process with a duplicate of each socket in which programs can leave messages with descriptors:
// attach sockets, for connections that are not accepted, and accepted connections. When the daemon
// ends, however it does, these duplicates are the last ones. The kernel then releases descriptors
// that programs left (fuse_release waits for a write-back, however long) in this process, not in a
// thread of the daemon, which would be a zombie as long as a program likes.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::session {

class SocketKeeper {
 public:
  // Starts the process. Call before the daemon has threads.
  static StatusOr<UniqueFd> Start();
  // `orders`: what Start returned.
  explicit SocketKeeper(UniqueFd orders) : orders_(std::move(orders)) {}

  // Does not wait: a socket is not kept if the process has no time for it now. Any thread.
  void Keep(int socket);
  // Ends Keep. The socket must be free of messages, and get none, since closing it would hold up
  // the process. Does not wait. Any thread.
  void Release(int socket);

 private:
  void SendReleases();

  const UniqueFd orders_;           // SEQPACKET socket; each message is one order
  std::mutex mutex_;                // guards the next field
  std::vector<uint64_t> released_;  // sockets that the process does not know to be released
};

}  // namespace rocegw::session
