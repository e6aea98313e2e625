// SPDX-License-Identifier: Apache-2.0
// Thread that accepts the connections of a listening Unix socket and passes them on. The listening
// socket is the daemon's own, so that another process can inherit it with the connections that wait
// in it. The connections take no descriptors where the kernel can refuse them. Main thread, except
// that `accepted` runs on the acceptor's thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/process/socket/unix_socket.h"

namespace rocegw::process {

// Opens a listening stream socket that has this mode and owner before any process can connect. A
// socket file without a server is replaced. uid, gid: -1 leaves them.
StatusOr<UniqueFd> ListenOnUnixSocket(const SocketWords& words, const std::string& path,
                                      mode_t mode, uid_t uid, gid_t gid);

class UnixAcceptor {
 public:
  using Accepted = std::function<void(UniqueFd connection)>;

  UnixAcceptor() = default;
  ~UnixAcceptor() { Stop(); }
  UnixAcceptor(const UnixAcceptor&) = delete;
  UnixAcceptor& operator=(const UnixAcceptor&) = delete;

  // `name`: of the thread, at most 15 characters.
  Status Start(UniqueFd listener, const char* name, Accepted accepted);
  void Stop();
  // Accepts no connections, which wait in the socket, or accepts them again. Also before Start.
  void SetAccepting(bool accepting);
  // Listening socket; -1: not started.
  int fd() const { return listener_.get(); }

 private:
  void Run();
  void Wake() const;
  // Returns false if descriptors ran out.
  bool AcceptAll();

  UniqueFd listener_;
  UniqueFd wake_;
  Accepted accepted_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> accepting_{true};
  std::thread thread_;
};

}  // namespace rocegw::process
