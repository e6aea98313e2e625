// SPDX-License-Identifier: Apache-2.0
// Views of upgrades of gateways.
#include "controlplane/cli/upgrade/upgrade_view.h"

#include <gtest/gtest.h>

namespace rocegw::cli {
namespace {

using admin::v1::Upgrade;
using admin::v1::UpgradedGateway;

constexpr int64_t kReadAt = 1'800'000'000;

Upgrade Running() {
  Upgrade upgrade;
  upgrade.set_name("upgrades/to-0-2");
  upgrade.set_state(Upgrade::RUNNING);
  upgrade.set_wave(2);
  upgrade.set_waves(3);
  upgrade.mutable_spec()->set_soak_seconds(10);
  upgrade.mutable_since()->set_seconds(kReadAt - 62);
  upgrade.mutable_create_time()->set_seconds(kReadAt - 62);
  upgrade.mutable_read_time()->set_seconds(kReadAt);
  (*upgrade.mutable_counts())["REPLACED"] = 1;
  (*upgrade.mutable_counts())["WAITING"] = 1;
  UpgradedGateway& done = *upgrade.add_gateways();
  done.set_name("gateways/host-a");
  done.set_wave(1);
  done.set_state(UpgradedGateway::REPLACED);
  done.set_version_before("0.1.0 (1a2b3c4d)");
  done.set_version_after("0.2.0 (5e6f7a8b)");
  done.mutable_blackout()->set_nanos(13'853'000);
  done.mutable_handed_over()->set_sessions(3);
  done.mutable_handed_over()->set_qps(12);
  done.mutable_handed_over()->set_mrs(9);
  UpgradedGateway& waiting = *upgrade.add_gateways();
  waiting.set_name("gateways/host-b");
  waiting.set_wave(2);
  waiting.set_state(UpgradedGateway::WAITING);
  return upgrade;
}

TEST(UpgradeView, ShowsForEachGatewayWhatBecameOfIt) {
  EXPECT_EQ(UpgradeStatusText(Running(), 0),
            "upgrades/to-0-2 RUNNING for 1m02s, wave 2 of 3\n"
            "1 REPLACED, 1 WAITING; longest pause 13.9 ms\n"
            "\n"
            "GATEWAY  WAVE  STATE       PAUSE  FROM              TO                HANDED OVER     "
            "           WHY\n"
            "host-a      1  REPLACED  13.9 ms  0.1.0 (1a2b3c4d)  0.2.0 (5e6f7a8b)  3 sessions, 12 "
            "QPs, 9 MRs  -\n"
            "host-b      2  WAITING         -  -                 -                 -               "
            "           -\n");
}

TEST(UpgradeView, ARefusalHasItsReasonAndWhatAPersonCanDo) {
  Upgrade upgrade = Running();
  upgrade.set_state(Upgrade::PAUSED);
  upgrade.set_reason("gateways/host-b REFUSED: sessions");
  (*upgrade.mutable_counts())["REFUSED"] = 1;
  upgrade.mutable_gateways(1)->set_state(UpgradedGateway::REFUSED);
  upgrade.mutable_gateways(1)->set_reason("sessions");
  upgrade.mutable_gateways(1)->set_text("XRC domains");
  const std::string text = UpgradeStatusText(upgrade, 0);
  EXPECT_NE(text.find("upgrades/to-0-2 PAUSED (gateways/host-b REFUSED: sessions) for 1m02s"),
            std::string::npos);
  EXPECT_NE(text.find("next: a person: retry, resume (without those) or abort\n"),
            std::string::npos);
  EXPECT_TRUE(text.ends_with("\n\nhost-b REFUSED: XRC domains\n")) << text;
}

TEST(UpgradeView, TheEndOfTheSoakIsShown) {
  Upgrade upgrade = Running();
  upgrade.mutable_soak_time()->set_seconds(kReadAt - 4);
  EXPECT_NE(UpgradeStatusText(upgrade, 0).find("next: the end of the wave in 6s\n"),
            std::string::npos);
}

TEST(UpgradeView, ForeignTextIsEscaped) {
  Upgrade upgrade = Running();
  upgrade.set_reason("\x1b[2J");
  upgrade.mutable_gateways(1)->set_text("\x1b[2J");
  EXPECT_EQ(UpgradeStatusText(upgrade, 0).find('\x1b'), std::string::npos);
}

TEST(UpgradeView, TheListHasALineForEachUpgrade) {
  admin::v1::ListUpgradesResponse list;
  *list.add_upgrades() = Running();
  EXPECT_EQ(UpgradeListText(list, 0),
            "UPGRADE  STATE      AGE  WAVE  GATEWAYS               WHY\n"
            "to-0-2   RUNNING  1m02s  2/3   1 REPLACED, 1 WAITING  -\n");
}

}  // namespace
}  // namespace rocegw::cli
