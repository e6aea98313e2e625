// SPDX-License-Identifier: Apache-2.0
// Rules for every call of the daemon's services. gRPC threads.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>

namespace rocegw::service {

inline grpc::Status CheckDeadline(const grpc::CallbackServerContext& context) {
  constexpr std::chrono::seconds kLongestDeadline(60);
  // A caller whose clock differs may ask for 60 s and is not refused.
  constexpr std::chrono::seconds kDeadlineSlack(1);
  const auto left = context.deadline() - std::chrono::system_clock::now();
  if (left <= kLongestDeadline + kDeadlineSlack) return grpc::Status::OK;
  return {grpc::StatusCode::INVALID_ARGUMENT, "set a deadline of at most 60 s for this call"};
}

inline grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context,
                                        const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

}  // namespace rocegw::service
