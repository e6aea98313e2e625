// SPDX-License-Identifier: Apache-2.0
// Blocks of an arena against a model: a map of units to their block.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "gateway/far/request/arena.h"
#include "tests/support/random.h"

namespace rocegw::far {
namespace {

TEST(ArenaProperty, BlocksAreDisjointAndFreeSpaceIsFound) {
  testing::Random random(testing::TestSeed(33));
  constexpr size_t kUnits = 64;
  Arena arena(kUnits * Arena::kUnit + 100);
  std::vector<bool> used(kUnits, false);
  std::vector<std::pair<uint64_t, size_t>> blocks;  // offset, units
  for (int step = 0; step < 20000; step++) {
    if (random.Coin()) {
      const uint64_t bytes = random.Between(1, 12 * Arena::kUnit);
      const size_t units = (bytes + Arena::kUnit - 1) / Arena::kUnit;
      size_t longest = 0, run = 0;
      for (const bool taken : used) longest = std::max(longest, run = taken ? 0 : run + 1);
      const auto offset = arena.Allocate(bytes);
      ASSERT_EQ(offset.has_value(), longest >= units);
      if (!offset) continue;
      ASSERT_EQ(*offset % Arena::kUnit, 0u);
      for (size_t unit = *offset / Arena::kUnit; unit < *offset / Arena::kUnit + units; unit++) {
        ASSERT_LT(unit, kUnits);
        ASSERT_FALSE(used[unit]);
        used[unit] = true;
      }
      blocks.emplace_back(*offset, units);
    } else if (!blocks.empty()) {
      const size_t chosen = random.Below(blocks.size());
      const auto [offset, units] = blocks[chosen];
      blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(chosen));
      ASSERT_TRUE(arena.Free(offset));
      ASSERT_FALSE(arena.Free(offset));
      for (size_t unit = 0; unit < units; unit++) used[offset / Arena::kUnit + unit] = false;
    }
    const auto free = static_cast<uint64_t>(std::count(used.begin(), used.end(), false));
    ASSERT_EQ(arena.free_bytes(), free * Arena::kUnit);
  }
}

}  // namespace
}  // namespace rocegw::far
