// SPDX-License-Identifier: Apache-2.0
// Properties of the machine that a gateway detects at start-up.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "gateway/datapath/interface_choice.h"

namespace rocegw::datapath {
namespace {

port::InterfaceInfo Interface(std::string name, uint32_t address) {
  port::InterfaceInfo info;
  info.name = std::move(name);
  info.up = info.link = true;
  if (address != 0) info.addresses.push_back({wire::Gid::FromV4(address), 24, false});
  return info;
}

TEST(InterfaceChoice, DefaultRoute_Decides) {
  const auto chosen =
      ChooseInterface({Interface("eth0", 1), Interface("eth1", 2)}, wire::Gid::FromV4(2));
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value(), "eth1");
}

TEST(InterfaceChoice, NoDefaultRoute_OnlyUsableOneIsTaken) {
  port::InterfaceInfo loopback = Interface("lo", 0x7F000001);
  loopback.loopback = true;
  port::InterfaceInfo unplugged = Interface("eth1", 3);
  unplugged.link = false;
  const auto chosen = ChooseInterface(
      {loopback, Interface("eth0", 2), unplugged, Interface("eth2", 0)}, std::nullopt);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value(), "eth0");
}

TEST(InterfaceChoice, NoDecision_TellsCandidatesAndRemedy) {
  EXPECT_EQ(
      ChooseInterface({Interface("eth0", 1), Interface("eth1", 2)}, std::nullopt).status().text(),
      "there is no default route to choose the network interface by; name one with ports: "
      "[{interface: NAME}] (candidates: eth0, eth1)");
  EXPECT_EQ(ChooseInterface({Interface("eth0", 0)}, std::nullopt).status().text(),
            "no network interface is up with an address; bring one up, or name one with ports: "
            "[{interface: NAME}] (there are: eth0)");
}

TEST(InterfaceOf, Address_NamesItsInterface) {
  const std::vector<port::InterfaceInfo> all{Interface("eth0", 1), Interface("eth1", 2)};
  EXPECT_EQ(InterfaceOf(all, wire::Gid::FromV4(2)).value(), "eth1");
  const auto none = InterfaceOf(all, wire::Gid::FromV4(0xC0000203));
  EXPECT_EQ(none.status().error(), EADDRNOTAVAIL);
  EXPECT_NE(none.status().text().find("192.0.2.3"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::datapath
