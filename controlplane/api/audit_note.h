// SPDX-License-Identifier: Apache-2.0
// Audit records of calls that are no writes of objects (write.h makes those of such). Pure; any
// thread.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "controlplane/api/admission.h"
#include "controlplane/store/transaction.h"

namespace rocegw::api {

// `request` is without secrets.
store::Operation AuditOf(const Admitted& caller, const std::string& resource,
                         const google::protobuf::Message& request);

}  // namespace rocegw::api
