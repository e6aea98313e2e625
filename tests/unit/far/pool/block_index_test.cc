// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/pool/block_index.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/support/random.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kBlockBytes = 4096;

void Put(BlockIndex& index, const std::string& key) {
  const auto block = index.Take();
  ASSERT_TRUE(block.has_value());
  index.Publish(key, *block, 10);
}

std::optional<uint32_t> Use(BlockIndex& index, const std::string& key) {
  uint64_t bytes = 0;
  const auto found = index.Hold(key, kBlockBytes, &bytes);
  if (!found) return std::nullopt;
  index.Release(found->block);
  return found->block;
}

TEST(BlockIndex, EvictsTheValueThatWasNotUsedForLongest) {
  BlockIndex index(3);
  for (const char* key : {"a", "b", "c"}) Put(index, key);
  ASSERT_TRUE(Use(index, "a"));
  Put(index, "d");
  EXPECT_TRUE(index.Has("a") && index.Has("c") && index.Has("d"));
  EXPECT_FALSE(index.Has("b"));
  EXPECT_EQ(index.evictions(), 1u);
}

TEST(BlockIndex, ABlockThatIsReadIsNotEvicted) {
  BlockIndex index(1);
  Put(index, "a");
  uint64_t bytes = 0;
  const auto held = index.Hold("a", kBlockBytes, &bytes);
  ASSERT_TRUE(held.has_value());
  EXPECT_FALSE(index.Take().has_value());
  // A removed value's block waits for its readers as well.
  EXPECT_TRUE(index.Remove("a"));
  EXPECT_FALSE(index.Take().has_value());
  index.Release(held->block);
  EXPECT_TRUE(index.Take().has_value());
}

TEST(BlockIndex, APutReplacesTheOlderValueAndFreesItsBlock) {
  BlockIndex index(2);
  Put(index, "a");
  const auto first = Use(index, "a");
  Put(index, "a");
  EXPECT_NE(Use(index, "a"), first);
  EXPECT_EQ(index.values(), 1u);
  Put(index, "b");
  EXPECT_EQ(index.evictions(), 0u);
}

TEST(BlockIndex, SaysHowLargeAValueIsThatDoesNotFit) {
  BlockIndex index(1);
  Put(index, "a");
  uint64_t bytes = 0;
  EXPECT_FALSE(index.Hold("a", 9, &bytes).has_value());
  EXPECT_EQ(bytes, 10u);
  EXPECT_FALSE(index.Hold("b", 9, &bytes).has_value());
  EXPECT_EQ(bytes, 0u);
}

TEST(BlockIndex, ALostValueIsForgottenOnce) {
  BlockIndex index(1);
  Put(index, "a");
  uint64_t bytes = 0;
  const auto held = index.Hold("a", kBlockBytes, &bytes);
  EXPECT_TRUE(index.Lose(held->block));
  EXPECT_FALSE(index.Lose(held->block));
  EXPECT_FALSE(index.Has("a"));
  index.Release(held->block);
  EXPECT_TRUE(index.Take().has_value());
}

// Every block is at one place: free, taken by a put, or with one value; a block that is held keeps
// what it had.
TEST(BlockIndex, RandomCallsNeverGiveABlockAway) {
  testing::Random random(testing::TestSeed(37));
  BlockIndex index(8);
  std::map<uint32_t, std::string> puts;  // taken blocks
  std::multiset<uint32_t> held;
  for (int step = 0; step < 20000; step++) {
    const std::string key = std::to_string(random.Below(20));
    switch (random.Below(6)) {
      case 0:
      case 1:
        if (const auto block = index.Take()) {
          ASSERT_FALSE(puts.contains(*block));
          ASSERT_FALSE(held.contains(*block));
          puts[*block] = key;
        }
        break;
      case 2:
        if (!puts.empty()) {
          const auto put = puts.begin();
          if (random.Below(4) == 0) {
            index.Discard(put->first);
          } else {
            index.Publish(put->second, put->first, 10);
            ASSERT_EQ(Use(index, put->second), put->first);
          }
          puts.erase(put);
        }
        break;
      case 3: {
        uint64_t bytes = 0;
        if (const auto found = index.Hold(key, kBlockBytes, &bytes)) {
          ASSERT_FALSE(puts.contains(found->block));
          held.insert(found->block);
        }
        break;
      }
      case 4:
        if (!held.empty()) {
          index.Release(*held.begin());
          held.erase(held.begin());
        }
        break;
      default:
        if (random.Below(8) == 0) index.Remove(key);
    }
    ASSERT_LE(index.values() + puts.size(), 8u);
  }
}

}  // namespace
}  // namespace rocegw::far
