// SPDX-License-Identifier: Apache-2.0
// Answer of a gRPC call that an object of ours finishes through its reactor, without a server.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/test/default_reactor_test_peer.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <utility>

namespace rocegw::testing {

// Calls start(reactor) and waits until the call is finished. Ends the program after 30 s, because
// the call would still have the reactor.
template <typename Start>
grpc::Status UnaryAnswer(const Start& start) {
  grpc::CallbackServerContext context;
  std::promise<grpc::Status> answer;
  grpc::testing::DefaultReactorTestPeer peer(
      &context, [&](grpc::Status status) { answer.set_value(std::move(status)); });
  start(peer.reactor());
  std::future<grpc::Status> answered = answer.get_future();
  if (answered.wait_for(std::chrono::seconds(30)) != std::future_status::ready) std::abort();
  return answered.get();
}

}  // namespace rocegw::testing
