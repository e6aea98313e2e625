// SPDX-License-Identifier: Apache-2.0
// Texts of a gateway's state. Pure functions; `wide`: more columns and no limit of 80 characters.
#pragma once

#include <cstddef>
#include <string>

#include "rocegw/gateway/v1/state.pb.h"

namespace rocegw::cli {

struct ViewOptions {
  bool wide = false;
  size_t most_rows = 0;     // rows of each table; 0: all
  std::string how_to_list;  // command that shows the rows that were left out
};

// Identity, readiness, ports, totals.
std::string StatusView(const types::v1::GatewayStatus& status, bool wide);
std::string SessionsView(const gateway::v1::ListSessionsResponse& list, const ViewOptions& options);
std::string QpsView(const gateway::v1::ListQpsResponse& list, const ViewOptions& options);
std::string ConnectionsView(const gateway::v1::ListConnectionsResponse& list,
                            const ViewOptions& options);
std::string ChannelsView(const gateway::v1::ListChannelsResponse& list, const ViewOptions& options);
std::string MrsView(const gateway::v1::ListMrsResponse& list, const ViewOptions& options);
std::string SrqsView(const gateway::v1::ListSrqsResponse& list, const ViewOptions& options);
// Without `all`, counters that are zero on every worker are left out.
std::string CountersView(const gateway::v1::GetCountersResponse& counters, bool wide, bool all);

}  // namespace rocegw::cli
