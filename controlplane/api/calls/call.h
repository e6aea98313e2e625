// SPDX-License-Identifier: Apache-2.0
// One call of a client that changes something: who made it, what the audit keeps of it, and what it
// is known by when it comes again under its request_id. Pure; any thread.
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
  std::string request_digest;  // of the request without its request_id
  std::string request_json;    // without secrets
  std::string etag_before;
};

// SHA-256 of the message.
std::string DigestOf(const google::protobuf::Message& message);

// etag: of the object that the caller means to change; empty: it did not say.
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

// The key under which the answer is kept. Each principal has request ids of its own: nobody gets
// the answer to another's call, or takes an id away.
std::string RequestKey(const Call& call);

// What is kept of a call that is answered with this.
controlplane::v1::RequestRecord RequestRecordOf(const Call& call, std::string answer,
                                                const google::protobuf::Timestamp& time);

// The record is of another request than this one, under the same id; nullopt: of this one.
std::optional<ApiError> RequestIdReused(const Call& call,
                                        const controlplane::v1::RequestRecord& record);

}  // namespace rocegw::api
