// SPDX-License-Identifier: Apache-2.0
// gRPC server of the controller with its two entrances: the TLS port for agents and clients, whose
// connections a front accepts, and the admin socket for administrators of this host. Started and
// stopped on one thread; calls run on gRPC's threads.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "controlplane/server/config.h"
#include "controlplane/server/controller_identity.h"
#include "controlplane/server/fleet_services.h"
#include "controlplane/server/front/connection_front.h"
#include "controlplane/server/front/open_calls.h"
#include "gateway/base/status.h"

namespace rocegw::server {

class ApiListener {
 public:
  // All arguments outlive the object.
  ApiListener(const Config& config, const ControllerIdentity& identity, FleetServices& services)
      : config_(config), identity_(identity), services_(services) {}
  ApiListener(const ApiListener&) = delete;
  ApiListener& operator=(const ApiListener&) = delete;

  // Opens both entrances or none. An error names the address.
  Status Start();
  // Closes both; calls in progress get a moment to end.
  void Stop();

  // Tells clients of the health service whether this controller serves. Only while started.
  void SetServing(bool serving);

  // The front of the TLS port; stays after Stop. nullptr: not started.
  const ConnectionFront* front() const { return front_.get(); }
  // Port of the front; 0: not started.
  int port() const { return front_ == nullptr ? 0 : front_->port(); }

 private:
  // Calls of one principal: the streams of four connections.
  static constexpr size_t kMostCalls = 1024;

  std::shared_ptr<grpc::ServerCredentials> Credentials();

  const Config& config_;
  const ControllerIdentity& identity_;
  FleetServices& services_;
  OpenCalls calls_{kMostCalls};
  std::unique_ptr<ConnectionFront> front_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rocegw::server
