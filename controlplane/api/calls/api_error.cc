// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/calls/api_error.h"

#include "controlplane/store/store.h"
#include "google/rpc/error_details.pb.h"

namespace rocegw::api {

using grpc::StatusCode;

grpc::Status ToStatus(const ApiError& error) {
  google::rpc::Status status;
  status.set_code(error.code);
  status.set_message(error.message);
  google::rpc::ErrorInfo info;
  info.set_reason(error.reason);
  info.set_domain(kDomain);
  for (const auto& [key, value] : error.metadata) (*info.mutable_metadata())[key] = value;
  status.add_details()->PackFrom(info);
  if (!error.violations.empty()) {
    google::rpc::BadRequest request;
    for (const model::Violation& violation : error.violations) {
      auto& field = *request.add_field_violations();
      field.set_field(violation.field);
      field.set_description(violation.text);
    }
    status.add_details()->PackFrom(request);
  }
  return {error.code, error.message, status.SerializeAsString()};
}

namespace {

// Shows the first violation in full: many clients show only the message.
std::string Summary(const std::vector<model::Violation>& violations) {
  if (violations.empty()) return "the request is not valid";
  const model::Violation& first = violations.front();
  std::string text =
      first.field.empty() ? "the request " + first.text : first.field + " " + first.text;
  if (violations.size() > 1) text += " (and " + std::to_string(violations.size() - 1) + " more)";
  return text;
}

}  // namespace

ApiError InvalidArgument(std::vector<model::Violation> violations) {
  std::string text = Summary(violations);
  return {
      StatusCode::INVALID_ARGUMENT, "INVALID_FIELDS", std::move(text), {}, std::move(violations)};
}

ApiError FailedPrecondition(std::string reason, std::string message,
                            std::vector<model::Violation> violations) {
  if (message.empty()) message = Summary(violations);
  return {StatusCode::FAILED_PRECONDITION,
          std::move(reason),
          std::move(message),
          {},
          std::move(violations)};
}

ApiError NotFound(const std::string& name) {
  return {StatusCode::NOT_FOUND, "NOT_FOUND", name + " does not exist", {{"name", name}}, {}};
}

ApiError AlreadyExists(const std::string& name) {
  return {
      StatusCode::ALREADY_EXISTS, "ALREADY_EXISTS", name + " exists already", {{"name", name}}, {}};
}

ApiError EtagMismatch(const std::string& name, const std::string& given, const std::string& is) {
  return {StatusCode::ABORTED,
          "ETAG_MISMATCH",
          name + " was changed meanwhile: the etag given is " + given + ", it is " + is +
              " now; read it again",
          {{"name", name}, {"etag", is}},
          {}};
}

ApiError TooManyConflicts() {
  return {StatusCode::ABORTED,
          "TOO_MANY_CONFLICTS",
          "others change the same objects all the time; try again",
          {},
          {}};
}

ApiError PermissionDenied(const std::string& why) {
  return {StatusCode::PERMISSION_DENIED, "PERMISSION_DENIED", why, {}, {}};
}

ApiError FromStore(const Status& status) {
  switch (status.error()) {
    case store::kUnavailable:
    case store::kClosed:
      return {StatusCode::UNAVAILABLE, "STORE_UNAVAILABLE", status.text(), {}, {}};
    case store::kOutcomeUnknown:
      return {StatusCode::UNAVAILABLE,
              "OUTCOME_UNKNOWN",
              status.text() + "; repeat the call with the same request_id",
              {},
              {}};
    case store::kFull:
      return {StatusCode::RESOURCE_EXHAUSTED, "STORE_FULL", status.text(), {}, {}};
    case store::kCompacted:
      return {
          StatusCode::OUT_OF_RANGE, "REVISION_COMPACTED", status.text() + "; list again", {}, {}};
    case store::kInvalid:
      return {StatusCode::INVALID_ARGUMENT, "TOO_LARGE", status.text(), {}, {}};
    default:
      return {StatusCode::INTERNAL, "STORE_FAILED", status.text(), {}, {}};
  }
}

bool MayBeRepeated(int code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return true;
    default:
      return false;
  }
}

}  // namespace rocegw::api
