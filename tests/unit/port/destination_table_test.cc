// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/destination_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rocegw::port {
namespace {

constexpr size_t kMost = 8;
constexpr MacAddress kMac{0x02, 0, 0, 0, 0, 0x02};
const DestinationTable::Answer kFound{Reach::kNeighbour, kMac};
const DestinationTable::Answer kNone{Reach::kUnreachable, {}};

wire::Gid Host(uint32_t number) { return wire::Gid::FromV4(0x0A000000u + number); }

class DestinationTableTest : public ::testing::Test {
 protected:
  Reach LookUp(uint32_t number) {
    bool added = false;
    return table.LookUp(Host(number), &added).reach;
  }
  bool Knows(uint32_t number) {
    const std::vector<wire::Gid> all = table.List(true);
    return std::ranges::find(all, Host(number)) != all.end();
  }

  DestinationTable table{kMost};
};

TEST_F(DestinationTableTest, NewDestination_IsUnknownUntilItsAnswer) {
  bool added = false;
  EXPECT_EQ(table.LookUp(Host(1), &added).reach, Reach::kUnknown);
  EXPECT_TRUE(added);
  EXPECT_TRUE(table.Set(Host(1), kFound));
  EXPECT_FALSE(table.Set(Host(1), kFound)) << "nothing new";
  EXPECT_EQ(table.LookUp(Host(1), &added), kFound);
  EXPECT_FALSE(added);
  EXPECT_FALSE(table.Set(Host(2), kFound)) << "not in the table";
}

TEST_F(DestinationTableTest, ScanOfAddresses_LeavesNeighboursAlone) {
  for (uint32_t i = 1; i < kMost; ++i) {
    LookUp(i);
    table.Set(Host(i), kFound);
  }
  for (uint32_t i = 100; i < 10000; ++i) {
    LookUp(i);
    if (i % 2 == 0) table.Set(Host(i), kNone);
    ASSERT_EQ(table.size(), kMost);
  }
  for (uint32_t i = 1; i < kMost; ++i) EXPECT_EQ(LookUp(i), Reach::kNeighbour) << i;
}

TEST_F(DestinationTableTest, ScanThroughARouter_LeavesDestinationsInUseAlone) {
  LookUp(1);
  table.Set(Host(1), kFound);
  for (uint32_t i = 100; i < 10000; ++i) {
    LookUp(i);
    table.Set(Host(i), kFound);
    ASSERT_EQ(LookUp(1), Reach::kNeighbour);
  }
  EXPECT_TRUE(Knows(9999));
  EXPECT_FALSE(Knows(100));
}

TEST_F(DestinationTableTest, NewDestinations_AreAskedAboutOnceInTheirOrder) {
  for (uint32_t i = 1; i <= 3; ++i) LookUp(i);
  LookUp(1);
  EXPECT_EQ(table.TakeFresh(2), (std::vector<wire::Gid>{Host(1), Host(2)}));
  EXPECT_EQ(table.TakeFresh(9), (std::vector<wire::Gid>{Host(3)}));
  EXPECT_TRUE(table.TakeFresh(9).empty());
  // Destinations that made room meanwhile are left out.
  for (uint32_t i = 100; i < 200; ++i) LookUp(i);
  EXPECT_LE(table.TakeFresh(1000).size(), kMost);
}

TEST_F(DestinationTableTest, List_HasAllOrThoseWithoutANeighbour) {
  LookUp(1);
  LookUp(2);
  table.Set(Host(1), kFound);
  EXPECT_EQ(table.List(false), (std::vector<wire::Gid>{Host(2)}));
  EXPECT_EQ(table.List(true).size(), 2u);
}

}  // namespace
}  // namespace rocegw::port
