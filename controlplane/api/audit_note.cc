// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/audit_note.h"

#include "controlplane/api/write.h"
#include "controlplane/model/json_text.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::api {

store::Operation AuditOf(const Admitted& caller, const std::string& resource,
                         const google::protobuf::Message& request) {
  admin::v1::AuditRecord record;
  const auto now = model::Now();
  *record.mutable_time() = now;
  record.set_principal(caller.principal);
  record.set_peer(caller.peer);
  record.set_method(caller.method);
  record.set_resource(resource);
  record.set_request(model::JsonText(request));
  return store::Operation::Put(AuditKey(now), record.SerializeAsString());
}

}  // namespace rocegw::api
