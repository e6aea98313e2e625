// SPDX-License-Identifier: Apache-2.0
// Access to bytes by key: which sessions and protection domains have it.
#include "gateway/verbs/mr_table.h"

#include <gtest/gtest.h>

namespace rocegw::verbs {
namespace {

constexpr uint64_t kIova = 0x10000;
constexpr uint64_t kLength = 0x2000;

RegionConfig Region(uint32_t key = 0xABCD1234) {
  RegionConfig region;
  region.key = MemoryKey{key};
  region.session = SessionId{3};
  region.pd = 5;
  region.access = kAccessLocalWrite | kAccessRemoteRead;
  region.iova = kIova;
  region.length = kLength;
  return region;
}

class MrTableTest : public ::testing::Test {
 protected:
  MrTableTest() { EXPECT_TRUE(table.Link(Region())); }
  bool Reaches(uint64_t va, uint64_t length, uint32_t access = 0) const {
    return table.Find(Region().key, SessionId{3}, 5, access, va, length) != nullptr;
  }
  MrTable table;
};

TEST_F(MrTableTest, Bounds_ToTheByte) {
  EXPECT_TRUE(Reaches(kIova, kLength));
  EXPECT_TRUE(Reaches(kIova + kLength - 1, 1));
  EXPECT_FALSE(Reaches(kIova - 1, 1));
  EXPECT_FALSE(Reaches(kIova - 1, kLength));
  EXPECT_FALSE(Reaches(kIova, kLength + 1));
  EXPECT_FALSE(Reaches(kIova + kLength, 1));
  EXPECT_FALSE(Reaches(kIova + 1, kLength));
}

TEST_F(MrTableTest, NoBytes_AnywhereInsideOrAtTheEnd) {
  EXPECT_TRUE(Reaches(kIova, 0));
  EXPECT_TRUE(Reaches(kIova + kLength, 0));
  EXPECT_FALSE(Reaches(kIova + kLength + 1, 0));
  EXPECT_FALSE(Reaches(kIova - 1, 0));
}

TEST_F(MrTableTest, LengthThatWrapsTheAddressSpace_Refused) {
  EXPECT_FALSE(Reaches(kIova, UINT64_MAX));
  EXPECT_FALSE(Reaches(kIova + 1, UINT64_MAX));
  EXPECT_FALSE(Reaches(kIova + kLength, UINT64_MAX - kLength));
  EXPECT_FALSE(Reaches(UINT64_MAX, 1));
  EXPECT_FALSE(Reaches(UINT64_MAX, 2));
  EXPECT_FALSE(Reaches(0, kIova + 1));
}

TEST(MrTable, RegionAtTheEndOfTheAddressSpace) {
  RegionConfig region = Region();
  region.iova = UINT64_MAX - 0xFFF;
  region.length = 0x1000;
  MrTable table;
  ASSERT_TRUE(table.Link(region));
  const auto reaches = [&](uint64_t va, uint64_t length) {
    return table.Find(region.key, SessionId{3}, 5, 0, va, length) != nullptr;
  };
  EXPECT_TRUE(reaches(UINT64_MAX, 1));
  EXPECT_TRUE(reaches(region.iova, 0x1000));
  EXPECT_FALSE(reaches(UINT64_MAX, 2));
  EXPECT_FALSE(reaches(0, 1));
}

TEST_F(MrTableTest, Access_AllThatIsAskedFor) {
  EXPECT_TRUE(Reaches(kIova, 1, kAccessLocalWrite));
  EXPECT_TRUE(Reaches(kIova, 1, kAccessLocalWrite | kAccessRemoteRead));
  EXPECT_FALSE(Reaches(kIova, 1, kAccessRemoteWrite));
  EXPECT_FALSE(Reaches(kIova, 1, kAccessRemoteRead | kAccessRemoteAtomic));
}

TEST_F(MrTableTest, AnotherSessionOrDomain_Refused) {
  EXPECT_EQ(table.Find(Region().key, SessionId{4}, 5, 0, kIova, 1), nullptr);
  EXPECT_EQ(table.Find(Region().key, SessionId{3}, 6, 0, kIova, 1), nullptr);
  EXPECT_EQ(table.Find(MemoryKey{Region().key.value + 1}, SessionId{3}, 5, 0, kIova, 1), nullptr);
}

TEST_F(MrTableTest, Replaced_IsWhatItWasReplacedBy) {
  RegionConfig other = Region();
  other.iova += 100;
  other.pd = 6;
  other.access = kAccessRemoteRead;
  ASSERT_TRUE(table.Replace(other));
  EXPECT_EQ(table.size(), 1u);
  EXPECT_FALSE(Reaches(kIova + 100, 1)) << "its domain was another one";
  const auto reaches = [this, &other](uint64_t va, uint32_t access) {
    return table.Find(other.key, other.session, other.pd, access, va, 1) != nullptr;
  };
  EXPECT_TRUE(reaches(kIova + 100, kAccessRemoteRead));
  EXPECT_FALSE(reaches(kIova + 99, 0));
  EXPECT_FALSE(reaches(kIova + 100, kAccessLocalWrite));
  EXPECT_FALSE(table.Replace(Region(0xABCD1235))) << "nobody has that key";
}

TEST_F(MrTableTest, Unlinked_IsGone) {
  EXPECT_FALSE(table.Link(Region())) << "the key is taken";
  EXPECT_FALSE(table.Unlink(MemoryKey{1}));
  EXPECT_TRUE(table.Unlink(Region().key));
  EXPECT_FALSE(Reaches(kIova, 1));
  EXPECT_EQ(table.size(), 0u);
  EXPECT_FALSE(table.Unlink(Region().key));
}

}  // namespace
}  // namespace rocegw::verbs
