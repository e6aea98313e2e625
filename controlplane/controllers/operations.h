// SPDX-License-Identifier: Apache-2.0
// What takes longer than a call: how an operation stands, as a function of what is known of its
// target. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "controlplane/controllers/fleet_view.h"
#include "rocegw/types/v1/operation.pb.h"

namespace rocegw::controllers {

inline constexpr char kDrain[] = "drain";

// How the operation stands now, without its time; once done it stays as it is.
types::v1::OperationStatus StandOf(const FleetView& view, const types::v1::Operation& operation);

}  // namespace rocegw::controllers
