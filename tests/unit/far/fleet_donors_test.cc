// SPDX-License-Identifier: Apache-2.0
// Donors of the fleet for a session: which of an answer are new, and an agent that does not answer.
#include "gateway/far/session/naming/fleet_donors.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace rocegw::far {
namespace {

using Donors = std::vector<Settings::Donor>;

std::string Hosts(const Donors& donors) {
  std::string text;
  for (const Settings::Donor& donor : donors)
    text += (text.empty() ? "" : " ") + donor.host + ":" + donor.port;
  return text;
}

const Donors kKnown{{"10.0.0.1", "7475"}, {"10.0.0.2", "7475"}};

TEST(FleetDonors, New_AreThoseWithAnotherAddressOrPort) {
  const Donors found{{"10.0.0.2", "7475", "rack-2"}, {"10.0.0.2", "7476"}, {"10.0.0.3", "7475"}};
  EXPECT_EQ(Hosts(NewDonors(kKnown, found, 8)), "10.0.0.2:7476 10.0.0.3:7475");
  EXPECT_EQ(Hosts(NewDonors(kKnown, kKnown, 8)), "");
}

TEST(FleetDonors, New_AreNoMoreThanTheSessionTakes_EachOnce) {
  const Donors found{{"10.0.0.3", "7475"}, {"10.0.0.3", "7475"}, {"10.0.0.4", "7475"}};
  EXPECT_EQ(Hosts(NewDonors(kKnown, found, 8)), "10.0.0.3:7475 10.0.0.4:7475");
  EXPECT_EQ(Hosts(NewDonors(kKnown, found, 1)), "10.0.0.3:7475");
  EXPECT_EQ(Hosts(NewDonors(kKnown, found, 0)), "");
}

TEST(FleetDonors, WithoutAnAgent_TheErrorSaysWhere) {
  Settings settings;
  settings.donors_dir = "/nonexistent-folder";
  settings.tenant = "default";
  const auto found = FindFleetDonors(settings, 1 << 20, 1, std::chrono::seconds(1));
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().text().find("/nonexistent-folder"), std::string::npos);
}

TEST(FleetDonors, ASession_HasRoomForDonorsThatComeLater) {
  Settings settings;
  settings.donors = kKnown;
  EXPECT_EQ(settings.MostDonors(), 2u) << "named ones";
  settings.donors_dir = "/run/rocegw-donors";
  EXPECT_EQ(settings.MostDonors(), kMostFleetDonors);
  settings.donors.resize(kMostFleetDonors + 1);
  EXPECT_EQ(settings.MostDonors(), kMostFleetDonors + 1);
}

}  // namespace
}  // namespace rocegw::far
