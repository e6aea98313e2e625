// SPDX-License-Identifier: Apache-2.0
// What was found wrong, as text for people. Pure functions.
#pragma once

#include <string>

#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::cli {

// What is wrong, each with its remedy, then a line with sums; wide: what is good too.
std::string DiagnosisView(const gateway::v1::DiagnoseResponse& diagnosis, bool wide);
// 0, kWarned or kConditionFalse: what the worst of them is.
int WorstOf(const gateway::v1::DiagnoseResponse& diagnosis);

}  // namespace rocegw::cli
