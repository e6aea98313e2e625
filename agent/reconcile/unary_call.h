// SPDX-License-Identifier: Apache-2.0
// Call of gRPC's callback API whose result is delivered on the agent's loop.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <memory>
#include <utility>

#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

inline std::chrono::system_clock::time_point In(std::chrono::seconds time) {
  return std::chrono::system_clock::now() + time;
}

// start(context, request, response, callback) begins the call; done(status, response) runs on the
// loop, unless that has ended. `keep` (the channel and everything else the call needs) is released
// there: no thread of gRPC may be the last to hold a channel.
template <typename Response, typename Request, typename Keep, typename Start, typename Done>
void StartUnary(ControlLoop& loop, std::shared_ptr<Keep> keep, Request request,
                std::chrono::system_clock::time_point deadline, const Start& start, Done done) {
  struct Call {
    grpc::ClientContext context;
    Request request;
    Response response;
  };
  auto call = std::make_shared<Call>();
  Call& made = *call;
  made.request = std::move(request);
  made.context.set_deadline(deadline);
  // The context holds the channel too, so gRPC's callback passes everything on.
  start(&made.context, &made.request, &made.response,
        [&loop, keep = std::move(keep), call = std::move(call),
         done = std::move(done)](const grpc::Status& status) mutable {
          (void)loop.Post([keep = std::move(keep), call = std::move(call), status,
                           done = std::move(done)] { done(status, call->response); });
        });
}

// The same for a call that alone uses the stub, and with it the channel: start(stub, context,
// request, response, callback).
template <typename Response, typename Stub, typename Request, typename Start, typename Done>
void StartUnary(ControlLoop& loop, std::unique_ptr<Stub> stub, Request request,
                std::chrono::system_clock::time_point deadline, const Start& start, Done done) {
  const std::shared_ptr<Stub> keep = std::move(stub);
  StartUnary<Response>(
      loop, keep, std::move(request), deadline,
      [&](auto* context, auto* wanted, auto* response, auto callback) {
        start(*keep, context, wanted, response, std::move(callback));
      },
      std::move(done));
}

}  // namespace rocegw::agent
