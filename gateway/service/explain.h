// SPDX-License-Identifier: Apache-2.0
// Explanation of what hinders programs on this gateway, from snapshots of its state and
// configuration. The texts come from the list of drop reasons, from events and from rejections.
// Pure.
#pragma once

#include "gateway/service/identity.h"
#include "gateway/session/state/state_rows.h"
#include "rocegw/gateway/v1/config.pb.h"
#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::service {

// The snapshot has sessions, queue pairs, pools and events.
gateway::v1::ExplainResponse Explain(const gateway::v1::ExplainRequest& request,
                                     const GatewayIdentity& identity,
                                     const std::string& not_ready_reason,
                                     const session::StateSnapshot& snapshot,
                                     const gateway::v1::GetConfigResponse& config);

}  // namespace rocegw::service
