// SPDX-License-Identifier: Apache-2.0
// All checks in order. Pure.
#pragma once

#include "gateway/doctor/facts.h"
#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::doctor {

// Examines a running gateway.
gateway::v1::DiagnoseResponse Examine(const Facts& facts);
// Examines a host whose gateway does not answer, for the given reason, with the checks that need no
// gateway.
gateway::v1::DiagnoseResponse ExamineHostAlone(const Facts& facts, const std::string& why);

}  // namespace rocegw::doctor
