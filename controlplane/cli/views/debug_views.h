// SPDX-License-Identifier: Apache-2.0
// Texts of events and explanations of a gateway. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "rocegw/gateway/v1/debug.pb.h"
#include "rocegw/gateway/v1/state.pb.h"

namespace rocegw::cli {

// Latest event last; `now`: seconds since 1970.
std::string EventsView(const gateway::v1::ListEventsResponse& list, bool wide, int64_t now);
// Pools as a gateway has them: a row for each limit that is used, committed or has refused
// something.
std::string PoolUsageView(const gateway::v1::ListPoolsResponse& list, bool wide);
// Groups findings by kind, each with its sentence in lines of 80 characters.
std::string ExplanationView(const gateway::v1::ExplainResponse& explanation, int64_t now);

// Returns the events between the two, and the conditions of the later one.
gateway::v1::ExplainResponse Between(const gateway::v1::ExplainResponse& earlier,
                                     const gateway::v1::ExplainResponse& later);

}  // namespace rocegw::cli
