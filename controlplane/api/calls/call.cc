// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/calls/call.h"

#include <openssl/sha.h>

#include <utility>

#include "controlplane/identity/openssl.h"

namespace rocegw::api {
namespace {

constexpr size_t kPrincipalDigits = 32;

}  // namespace

std::string DigestOf(const google::protobuf::Message& message) {
  const std::string bytes = model::Serialized(message);
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string RequestKey(const Call& call) {
  return "request/" + identity::Hex(identity::Sha256(call.principal)).substr(0, kPrincipalDigits) +
         "/" + call.request_id;
}

controlplane::v1::RequestRecord RequestRecordOf(const Call& call, std::string answer,
                                                const google::protobuf::Timestamp& time) {
  controlplane::v1::RequestRecord record;
  record.set_method(call.method);
  record.set_request_digest(call.request_digest);
  record.set_intent(std::move(answer));
  *record.mutable_time() = time;
  return record;
}

std::optional<ApiError> RequestIdReused(const Call& call,
                                        const controlplane::v1::RequestRecord& record) {
  if (record.method() == call.method && record.request_digest() == call.request_digest)
    return std::nullopt;
  return ApiError{grpc::StatusCode::INVALID_ARGUMENT,
                  "REQUEST_ID_REUSED",
                  "this request_id belongs to another request",
                  {{"request_id", call.request_id}},
                  {}};
}

}  // namespace rocegw::api
