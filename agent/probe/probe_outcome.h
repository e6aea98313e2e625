// SPDX-License-Identifier: Apache-2.0
// What the controller is told of a probe: from what it says and from how it ends. Pure.
#pragma once

#include <string>

#include "agent/probe_program/probe_lines.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::agent {

fleet::v1::ProbeReport Fault(types::v1::ConnectivityFault fault, const std::string& message);

// last_error: of its standard error, where the client library says why a gateway refuses it.
fleet::v1::ProbeReport ReportOf(const probe::Line& line, const std::string& last_error);

// Of one that ended without a word. status: of waitpid.
fleet::v1::ProbeReport ReportOfEnd(int status, const std::string& last_error);

}  // namespace rocegw::agent
