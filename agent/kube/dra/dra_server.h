// SPDX-License-Identifier: Apache-2.0
// The driver's two gRPC servers for kubelet: one whose socket in the folder plugins_registry makes
// kubelet register the driver, and one for its claims. Made, used and destroyed on the agent's
// loop, which outlives it.
#pragma once

#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>

#include "agent/kube/dra/claim_preparer.h"
#include "gateway/base/status.h"
#include "gateway/session/control_loop.h"

namespace rocegw::agent {

class DraServer {
 public:
  // registered: kubelet says that it has taken the driver (""), or why not. On the loop.
  DraServer(session::ControlLoop& loop, ClaimPreparer& preparer,
            std::function<void(const std::string&)> registered);
  ~DraServer();
  DraServer(const DraServer&) = delete;
  DraServer& operator=(const DraServer&) = delete;

  // Again: where a socket was removed. Folders are made, and files in the way replaced.
  Status Start(const std::string& registration_socket, const std::string& plugin_socket);
  // Both sockets are where they were made.
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
