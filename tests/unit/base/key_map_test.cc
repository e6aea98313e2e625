// SPDX-License-Identifier: Apache-2.0
// Map of random keys, compared with the standard library's, with keys that collide.
#include "gateway/base/containers/key_map.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/random.h"

namespace rocegw {
namespace {

TEST(KeyMap, Empty_FindsAndErasesNothing) {
  KeyMap<int> map;
  EXPECT_EQ(map.Find(5), nullptr);
  EXPECT_FALSE(map.Erase(5));
  EXPECT_EQ(map.size(), 0u);
}

TEST(KeyMap, KeyZero_IsNoKey) {
  KeyMap<int> map;
  EXPECT_FALSE(map.Insert(0, 1));
  ASSERT_TRUE(map.Insert(7, 1));
  EXPECT_EQ(map.Find(0), nullptr);
  EXPECT_FALSE(map.Erase(0));
  EXPECT_EQ(map.size(), 1u);
}

TEST(KeyMap, KnownKey_InsertChangesNothing) {
  KeyMap<int> map;
  ASSERT_TRUE(map.Insert(7, 1));
  EXPECT_FALSE(map.Insert(7, 2));
  EXPECT_EQ(*map.Find(7), 1);
}

// Keys with the last slot of the table as home: probing wraps around, and erasing closes gaps on
// both sides.
TEST(KeyMap, CrowdAcrossTheEnd_StaysReachable) {
  constexpr uint32_t kKeys[] = {15, 31, 47, 14, 30, 1, 17};
  for (const uint32_t first : kKeys) {
    KeyMap<uint32_t> map;
    for (const uint32_t key : kKeys) ASSERT_TRUE(map.Insert(key, key * 10));
    ASSERT_TRUE(map.Erase(first));
    for (const uint32_t key : kKeys) {
      const uint32_t* const value = map.Find(key);
      if (key == first) {
        EXPECT_EQ(value, nullptr);
      } else {
        ASSERT_NE(value, nullptr) << key << " after " << first;
        EXPECT_EQ(*value, key * 10);
      }
    }
  }
}

TEST(KeyMap, RandomSteps_EqualAMap) {
  testing::Random random(testing::TestSeed(20261121));
  for (const uint32_t spread : {1u, 16u, 64u, 4099u}) {
    KeyMap<uint64_t> map;
    std::map<uint32_t, uint64_t> model;
    for (uint64_t step = 0; step < 20000; ++step) {
      const auto key = static_cast<uint32_t>(random.Below(300)) * spread;
      if (random.Below(2) == 0) {
        const bool fresh = key != 0 && model.emplace(key, step).second;
        ASSERT_EQ(map.Insert(key, step), fresh);
      } else {
        ASSERT_EQ(map.Erase(key), model.erase(key) != 0);
      }
      ASSERT_EQ(map.size(), model.size());
      if (step % 500 != 0) continue;
      for (uint32_t k = 0; k < 300; ++k) {
        const uint64_t* const value = map.Find(k * spread);
        const auto it = model.find(k * spread);
        ASSERT_EQ(value != nullptr, it != model.end()) << k;
        if (value != nullptr) {
          ASSERT_EQ(*value, it->second);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rocegw
