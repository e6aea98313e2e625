// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/fleet_peers.h"

#include <gtest/gtest.h>

namespace rocegw::session {
namespace {

wire::Gid At(uint32_t number) { return wire::Gid::FromV4(0xC0000200 + number); }

class FleetPeersTest : public ::testing::Test {
 protected:
  std::set<wire::Gid> members_;
  int told_ = 0;
  FleetPeers peers_{[this](const wire::Gid& address, bool member) {
    ++told_;
    EXPECT_EQ(member ? members_.insert(address).second : members_.erase(address) == 1, true);
  }};
};

TEST_F(FleetPeersTest, AddressesComeAndGoWithTheirGateway) {
  peers_.Set("gateways/a", {At(1), At(2)});
  peers_.Set("gateways/b", {At(3)});
  EXPECT_EQ(members_, (std::set<wire::Gid>{At(1), At(2), At(3)}));
  peers_.Set("gateways/a", {At(2), At(4), At(4)});
  EXPECT_EQ(members_, (std::set<wire::Gid>{At(2), At(3), At(4)}));
  const int told = told_;
  peers_.Set("gateways/a", {At(4), At(2)});
  EXPECT_EQ(told_, told) << "nothing is new";
  peers_.Set("gateways/a", {});
  peers_.Set("gateways/c", {});
  EXPECT_EQ(members_, std::set<wire::Gid>{At(3)});
}

// The new owner may be set before the old one gives the address up.
TEST_F(FleetPeersTest, AddressMoves_InWhicheverOrder) {
  peers_.Set("gateways/a", {At(1)});
  peers_.Set("gateways/b", {At(1)});
  EXPECT_EQ(peers_.LabelOf(At(1)), "a");
  peers_.Set("gateways/a", {At(2)});
  EXPECT_EQ(peers_.LabelOf(At(1)), "b");
  EXPECT_EQ(members_, (std::set<wire::Gid>{At(1), At(2)}));
  peers_.Set("gateways/b", {});
  EXPECT_EQ(members_, std::set<wire::Gid>{At(2)});
}

TEST_F(FleetPeersTest, Labels_AreAtMostSixtyFourAndStay) {
  for (uint32_t i = 0; i < 100; ++i) peers_.Set("gateways/h" + std::to_string(i), {At(i)});
  EXPECT_EQ(peers_.LabelOf(At(99)), "h99");
  std::set<std::string> labels;
  for (uint32_t i = 0; i < 100; ++i) labels.insert(peers_.LabelOf(At(i)));
  EXPECT_EQ(labels.size(), FleetPeers::kMostLabels + 1);
  EXPECT_EQ(peers_.LabelOf(At(62)), "h62");
  EXPECT_EQ(peers_.LabelOf(At(63)), FleetPeers::kOther);
  EXPECT_EQ(peers_.LabelOf(At(200)), FleetPeers::kOther) << "not of the fleet";
  // Counts under its name must not appear again under another one.
  peers_.Set("gateways/h62", {});
  EXPECT_EQ(peers_.LabelOf(At(62)), "h62");
}

}  // namespace
}  // namespace rocegw::session
