// SPDX-License-Identifier: Apache-2.0
// All checks in order. Pure.
#pragma once

#include "gateway/doctor/facts.h"
#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::doctor {

// Of a gateway that runs.
gateway::v1::DiagnoseResponse Examine(const Facts& facts);
// Of a host whose gateway does not answer, with the reason: what can be said without it.
gateway::v1::DiagnoseResponse ExamineHostAlone(const Facts& facts, const std::string& why);

}  // namespace rocegw::doctor
