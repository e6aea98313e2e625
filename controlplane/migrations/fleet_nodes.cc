// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/fleet_nodes.h"

#include <utility>

namespace rocegw::migrations {
namespace {

// The agent reports the end of a call's time by itself; its report gets a little more.
constexpr std::chrono::seconds kMargin(5);

}  // namespace

bool FleetNodes::IsReachable(const std::string& node) {
  return follower_.Read([&](const sync::Fleet& fleet) {
    const auto known = fleet.view.gateways.find("gateways/" + node);
    return known != fleet.view.gateways.end() && known->second.object.status().connected();
  });
}

void FleetNodes::Call(const std::string& node, const fleet::v1::MigrationCall& call,
                      std::chrono::seconds limit, std::function<void(NodeAnswer)> done) {
  fleet::v1::TunnelQuestion question;
  *question.mutable_migration_call() = call;
  router_.Ask("gateways/" + node, question, api::QuestionRouter::Clock::now() + limit + kMargin,
              [done = std::move(done)](sync::TunnelResult result) {
                NodeAnswer answer{.code = result.code, .message = std::move(result.message)};
                if (!result.parts.empty()) answer.report = result.parts[0].migration_report();
                done(std::move(answer));
              });
}

}  // namespace rocegw::migrations
