// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/client/rpc_error.h"

#include "gateway/base/foreign_text.h"
#include "google/rpc/error_details.pb.h"

namespace rocegw::cli {
namespace {

ExitCode CodeOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return kOk;
    case grpc::StatusCode::NOT_FOUND:
      return kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::ABORTED:
      return kConflict;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return kDenied;
    case grpc::StatusCode::UNAVAILABLE:
      return kUnavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return kDeadline;
    default:
      return kFailed;
  }
}

}  // namespace

CallResult Refusal(const grpc::Status& status, const std::string& who, const std::string& method) {
  CallResult result{CodeOf(status.error_code()), {}, {}};
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    result.text = who + " does not know " + method.substr(method.find_last_of('.') + 1) +
                  " (yet); its version is another than rocegwctl's";
    return result;
  }
  google::rpc::Status details;
  std::string fields;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : details.details()) {
      google::rpc::ErrorInfo info;
      google::rpc::BadRequest request;
      if (detail.Is<google::rpc::ErrorInfo>() && detail.UnpackTo(&info)) {
        result.reason = info.reason();
      } else if (detail.Is<google::rpc::BadRequest>() && detail.UnpackTo(&request)) {
        for (const auto& violation : request.field_violations()) {
          fields += "\n  " + violation.field() + " " + violation.description();
        }
      }
    }
  }
  if (result.reason.empty()) {
    // The error is not ours but of the connection or of gRPC.
    result.text = who + (result.code == kUnavailable ? " does not answer: " : " answered: ") +
                  ForeignText(status.error_message());
    return result;
  }
  // With several fields at fault the message names only the first one.
  result.text = result.reason + ": " + (fields.empty() ? status.error_message() : fields.substr(1));
  if (!fields.empty()) {
    result.text = fields.find('\n', 1) == std::string::npos
                      ? result.reason + ": " + fields.substr(3)
                      : result.reason + ":" + fields;
  }
  result.text = ForeignLines(result.text);
  return result;
}

}  // namespace rocegw::cli
