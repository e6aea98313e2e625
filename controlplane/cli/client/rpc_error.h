// SPDX-License-Identifier: Apache-2.0
// Text and exit code for a server's refusal. Pure.
#pragma once

#include <grpcpp/support/status.h>

#include "controlplane/cli/client/call_result.h"

namespace rocegw::cli {

// `who`: "the controller at /run/x.sock"; `method`: "/rocegw.admin.v1.Audit/Verify".
CallResult Refusal(const grpc::Status& status, const std::string& who, const std::string& method);

}  // namespace rocegw::cli
