// SPDX-License-Identifier: Apache-2.0
// State of long-running operations, as a function of the known state of their targets. Pure; any
// thread.
#pragma once

#include <optional>
#include <string>

#include "controlplane/controllers/fleet_view.h"
#include "rocegw/types/v1/operation.pb.h"

namespace rocegw::controllers {

inline constexpr char kDrain[] = "drain";

// Returns the current state of the operation, without its time; a finished operation does not
// change.
types::v1::OperationStatus StandOf(const FleetView& view, const types::v1::Operation& operation);

}  // namespace rocegw::controllers
