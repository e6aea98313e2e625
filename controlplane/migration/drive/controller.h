// SPDX-License-Identifier: Apache-2.0
// Drives a migration: turns (record, event, time) into the next record, and into commands for
// nodes. Pure: the caller stores the record before it carries out anything of the transition, so
// that a controller that is killed is followed by one that goes on. One thread per record.
#pragma once

#include <cstdint>
#include <string>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/drive/record.h"
#include "controlplane/migration/plan/plan.h"

namespace rocegw::migration {

// Returns a record in DRAFT with one entry for each node and wave of the plan.
Record NewRecord(const Plan& plan);

// Handles one event at `now` (seconds). A refused order changes nothing.
Transition Handle(const Plan& plan, Record& record, const Event& event, int64_t now);

// Returns true if knobs are in range. `problem`: one line.
bool CheckKnobs(const Knobs& knobs, std::string& problem);

}  // namespace rocegw::migration
