// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/metrics/upgrade_metrics.h"

#include <string>

#include "gateway/process/http/metric_families.h"

namespace rocegw::server {

using process::AddFamily;
using process::AddSingle;
using process::AddValue;
using prometheus::MetricFamily;
using prometheus::MetricType;

void AddUpgradeFamilies(const upgrades::UpgradeBoard::View& view,
                        std::vector<MetricFamily>& families) {
  AddSingle(families, "rocegw_upgrades_leads", "1: this controller drives upgrades of gateways",
            MetricType::Gauge, view.drives ? 1 : 0);
  if (!view.upgrade.has_value()) return;
  const admin::v1::Upgrade& upgrade = *view.upgrade;
  const std::string name = upgrade.name().substr(upgrade.name().find('/') + 1);
  AddValue(
      AddFamily(families, "rocegw_upgrade_state",
                "1: state of the newest upgrade; of the controller that drives", MetricType::Gauge),
      {{"upgrade", name}, {"state", admin::v1::Upgrade::State_Name(upgrade.state())}}, 1);
  AddValue(AddFamily(families, "rocegw_upgrade_state_since_timestamp_seconds",
                     "begin of the upgrade's state, since 1970", MetricType::Gauge),
           {{"upgrade", name}}, static_cast<double>(upgrade.since().seconds()));
  MetricFamily& gateways = AddFamily(families, "rocegw_upgrade_gateways",
                                     "gateways of the newest upgrade", MetricType::Gauge);
  for (const auto& [state, count] : upgrade.counts())
    AddValue(gateways, {{"upgrade", name}, {"state", state}}, static_cast<double>(count));
}

}  // namespace rocegw::server
