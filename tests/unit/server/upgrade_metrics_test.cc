// SPDX-License-Identifier: Apache-2.0
// Metrics of upgrades of gateways.
#include "controlplane/server/metrics/upgrade_metrics.h"

#include <gtest/gtest.h>

namespace rocegw::server {
namespace {

TEST(UpgradeMetrics, WithoutAnUpgradeThereIsWhoDrivesThem) {
  std::vector<prometheus::MetricFamily> families;
  AddUpgradeFamilies({.drives = true, .upgrade = {}}, families);
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].name, "rocegw_upgrades_leads");
  EXPECT_EQ(families[0].metric[0].gauge.value, 1);
}

TEST(UpgradeMetrics, TheNewestUpgradeHasItsStateAndItsGatewaysByState) {
  admin::v1::Upgrade upgrade;
  upgrade.set_name("upgrades/u");
  upgrade.set_state(admin::v1::Upgrade::PAUSED);
  upgrade.mutable_since()->set_seconds(77);
  (*upgrade.mutable_counts())["REFUSED"] = 2;
  std::vector<prometheus::MetricFamily> families;
  AddUpgradeFamilies({.drives = true, .upgrade = upgrade}, families);
  ASSERT_EQ(families.size(), 4U);
  EXPECT_EQ(families[1].name, "rocegw_upgrade_state");
  EXPECT_EQ(families[1].metric[0].label[1].value, "PAUSED");
  EXPECT_EQ(families[2].metric[0].gauge.value, 77);
  EXPECT_EQ(families[3].name, "rocegw_upgrade_gateways");
  EXPECT_EQ(families[3].metric[0].label[1].value, "REFUSED");
  EXPECT_EQ(families[3].metric[0].gauge.value, 2);
}

}  // namespace
}  // namespace rocegw::server
