// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/lost_gateways.h"

namespace rocegw::controllers {

std::vector<std::string> LostGateways(const FleetView& view, const Replicas& replicas,
                                      bool unnamed) {
  std::vector<std::string> lost;
  for (const auto& [name, known] : view.gateways) {
    const types::v1::GatewayState& state = known.object.status();
    if (!state.connected()) continue;
    const bool gone = state.controller().empty() ? unnamed : !replicas.contains(state.controller());
    if (gone) lost.push_back(name);
  }
  return lost;
}

}  // namespace rocegw::controllers
