// SPDX-License-Identifier: Apache-2.0
// TestConnectivity: a pair of probes (probe_pair.h) that ends with its call. A failed connection is
// a successful answer of the call. gRPC's threads.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "controlplane/api/questions/gateway_questions.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::api {

// Number of tests in progress; shared by the calls of one service.
class ConnectivityTests {
 public:
  static constexpr uint32_t kMost = 64;
  // Returns false if the limit is reached.
  bool Begin();
  void End() { --under_way_; }

 private:
  std::atomic<uint32_t> under_way_{0};
};

// Starts an admitted call. `tests` outlives it.
grpc::ServerUnaryReactor* NewConnectivityTest(const grpc::CallbackServerContext& context,
                                              const GatewayQuestions& questions,
                                              ConnectivityTests& tests, const Admitted& caller,
                                              const admin::v1::TestConnectivityRequest& request,
                                              admin::v1::TestConnectivityResponse& response);

}  // namespace rocegw::api
