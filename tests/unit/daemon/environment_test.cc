// SPDX-License-Identifier: Apache-2.0
// What the daemon finds out about its machine at start.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "gateway/daemon/interface_choice.h"
#include "gateway/daemon/runtime_dir.h"

namespace rocegw::daemon {
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

class RuntimeDirTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/rocegw-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    base_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(base_); }
  std::string base_;
};

TEST_F(RuntimeDirTest, Claim_MakesItAndKeepsOthersOut) {
  const std::string path = base_ + "/a/b";
  RuntimeDir first;
  ASSERT_TRUE(first.Claim(path).ok());
  RuntimeDir second;
  const Status refused = second.Claim(path);
  EXPECT_EQ(refused.error(), EADDRINUSE);
  EXPECT_EQ(refused.text(), "runtime_dir " + path + " belongs to process " +
                                std::to_string(getpid()) +
                                "; stop that rocegwd, or set runtime_dir");
  first.Release();
  EXPECT_TRUE(second.Claim(path).ok());
}

TEST_F(RuntimeDirTest, Claim_NotADirectory_SaysWhy) {
  RuntimeDir dir;
  EXPECT_EQ(dir.Claim("/dev/null/x").text(),
            "runtime_dir /dev/null/x: cannot be made: Not a directory");
}

TEST(Owner, NamesAndNumbers_AreFound) {
  const auto root = FindOwner("root:root");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root.value().uid, 0u);
  EXPECT_EQ(root.value().gid, 0u);
  EXPECT_EQ(FindOwner(":12").value().gid, 12u);
  EXPECT_EQ(FindOwner(":12").value().uid, static_cast<uid_t>(-1));
  EXPECT_EQ(FindOwner("1234").value().uid, 1234u);
  EXPECT_EQ(FindOwner("").value().gid, static_cast<gid_t>(-1));
  EXPECT_EQ(FindOwner("no-such-user").status().text(), "owner: there is no user 'no-such-user'");
  EXPECT_EQ(FindOwner("root:no-such-group").status().text(),
            "owner: there is no group 'no-such-group'");
}

}  // namespace
}  // namespace rocegw::daemon
