// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/calls/audit_note.h"

#include "controlplane/api/writes/write.h"
#include "controlplane/model/json_text.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::api {

admin::v1::AuditRecord AuditRecordOf(const Call& call, const std::string& resource,
                                     const google::protobuf::Timestamp& time) {
  admin::v1::AuditRecord record;
  *record.mutable_time() = time;
  record.set_principal(call.principal);
  record.set_peer(call.peer);
  record.set_method(call.method);
  record.set_resource(resource);
  record.set_request_id(call.request_id);
  record.set_etag_before(call.etag_before);
  record.set_request(call.request_json);
  return record;
}

store::Operation AuditOf(const Call& call, const std::string& resource) {
  const auto now = model::Now();
  return store::Operation::Put(AuditKey(now),
                               AuditRecordOf(call, resource, now).SerializeAsString());
}

store::Operation AuditOf(const Admitted& caller, const std::string& resource,
                         const google::protobuf::Message& request) {
  const Call call{.principal = caller.principal,
                  .peer = caller.peer,
                  .method = caller.method,
                  .request_id = {},
                  .request_digest = {},
                  .request_json = model::JsonText(request),
                  .etag_before = {}};
  return AuditOf(call, resource);
}

}  // namespace rocegw::api
