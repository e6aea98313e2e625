// SPDX-License-Identifier: Apache-2.0
// Reports connections of members to the connection front: called by gRPC for each call that the
// guard let through. gRPC's threads.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include "controlplane/server/connection_front.h"

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
