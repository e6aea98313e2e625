// SPDX-License-Identifier: Apache-2.0
// Properties of a device: path MTU and GUID, and the destinations that an address covers.
#include "gateway/datapath/ports.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace rocegw::datapath {
namespace {

TEST(PathMtu, LargestThatFits_AsLinuxComputesIt) {
  EXPECT_EQ(PathMtuFor(0), 0u);
  EXPECT_EQ(PathMtuFor(351), 0u);
  EXPECT_EQ(PathMtuFor(352), 256u);
  EXPECT_EQ(PathMtuFor(1500), 1024u);
  EXPECT_EQ(PathMtuFor(4191), 2048u);
  EXPECT_EQ(PathMtuFor(4192), 4096u);
  EXPECT_EQ(PathMtuFor(4200), 4096u);
  EXPECT_EQ(PathMtuFor(9000), 4096u);
  EXPECT_EQ(PathMtuFor(65536), 4096u);
}

TEST(Covers, Prefix_DecidesBitByBit) {
  const InterfaceAddress v4{*wire::ParseGid("192.0.2.129"), 25};
  EXPECT_TRUE(Covers(v4, *wire::ParseGid("192.0.2.200")));
  EXPECT_FALSE(Covers(v4, *wire::ParseGid("192.0.2.127")));
  EXPECT_FALSE(Covers(v4, *wire::ParseGid("::1")));
  EXPECT_TRUE(Covers({*wire::ParseGid("192.0.2.1"), 0}, *wire::ParseGid("203.0.113.9")));
  EXPECT_TRUE(Covers({*wire::ParseGid("192.0.2.1"), 32}, *wire::ParseGid("192.0.2.1")));
  EXPECT_FALSE(Covers({*wire::ParseGid("192.0.2.1"), 32}, *wire::ParseGid("192.0.2.0")));
  const InterfaceAddress v6{*wire::ParseGid("2001:db8::1"), 63};
  EXPECT_TRUE(Covers(v6, *wire::ParseGid("2001:db8:0:1::9")));
  EXPECT_FALSE(Covers(v6, *wire::ParseGid("2001:db8:0:2::9")));
}

TEST(NodeGuid, Mac_GivesEui64InNetworkOrder) {
  const uint64_t guid = NodeGuid({0x02, 0x11, 0x22, 0x33, 0x44, 0x55}, "");
  uint8_t bytes[8];
  std::memcpy(bytes, &guid, 8);
  const uint8_t expected[8] = {0x00, 0x11, 0x22, 0xFF, 0xFE, 0x33, 0x44, 0x55};
  EXPECT_EQ(std::memcmp(bytes, expected, 8), 0);
}

TEST(NodeGuid, NoMac_IsTheSameInEveryBuild) {
  const uint64_t guid = NodeGuid({}, "machine/host/rocegw0lo");
  uint8_t bytes[8];
  std::memcpy(bytes, &guid, 8);
  const uint8_t expected[8] = {0xD6, 0xA8, 0x79, 0x0C, 0xB6, 0xD6, 0xE2, 0x8F};
  EXPECT_EQ(std::memcmp(bytes, expected, 8), 0);
}

TEST(NodeGuid, NoMac_DiffersByHost) {
  EXPECT_NE(NodeGuid({}, "machine/one/rocegw0lo"), NodeGuid({}, "machine/two/rocegw0lo"));
}

TEST(HostIdentity, NamesTheHost) {
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  EXPECT_NE(HostIdentity().find(std::string("/") + name + "/"), std::string::npos);
}

TEST(NodeGuid, NoMac_IsLocalAndDiffersByDevice) {
  const uint64_t one = NodeGuid({}, "rocegw0lo");
  const uint64_t two = NodeGuid({}, "rocegw1lo");
  EXPECT_NE(one, two);
  uint8_t first = 0;
  std::memcpy(&first, &one, 1);
  EXPECT_EQ(first & 3, 2);
}

}  // namespace
}  // namespace rocegw::datapath
