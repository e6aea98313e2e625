// SPDX-License-Identifier: Apache-2.0
// How far the gateways are with what was asked for, and waiting for it.
#pragma once

#include <cstdint>

#include "controlplane/cli/program.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::cli {

using FleetProgress = admin::v1::GetFleetProgressResponse;

// All gateways are connected, follow this store and run everything that was asked for.
bool AllIsWell(const FleetProgress& progress);
// All gateways that are connected anywhere run everything that was asked for, or rejected it.
bool AllConnectedRunIt(const FleetProgress& progress);
// "12 gateways, 11 connected, 10 in sync, 1 rejecting"
std::string ProgressText(const FleetProgress& progress);

CallResult GetProgress(Rpc& rpc, int64_t revision, FleetProgress& out);

// Until AllConnectedRunIt, of everything up to `revision` (all_well: until AllIsWell). kDeadline:
// not within program.patience(); `out` is then how far it came.
CallResult WaitForFleet(Program& program, int64_t revision, bool all_well, FleetProgress& out);

}  // namespace rocegw::cli
