// SPDX-License-Identifier: Apache-2.0
// How the API refuses: a gRPC code, a reason for machines, a sentence for people, and which fields
// are at fault (AIP-193). Values; any thread.
#pragma once

#include <grpcpp/support/status.h>

#include <map>
#include <string>
#include <vector>

#include "controlplane/model/check.h"
#include "gateway/base/status.h"

namespace rocegw::api {

// The domain of all reasons.
inline constexpr char kDomain[] = "rocegw.io";

struct ApiError {
  grpc::StatusCode code = grpc::StatusCode::INTERNAL;
  std::string reason;  // "ETAG_MISMATCH"
  std::string message;
  std::map<std::string, std::string> metadata;
  std::vector<model::Violation> violations;
};

// With the details in the trailer that clients of all languages read.
grpc::Status ToStatus(const ApiError& error);

// What is usual.
ApiError InvalidArgument(std::vector<model::Violation> violations);
ApiError FailedPrecondition(std::string reason, std::string message,
                            std::vector<model::Violation> violations = {});
ApiError NotFound(const std::string& name);
ApiError AlreadyExists(const std::string& name);
ApiError EtagMismatch(const std::string& name, const std::string& given, const std::string& is);
// After as many attempts as are worth it.
ApiError TooManyConflicts();
ApiError PermissionDenied(const std::string& why);
// What the store said instead of answering.
ApiError FromStore(const Status& status);

}  // namespace rocegw::api
