// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/upgrade/upgrade_view.h"

#include <algorithm>
#include <cstdio>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/views/table.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::cli {
namespace {

using admin::v1::Upgrade;
using admin::v1::UpgradedGateway;

double Milliseconds(const google::protobuf::Duration& time) {
  return static_cast<double>(time.seconds()) * 1e3 + time.nanos() / 1e6;
}

std::string PauseText(double milliseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", milliseconds);
  return text;
}

uint32_t CountOf(const Upgrade& upgrade, UpgradedGateway::State state) {
  const auto at = upgrade.counts().find(UpgradedGateway::State_Name(state));
  return at == upgrade.counts().end() ? 0 : at->second;
}

// "3 REPLACED, 1 REPLACING, 4 WAITING".
std::string CountsText(const Upgrade& upgrade) {
  std::string text;
  for (int state = UpgradedGateway::State_MAX; state >= UpgradedGateway::WAITING; --state) {
    const uint32_t count = CountOf(upgrade, static_cast<UpgradedGateway::State>(state));
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " +
            UpgradedGateway::State_Name(static_cast<UpgradedGateway::State>(state));
  }
  return text;
}

std::string CountText(uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string HandedOverText(const UpgradedGateway& gateway) {
  if (!gateway.has_handed_over()) return "-";
  const types::v1::GatewayTotals& totals = gateway.handed_over();
  return CountText(totals.sessions(), "session") + ", " + CountText(totals.qps(), "QP") + ", " +
         CountText(totals.mrs(), "MR");
}

// Returns a line for each gateway that has a text: texts are longer than a table's column.
std::string WhyText(const Upgrade& upgrade) {
  std::string text;
  for (const UpgradedGateway& gateway : upgrade.gateways()) {
    if (gateway.text().empty()) continue;
    text += ForeignText(ShortName(gateway.name()) + " " +
                        UpgradedGateway::State_Name(gateway.state()) + ": " + gateway.text()) +
            "\n";
  }
  return text.empty() ? text : "\n" + text;
}

std::string NextText(const Upgrade& upgrade) {
  const std::string name = ShortName(upgrade.name());
  const int64_t now = upgrade.read_time().seconds();
  switch (upgrade.state()) {
    case Upgrade::RUNNING:
      if (!upgrade.has_soak_time()) return {};
      return "next: the end of the wave in " +
             AgeText(std::max<int64_t>(
                 upgrade.soak_time().seconds() + upgrade.spec().soak_seconds() - now, 0)) +
             "\n";
    case Upgrade::PAUSED: {
      const bool failed = CountOf(upgrade, UpgradedGateway::REFUSED) +
                              CountOf(upgrade, UpgradedGateway::FAILED) +
                              CountOf(upgrade, UpgradedGateway::LOST) !=
                          0;
      return std::string("next: a person: ") +
             (failed ? "retry, resume (without those)" : "resume") + " or abort\n";
    }
    default:
      return {};
  }
}

}  // namespace

std::string UpgradeStatusText(const Upgrade& upgrade, size_t limit) {
  std::string text = ForeignText(upgrade.name()) + " " + Upgrade::State_Name(upgrade.state()) +
                     (upgrade.reason().empty() ? "" : " (" + ForeignText(upgrade.reason()) + ")") +
                     " for " + AgeText(upgrade.read_time().seconds() - upgrade.since().seconds()) +
                     ", wave " + std::to_string(upgrade.wave()) + " of " +
                     std::to_string(upgrade.waves()) + "\n" + CountsText(upgrade);
  double longest = 0;
  Table table;
  table.AddColumn("GATEWAY", Column::kLeft);
  table.AddColumn("WAVE", Column::kRight);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("PAUSE", Column::kRight);
  table.AddColumn("FROM", Column::kLeft);
  table.AddColumn("TO", Column::kLeft);
  table.AddColumn("HANDED OVER", Column::kLeft);
  table.AddColumn("WHY", Column::kCut);
  for (const UpgradedGateway& gateway : upgrade.gateways()) {
    const double pause = Milliseconds(gateway.blackout());
    longest = std::max(longest, pause);
    table.AddRow({ShortName(gateway.name()), std::to_string(gateway.wave()),
                  UpgradedGateway::State_Name(gateway.state()),
                  gateway.has_blackout() ? PauseText(pause) : "-", OrDash(gateway.version_before()),
                  OrDash(gateway.version_after()), HandedOverText(gateway),
                  OrDash(gateway.reason())});
  }
  if (longest > 0) text += "; longest pause " + PauseText(longest);
  return text + "\n" + NextText(upgrade) + "\n" + table.Text(limit) + WhyText(upgrade);
}

std::string UpgradeListText(const admin::v1::ListUpgradesResponse& list, size_t limit) {
  Table table;
  table.AddColumn("UPGRADE", Column::kLeft);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("AGE", Column::kRight);
  table.AddColumn("WAVE", Column::kLeft);
  table.AddColumn("GATEWAYS", Column::kLeft);
  table.AddColumn("WHY", Column::kCut);
  for (const Upgrade& upgrade : list.upgrades()) {
    table.AddRow({ShortName(upgrade.name()), Upgrade::State_Name(upgrade.state()),
                  AgeText(upgrade.read_time().seconds() - upgrade.create_time().seconds()),
                  std::to_string(upgrade.wave()) + "/" + std::to_string(upgrade.waves()),
                  OrDash(CountsText(upgrade)), OrDash(upgrade.reason())});
  }
  return table.Text(limit);
}

}  // namespace rocegw::cli
