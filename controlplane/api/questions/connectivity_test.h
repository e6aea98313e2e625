// SPDX-License-Identifier: Apache-2.0
// TestConnectivity: has the agent of one gateway start a probe that waits, and when that has told
// where, the agent of the other one a probe that connects to it. Both end with the call. That they
// do not reach each other is the call's answer. gRPC's threads.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "controlplane/api/questions/gateway_questions.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::api {

// How many are under way; shared by the calls of one service.
class ConnectivityTests {
 public:
  static constexpr uint32_t kMost = 64;
  // False: there are as many as may be.
  bool Begin();
  void End() { --under_way_; }

 private:
  std::atomic<uint32_t> under_way_{0};
};

// Of an admitted call. `tests` outlives it.
grpc::ServerUnaryReactor* NewConnectivityTest(const grpc::CallbackServerContext& context,
                                              const GatewayQuestions& questions,
                                              ConnectivityTests& tests, const Admitted& caller,
                                              const admin::v1::TestConnectivityRequest& request,
                                              admin::v1::TestConnectivityResponse& response);

// What a person can do about a fault. here: name of the gateway where it was noticed, there: of the
// other one, both without "gateways/".
std::string RemedyOf(types::v1::ConnectivityFault fault, const std::string& here,
                     const std::string& there);

}  // namespace rocegw::api
