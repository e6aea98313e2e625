// SPDX-License-Identifier: Apache-2.0
// `get sessions|qps|connections|channels|mrs|srqs|counters`, `describe` of these and `status` of
// one gateway: the local one, or one of the fleet through its agent.
#pragma once

#include <string>
#include <vector>

#include "controlplane/cli/program.h"

namespace rocegw::cli {

struct LiveQuery {
  std::string gateway;  // as typed; empty: the local one
  bool all_counters = false;
};

// Connects to the server of a gateway's live state. `name`: "gateways/G" to ask the controller for;
// empty: the connection goes to the gateway.
CallResult OpenGateway(Program& program, const std::string& gateway, std::string& name);

// Returns true for nouns of live state. "pools" is one, but also a kind of the fleet: the caller
// decides.
bool IsLiveNoun(const std::string& noun);
int GetLive(Program& program, const std::string& noun, const LiveQuery& query);
// `names`: last parts or full names of rows; none: all.
int DescribeLive(Program& program, const std::string& noun, const std::vector<std::string>& names,
                 const LiveQuery& query);
int ShowGatewayStatus(Program& program, const LiveQuery& query);

}  // namespace rocegw::cli
