// SPDX-License-Identifier: Apache-2.0
// Client's call that changes something: its caller, the data for its audit record, and the identity
// by which a repetition with the same request_id is recognised. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "controlplane/api/calls/admission.h"
#include "controlplane/api/calls/api_error.h"
#include "controlplane/model/json_text.h"
#include "controlplane/model/serialized.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::api {

struct Call {
  std::string principal;
  std::string peer;
  std::string method;  // "/rocegw.admin.v1.Pools/UpdatePool"
  std::string request_id;
  std::string request_digest;  // digest of the request without its request_id
  std::string request_json;    // without secrets
  std::string etag_before;
};

// Returns SHA-256 of the message.
std::string DigestOf(const google::protobuf::Message& message);

// `etag`: expected version of the changed object; empty: any.
template <typename Request>
Call CallOf(const Admitted& admitted, const Request& request, const std::string& etag = {}) {
  Call call{.principal = admitted.principal,
            .peer = admitted.peer,
            .method = admitted.method,
            .request_id = request.request_id(),
            .request_digest = {},
            .request_json = {},
            .etag_before = etag};
  Request without_id = request;
  without_id.clear_request_id();
  call.request_digest = DigestOf(without_id);
  call.request_json = model::JsonText(without_id);
  return call;
}

// Returns the key under which the answer is kept. Each principal has its own request ids, so a
// caller can neither read the answer to another's call nor block an id.
std::string RequestKey(const Call& call);

// Returns the record of a call with this answer.
controlplane::v1::RequestRecord RequestRecordOf(const Call& call, std::string answer,
                                                const google::protobuf::Timestamp& time);

// Returns an error if the record is of another request with the same id; nullopt: of this one.
std::optional<ApiError> RequestIdReused(const Call& call,
                                        const controlplane::v1::RequestRecord& record);

}  // namespace rocegw::api
