// SPDX-License-Identifier: Apache-2.0
// Text of findings. Pure functions.
#pragma once

#include <string>

#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::cli {

// Returns the problems with their remedies, then a line with sums; `wide`: also passed checks.
std::string DiagnosisView(const gateway::v1::DiagnoseResponse& diagnosis, bool wide);
// Returns 0, kWarned or kConditionFalse, by the worst finding.
int WorstOf(const gateway::v1::DiagnoseResponse& diagnosis);

}  // namespace rocegw::cli
