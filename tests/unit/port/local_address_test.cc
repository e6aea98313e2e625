// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/local_address.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cerrno>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "gateway/port/egress_offload.h"

namespace rocegw::port {
namespace {

const wire::Gid kLoopback = wire::Gid::FromV4(INADDR_LOOPBACK);

const InterfaceAddress kLinkLocal = {[] {
                                       wire::Gid gid;
                                       gid.bytes = {0xFE, 0x80, 0, 0, 0, 0, 0, 0,
                                                    0,    0,    0, 0, 0, 0, 0, 1};
                                       return gid;
                                     }(),
                                     64, true};

InterfaceAddress Address(uint8_t host) {
  return {wire::Gid::FromV4(0x0A000000U | host), 24, false};
}

TEST(LocalAddress_ReadInterface, Loopback) {
  auto info = ReadInterface("lo");
  ASSERT_TRUE(info.ok()) << info.status().text();
  EXPECT_EQ(info->index, if_nametoindex("lo"));
  EXPECT_TRUE(info->loopback);
  EXPECT_TRUE(info->up);
  EXPECT_TRUE(info->link);
  EXPECT_GE(info->mtu, 1500U);
  ASSERT_FALSE(info->addresses.empty());
  EXPECT_EQ(info->addresses[0].gid, kLoopback);
  EXPECT_EQ(info->addresses[0].prefix_length, 8);
}

TEST(LocalAddress_ReadInterface, UnknownOneListsThoseThatExist) {
  const auto info = ReadInterface("nosuch0");
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.status().error(), ENODEV);
  EXPECT_NE(info.status().text().find("there are: lo"), std::string::npos);
}

TEST(LocalAddress_SourceFor, LoopbackTalksFromItself) {
  auto source = SourceFor(kLoopback);
  ASSERT_TRUE(source.ok()) << source.status().text();
  EXPECT_EQ(*source, kLoopback);
}

TEST(LocalAddress_SourceFor, NoRouteIsAnError) {
  EXPECT_FALSE(SourceFor(wire::Gid::FromV4(INADDR_BROADCAST)).ok());
}

TEST(LocalAddress_Monitor, IsQuietWhileNothingChanges) {
  auto monitor = AddressMonitor::Create();
  ASSERT_TRUE(monitor.ok()) << monitor.status().text();
  EXPECT_GE(monitor->fd(), 0);
}

TEST(EgressOffload_Read, LoopbackCountsIdsUp) {
  auto offload = ReadEgressOffload("lo");
  ASSERT_TRUE(offload.ok()) << offload.status().text();
  EXPECT_TRUE(offload->software);
  EXPECT_TRUE(offload->counts_ip_id());
  const auto missing = ReadEgressOffload("nosuch0");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().error(), ENODEV);
}

TEST(EgressOffload_CountsIpId, HardwareOnlyWithTheFeatureOff) {
  EXPECT_FALSE((EgressOffload{.driver = "x", .udp_segmentation = true}.counts_ip_id()));
  EXPECT_TRUE((EgressOffload{.driver = "x", .udp_segmentation = false}.counts_ip_id()));
  EXPECT_TRUE((EgressOffload{.software = true, .udp_segmentation = true}.counts_ip_id()));
}

TEST(GidTable_Update, IndicesNeverMove) {
  GidTable table;
  EXPECT_TRUE(table.Update({Address(1), Address(2), Address(3)}));
  EXPECT_FALSE(table.Update({Address(3), Address(1), Address(2)})) << "order does not matter";
  EXPECT_EQ(table.IndexOf(Address(2).gid), 1);
  EXPECT_TRUE(table.Update({Address(1), Address(3)}));
  EXPECT_EQ(table.IndexOf(Address(2).gid), -1);
  EXPECT_EQ(table.IndexOf(Address(3).gid), 2);
  EXPECT_TRUE(table.gids()[1].IsZero());
  EXPECT_TRUE(table.Update({Address(9), Address(3), Address(1)}));
  EXPECT_EQ(table.IndexOf(Address(9).gid), 1) << "the hole is used again";
  EXPECT_EQ(table.IndexOf(Address(1).gid), 0);
}

// A gateway that takes over keeps the indices that programs know, whatever order the kernel has.
TEST(GidTable_HandOver, IndicesStay) {
  GidTable old;
  old.Update({Address(1)});
  old.Update({Address(1), Address(2), Address(3)});
  old.Update({Address(1), Address(3), kLinkLocal});
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  hand_over::StateStream out(bytes, TimePoint(), versions);
  old.HandOver(out);
  GidTable fresh;
  hand_over::StateStream in(bytes, TimePoint());
  fresh.HandOver(in);
  ASSERT_TRUE(in.ok()) << in.failure();
  EXPECT_FALSE(fresh.Update({kLinkLocal, Address(3), Address(1)})) << "order does not matter";
  EXPECT_EQ(fresh.gids(), old.gids());
  EXPECT_EQ(fresh.IndexOf(Address(1).gid), 0);
}

TEST(GidTable_Update, BeyondTheCapacityIsLeftOut) {
  std::vector<InterfaceAddress> many;
  for (uint32_t i = 0; i < GidTable::kCapacity + 10; ++i) {
    many.push_back({wire::Gid::FromV4(0x0A010000U + i), 16, false});
  }
  GidTable table;
  EXPECT_TRUE(table.Update(many));
  EXPECT_EQ(table.gids().size(), GidTable::kCapacity);
  EXPECT_EQ(table.left_out(), 10U);
  EXPECT_FALSE(table.Update(many));
  EXPECT_EQ(table.left_out(), 10U);
  EXPECT_FALSE(table.Update({many.begin(), many.end() - 10}));
  EXPECT_EQ(table.left_out(), 0U);
}

TEST(GidTable_Update, LinkLocalIsFirst) {
  GidTable table;
  EXPECT_TRUE(table.Update({kLinkLocal, Address(1)}));
  EXPECT_EQ(table.IndexOf(kLinkLocal.gid), 0);
  EXPECT_EQ(table.IndexOf(Address(1).gid), 1);
}

TEST(GidTable_Update, IndexZeroIsKeptForALinkLocalAddressThatIsTentative) {
  GidTable table;
  EXPECT_TRUE(table.Update({Address(1)}, /*awaits_link_local=*/true));
  EXPECT_TRUE(table.gids()[0].IsZero());
  EXPECT_EQ(table.IndexOf(Address(1).gid), 1);
  EXPECT_TRUE(table.Update({Address(1), Address(2)}, /*awaits_link_local=*/true));
  EXPECT_EQ(table.IndexOf(Address(2).gid), 2) << "the hole is not another address's";
  EXPECT_TRUE(table.Update({kLinkLocal, Address(1), Address(2)}));
  EXPECT_EQ(table.IndexOf(kLinkLocal.gid), 0);
}

TEST(GidTable_Update, WithoutLinkLocalAddressIndexZeroIsAnyAddress) {
  GidTable table;
  EXPECT_TRUE(table.Update({Address(1)}));
  EXPECT_EQ(table.IndexOf(Address(1).gid), 0);
  EXPECT_TRUE(table.Update({kLinkLocal, Address(1)}));
  EXPECT_EQ(table.IndexOf(kLinkLocal.gid), 1) << "indices never move";
}

}  // namespace
}  // namespace rocegw::port
