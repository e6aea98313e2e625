// SPDX-License-Identifier: Apache-2.0
// What is in somebody's way on this gateway, from a snapshot of its state and of its configuration:
// the sentences come from the one list of drop reasons, from events and from rejections. Pure.
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
