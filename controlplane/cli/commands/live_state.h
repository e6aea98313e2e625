// SPDX-License-Identifier: Apache-2.0
// `get sessions|qps|connections|channels|mrs|srqs|counters`, `describe` of these and `status` of
// one gateway: the local one, or one of the fleet through its agent.
#pragma once

#include <string>
#include <vector>

#include "controlplane/cli/program.h"

namespace rocegw::cli {

struct LiveQuery {
  std::string gateway;  // as it was written; empty: the local one
  bool all_counters = false;
};

// Connects to where the live state of a gateway is. name: "gateways/G" to ask the controller for;
// empty: the connection is the gateway's own.
CallResult OpenGateway(Program& program, const std::string& gateway, std::string& name);

// "pools" is one too, but also a kind of the fleet: the caller knows which is meant.
bool IsLiveNoun(const std::string& noun);
int GetLive(Program& program, const std::string& noun, const LiveQuery& query);
// names: of rows, as a list shows them or in full; none: all.
int DescribeLive(Program& program, const std::string& noun, const std::vector<std::string>& names,
                 const LiveQuery& query);
int ShowGatewayStatus(Program& program, const LiveQuery& query);

}  // namespace rocegw::cli
