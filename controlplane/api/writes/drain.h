// SPDX-License-Identifier: Apache-2.0
// Plans for draining and undraining a gateway: the gateway's intent, and the operation that tracks
// it. Pure; any thread.
#pragma once

#include <string>

#include "controlplane/api/writes/standard_methods.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::api {

// The plan's object, and the caller's answer, is the operation.
PlanOrError PlanDrain(const sync::Fleet& fleet, const admin::v1::DrainGatewayRequest& request,
                      const std::string& operation_id, const std::string& principal,
                      const Birth& birth);
// The plan's object is the operation; the gateway returns to service.
PlanOrError PlanCancelDrain(const sync::Fleet& fleet, const types::v1::Operation& operation,
                            const Birth& birth);
// The plan's object is the gateway.
PlanOrError PlanUndrain(const sync::Fleet& fleet, const std::string& gateway, const Birth& birth);

}  // namespace rocegw::api
