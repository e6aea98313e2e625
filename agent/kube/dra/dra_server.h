// SPDX-License-Identifier: Apache-2.0
// The driver's two gRPC servers for kubelet: the first has its socket in the directory
// plugins_registry, where kubelet finds and registers the driver; the second handles claims.
// Created, used and destroyed on the agent's loop, which outlives it.
#pragma once

#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>

#include "agent/kube/dra/claim_preparer.h"
#include "gateway/base/status.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

class DraServer {
 public:
  // `registered`: called on the loop with kubelet's result of the registration: "" or the reason of
  // a failure.
  DraServer(ControlLoop& loop, ClaimPreparer& preparer,
            std::function<void(const std::string&)> registered);
  ~DraServer();
  DraServer(const DraServer&) = delete;
  DraServer& operator=(const DraServer&) = delete;

  // Starts the servers, also again after a socket was removed. Creates directories and replaces
  // existing files.
  Status Start(const std::string& registration_socket, const std::string& plugin_socket);
  // Returns true if both sockets are those that were created.
  bool IsThere() const;

 private:
  class Registration;
  class Plugin;
  void Stop();

  std::string registration_socket_;
  std::string plugin_socket_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<Plugin> plugin_;
  std::unique_ptr<grpc::Server> registration_server_;
  std::unique_ptr<grpc::Server> plugin_server_;
};

}  // namespace rocegw::agent
