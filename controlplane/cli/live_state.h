// SPDX-License-Identifier: Apache-2.0
// `get sessions|qps|mrs|counters` and `status` of one gateway: the local one, or one of the fleet
// through its agent.
#pragma once

#include <string>

#include "controlplane/cli/program.h"

namespace rocegw::cli {

struct LiveQuery {
  std::string gateway;  // as it was written; empty: the local one
  bool all_counters = false;
};

bool IsLiveNoun(const std::string& noun);
int GetLive(Program& program, const std::string& noun, const LiveQuery& query);
int ShowGatewayStatus(Program& program, const LiveQuery& query);

}  // namespace rocegw::cli
