// SPDX-License-Identifier: Apache-2.0
// Reports members' connections to the connection front, and the end of calls to the count of open
// calls: gRPC calls it for each call that passed the guard. gRPC's threads.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include "controlplane/server/front/connection_front.h"
#include "controlplane/server/front/open_calls.h"

namespace rocegw::server {

class MemberNotice final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // Front and calls outlive the server.
  MemberNotice(ConnectionFront& front, OpenCalls& calls) : front_(front), calls_(calls) {}

  // Returns an interceptor that lasts as long as the call; nullptr: no certificate was shown.
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  ConnectionFront& front_;
  OpenCalls& calls_;
};

}  // namespace rocegw::server
