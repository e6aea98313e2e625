// SPDX-License-Identifier: Apache-2.0
// Reports members' connections to the connection front: gRPC calls it for each call that passed the
// guard. gRPC's threads.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include "controlplane/server/front/connection_front.h"

namespace rocegw::server {

class MemberNotice final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // The front outlives the server.
  explicit MemberNotice(ConnectionFront& front) : front_(front) {}

  // Returns nullptr: no call is intercepted.
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  ConnectionFront& front_;
};

}  // namespace rocegw::server
