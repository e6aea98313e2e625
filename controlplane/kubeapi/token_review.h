// SPDX-License-Identifier: Apache-2.0
// Review of a service account's token by the API server (TokenReview, authentication.k8s.io/v1):
// the request, and what its answer says. Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "controlplane/kubeapi/https_call.h"
#include "gateway/base/status.h"

namespace rocegw::kubeapi {

// Pod that a token is bound to.
struct ReviewedToken {
  std::string user;  // "system:serviceaccount:NAMESPACE:NAME"
  std::string node;  // node of the pod; empty: not in the answer (Kubernetes before 1.30)
  bool operator==(const ReviewedToken&) const = default;
};

HttpRequest TokenReviewRequest(const std::string& token, const std::string& audience);

// Reads the answer. Returns EACCES if the token is not valid, or not for this audience: an API
// server that ignores audiences would pass tokens that were made for others.
StatusOr<ReviewedToken> ReadTokenReview(const nlohmann::json& object, const std::string& audience);

}  // namespace rocegw::kubeapi
