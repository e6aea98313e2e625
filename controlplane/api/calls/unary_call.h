// SPDX-License-Identifier: Apache-2.0
// Start of every unary call: admission, then service or refusal. gRPC's threads.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "controlplane/api/calls/admission.h"
#include "controlplane/api/calls/api_error.h"

namespace rocegw::api {

// serve(reactor, admitted) finishes the call, now or later.
template <typename Request, typename Serve>
grpc::ServerUnaryReactor* WhenAdmitted(grpc::CallbackServerContext& context, const Request& request,
                                       const sync::FleetFollower& follower, const Serve& serve) {
  grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
  Admitted admitted;
  if (auto error = Admit(context, CallKind::kUnary, request, follower, admitted)) {
    reactor->Finish(ToStatus(*error));
  } else {
    serve(reactor, admitted);
  }
  return reactor;
}

}  // namespace rocegw::api
