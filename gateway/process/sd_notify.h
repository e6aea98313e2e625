// SPDX-License-Identifier: Apache-2.0
// The service manager's notification protocol (sd_notify(3)): one datagram of KEY=VALUE lines to
// the socket named in NOTIFY_SOCKET. Spoken here because it is smaller than the library that speaks
// it. Without the variable nothing is sent.
#pragma once

#include <string>
#include <string_view>

namespace rocegw::process {

class ServiceManager {
 public:
  // socket: value of NOTIFY_SOCKET, a path or "@" and an abstract name; empty: nobody listens.
  explicit ServiceManager(std::string socket) : socket_(std::move(socket)) {}
  // Takes NOTIFY_SOCKET out of the environment, so that children do not speak for us.
  static ServiceManager FromEnvironment();

  // All are best effort: a service manager that does not listen is no reason to fail.
  void Ready(std::string_view status) const;
  // The manager waits for READY=1 after this.
  void Reloading() const;
  void Stopping(std::string_view status) const;
  void Status(std::string_view status) const;

 private:
  void Send(const std::string& message) const;

  std::string socket_;
};

}  // namespace rocegw::process
