// SPDX-License-Identifier: Apache-2.0
// Review of agents' pods that join by the token of their service account (fleet/v1 Join): asks the
// API server of the controller's cluster whose token it is. Any host may call Join, so questions
// are limited per source address and together. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>

#include "controlplane/api/calls/api_error.h"
#include "controlplane/kubeapi/api_server.h"
#include "gateway/base/source_limits.h"
#include "gateway/base/time.h"
#include "gateway/base/timing/token_bucket.h"

namespace rocegw::api {

struct PodReviewSettings {
  std::string account;   // "NAMESPACE/NAME", service account of the agents
  std::string audience;  // for which the tokens are made
  // Reviews per second and at once; the API server has its own limits (kubeapi/api_server.h).
  uint32_t per_second = 10;
  uint32_t burst = 100;
  uint32_t per_second_and_source = 1;
  uint32_t burst_of_source = 10;
};

struct PodReviewCounts {
  uint64_t confirmed = 0;
  uint64_t refused = 0;  // not an agent's token
  uint64_t limited = 0;  // too many questions
  uint64_t failed = 0;   // no answer of the API server
};

class PodReview {
 public:
  // The API server outlives it, and the calls of Review.
  PodReview(kubeapi::ApiServer& api, PodReviewSettings settings);

  // Passes the name of the Kubernetes node that the token's pod runs on, or the error of the call.
  // `source`: gRPC's name of the caller, "ipv4:192.0.2.1:4711".
  using Done = std::function<void(std::variant<std::string, ApiError>)>;
  void Review(const std::string& source, const std::string& token, TimePoint now, Done done);

  PodReviewCounts counts() const;
  const std::string& account() const { return settings_.account; }

 private:
  bool TakeShare(const std::string& source, TimePoint now);
  std::variant<std::string, ApiError> Judge(const StatusOr<kubeapi::ApiAnswer>& answer);

  kubeapi::ApiServer& api_;
  const PodReviewSettings settings_;
  const std::string user_;  // user name of the account's tokens
  std::mutex mutex_;        // guards the two fields below
  TokenBucket together_;
  SourceLimits sources_;
  std::atomic<uint64_t> confirmed_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> limited_{0};
  std::atomic<uint64_t> failed_{0};
};

// Returns the source address without the port, for IPv6 its first 64 bits, since one host has as
// many addresses as it wants below them.
std::string SourceOf(std::string_view grpc_peer);

}  // namespace rocegw::api
