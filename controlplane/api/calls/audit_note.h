// SPDX-License-Identifier: Apache-2.0
// What the audit says of a call. Pure; any thread.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "controlplane/api/calls/call.h"
#include "controlplane/store/transaction.h"
#include "rocegw/admin/v1/operations.pb.h"

namespace rocegw::api {

admin::v1::AuditRecord AuditRecordOf(const Call& call, const std::string& resource,
                                     const google::protobuf::Timestamp& time);

// The record of a call that may be repeated, now.
store::Operation AuditOf(const Call& call, const std::string& resource);

// Of one that has no request_id. `request` is without secrets.
store::Operation AuditOf(const Admitted& caller, const std::string& resource,
                         const google::protobuf::Message& request);

}  // namespace rocegw::api
