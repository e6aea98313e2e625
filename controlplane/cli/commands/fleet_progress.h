// SPDX-License-Identifier: Apache-2.0
// Progress of the gateways towards the requested configuration, and waiting for it.
#pragma once

#include <cstdint>

#include "controlplane/cli/program.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::cli {

using FleetProgress = admin::v1::GetFleetProgressResponse;

// Returns true if all gateways are connected, follow this store and run the requested
// configuration.
bool AllIsWell(const FleetProgress& progress);
// Returns true if all connected gateways run the requested configuration, or rejected it.
bool AllConnectedRunIt(const FleetProgress& progress);
// Returns "12 gateways, 11 connected, 10 in sync, 1 rejecting".
std::string ProgressText(const FleetProgress& progress);

CallResult GetProgress(Rpc& rpc, int64_t revision, FleetProgress& out);

// Waits until AllConnectedRunIt for everything up to `revision` (all_well: until AllIsWell).
// kDeadline: not within program.patience(); `out` is then the progress so far.
CallResult WaitForFleet(Program& program, int64_t revision, bool all_well, FleetProgress& out);

}  // namespace rocegw::cli
