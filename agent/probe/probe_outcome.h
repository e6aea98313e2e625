// SPDX-License-Identifier: Apache-2.0
// Report of a probe for the controller, from its output and its exit. Pure.
#pragma once

#include <string>

#include "agent/probe_program/probe_lines.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::agent {

fleet::v1::ProbeReport Fault(types::v1::ConnectivityFault fault, const std::string& message);

// `last_error`: last line of its standard error, where the client library reports why a gateway
// refuses it.
fleet::v1::ProbeReport ReportOf(const probe::Line& line, const std::string& last_error);

types::v1::PlainPath PlainOf(const probe::PlainPath& measured);

// Report of a probe that ended without output. `status`: of waitpid.
fleet::v1::ProbeReport ReportOfEnd(int status, const std::string& last_error);

}  // namespace rocegw::agent
