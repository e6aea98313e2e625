// SPDX-License-Identifier: Apache-2.0
// Rotation of the fleet's keys out of turn: the keys of a new generation replace all others within
// minutes, because a host that leaves or is shut out knows those. The store keeps when generations
// begin; the keys are computed (identity/fleet_key_schedule.h). Pure; any thread.
#pragma once

#include <chrono>
#include <vector>

#include "controlplane/identity/enrollment.h"
#include "controlplane/identity/fleet_key_schedule.h"

namespace rocegw::identity {

// Returns the starts of generations, ascending. `record`: value of model::kFleetKeysKey.
std::vector<TimePoint> StartsOfKeys(const Found& record);

struct KeyRotation {
  Step step;        // empty: a generation that has not begun yet serves
  TimePoint start;  // the new generation is accepted from then on
  TimePoint done;   // gateways that asked since accept no key of an earlier generation
};

// Plans a new generation. While a rotation is in progress, the next one begins when that has ended.
// A rotation that has not begun serves every host that is shut out in the same transaction: no host
// has its keys.
KeyRotation PlanKeyRotation(const Found& record, std::chrono::seconds period, TimePoint now);

}  // namespace rocegw::identity
