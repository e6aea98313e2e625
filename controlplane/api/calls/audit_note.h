// SPDX-License-Identifier: Apache-2.0
// Audit records of calls. Pure; any thread.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "controlplane/api/calls/call.h"
#include "controlplane/store/transaction.h"
#include "rocegw/admin/v1/operations.pb.h"

namespace rocegw::api {

admin::v1::AuditRecord AuditRecordOf(const Call& call, const std::string& resource,
                                     const google::protobuf::Timestamp& time);

// Returns the record of a repeatable call, at the current time.
store::Operation AuditOf(const Call& call, const std::string& resource);

// Returns the record of a call without request_id. `request` contains no secrets.
store::Operation AuditOf(const Admitted& caller, const std::string& resource,
                         const google::protobuf::Message& request);

}  // namespace rocegw::api
