// SPDX-License-Identifier: Apache-2.0
// What happened on a gateway, and why, as text for people. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "rocegw/gateway/v1/debug.pb.h"
#include "rocegw/gateway/v1/state.pb.h"

namespace rocegw::cli {

// Latest last; now: seconds since 1970.
std::string EventsView(const gateway::v1::ListEventsResponse& list, bool wide, int64_t now);
// Pools as a gateway has them: a row for each limit that is used, promised or was refused for.
std::string PoolUsageView(const gateway::v1::ListPoolsResponse& list, bool wide);
// By kind, each finding with its sentence in lines of 80 characters.
std::string ExplanationView(const gateway::v1::ExplainResponse& explanation, int64_t now);

// What has happened between the two, and what stands as it is in the later one.
gateway::v1::ExplainResponse Between(const gateway::v1::ExplainResponse& earlier,
                                     const gateway::v1::ExplainResponse& later);

}  // namespace rocegw::cli
