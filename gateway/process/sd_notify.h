// SPDX-License-Identifier: Apache-2.0
// Notification protocol of the service manager (sd_notify(3)): one datagram of KEY=VALUE lines to
// the socket in NOTIFY_SOCKET. Implemented here because it is smaller than the library. Without the
// variable nothing is sent.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace rocegw::process {

class ServiceManager {
 public:
  // `socket`: value of NOTIFY_SOCKET, a path or "@" and an abstract name; empty: no service
  // manager.
  explicit ServiceManager(std::string socket) : socket_(std::move(socket)) {}
  // Removes NOTIFY_SOCKET from the environment, so that child processes do not notify.
  static ServiceManager FromEnvironment();

  // All notifications are best effort: an unreachable service manager is no error.
  void Ready(std::string_view status) const;
  // Announces a reload; the manager waits for READY=1 afterwards.
  void Reloading() const;
  void Stopping(std::string_view status) const;
  void Status(std::string_view status) const;
  // Names another process of the service as its main process.
  void MainProcess(pid_t pid) const;

 private:
  void Send(const std::string& message) const;

  std::string socket_;
};

}  // namespace rocegw::process
