// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rocegw::process {

// Makes gRPC log through the daemon's log queue. Called after StartLogging.
void RouteGrpcLog();

}  // namespace rocegw::process
