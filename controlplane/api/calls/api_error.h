// SPDX-License-Identifier: Apache-2.0
// Errors of the API: a gRPC code, a machine-readable reason, a sentence for users, and the fields
// at fault (AIP-193). Values; any thread.
#pragma once

#include <grpcpp/support/status.h>

#include <map>
#include <string>
#include <vector>

#include "controlplane/model/check.h"
#include "gateway/base/status.h"

namespace rocegw::api {

// Domain of all reasons.
inline constexpr char kDomain[] = "rocegw.io";

struct ApiError {
  grpc::StatusCode code = grpc::StatusCode::INTERNAL;
  std::string reason;  // "ETAG_MISMATCH"
  std::string message;
  std::map<std::string, std::string> metadata;
  std::vector<model::Violation> violations;
};

// Returns the status with its details in the trailer, which clients of all languages can read.
grpc::Status ToStatus(const ApiError& error);

// Frequent errors.
ApiError InvalidArgument(std::vector<model::Violation> violations);
ApiError FailedPrecondition(std::string reason, std::string message,
                            std::vector<model::Violation> violations = {});
ApiError NotFound(const std::string& name);
ApiError AlreadyExists(const std::string& name);
ApiError EtagMismatch(const std::string& name, const std::string& given, const std::string& is);
// Error after the maximum number of attempts.
ApiError TooManyConflicts();
ApiError PermissionDenied(const std::string& why);
// Converts the store's error.
ApiError FromStore(const Status& status);

// Returns true if a call that ended with this gRPC code may not have reached its server, or its
// answer was lost: an idempotent call is made again.
bool MayBeRepeated(int code);

}  // namespace rocegw::api
