// SPDX-License-Identifier: Apache-2.0
#include "controlplane/upgrades/fleet_hosts.h"

#include <algorithm>
#include <utility>

namespace rocegw::upgrades {
namespace {

// The agent reports the end of a question's time by itself; its report gets a little more.
constexpr std::chrono::seconds kMargin(5);

}  // namespace

HostState FleetHosts::StateOf(const std::string& gateway) {
  return follower_.Read([&](const sync::Fleet& fleet) -> HostState {
    const auto known = fleet.view.gateways.find(gateway);
    if (known == fleet.view.gateways.end()) return {};
    const types::v1::GatewayState& status = known->second.object.status();
    const bool unreachable = std::ranges::any_of(
        status.conditions(), [](const auto& each) { return each.type() == "GatewayReachable"; });
    return {.connected = status.connected() && !unreachable, .version = status.gateway_version()};
  });
}

TakeOverReports FleetHosts::TakeOvers() {
  return follower_.Read([](const sync::Fleet& fleet) {
    TakeOverReports reports;
    for (const auto& [name, known] : fleet.view.gateways) {
      const types::v1::GatewayState& status = known.object.status();
      if (status.has_take_overs()) reports[name] = status.take_overs();
    }
    return reports;
  });
}

void FleetHosts::Ask(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
                     std::chrono::seconds limit, std::function<void(HostAnswer)> done) {
  router_.Ask(gateway, question, api::QuestionRouter::Clock::now() + limit + kMargin,
              [done = std::move(done)](sync::TunnelResult result) {
                HostAnswer answer{
                    .code = result.code, .message = std::move(result.message), .answer = {}};
                if (!result.parts.empty()) answer.answer = std::move(result.parts[0]);
                done(std::move(answer));
              });
}

}  // namespace rocegw::upgrades
