// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_program/pattern.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace rocegw::probe {
namespace {

TEST(Pattern, MessagesNearEachOther_DifferAlsoWhenTheyAreShort) {
  std::vector<uint8_t> table(kPatternBytes);
  FillPattern(table.data());
  constexpr uint32_t kShort = 16;
  std::set<std::string> seen;
  for (uint64_t number = 0; number < 1000; ++number) {
    for (const Direction direction : {Direction::kThere, Direction::kBack}) {
      const uint32_t offset = PatternOffset(direction, number);
      ASSERT_LE(offset + size_t{kLongestMessage}, kPatternBytes);
      EXPECT_TRUE(
          seen.insert(std::string(reinterpret_cast<const char*>(table.data()) + offset, kShort))
              .second)
          << number;
    }
  }
}

TEST(Pattern, OffsetsRepeatOnlyAfterAll) {
  std::set<uint32_t> offsets;
  for (uint64_t number = 0; number < kLongestMessage; ++number)
    offsets.insert(PatternOffset(Direction::kThere, number));
  EXPECT_EQ(offsets.size(), kLongestMessage);
  EXPECT_EQ(PatternOffset(Direction::kThere, UINT32_MAX * uint64_t{16}),
            PatternOffset(Direction::kThere, UINT32_MAX * uint64_t{16} + kLongestMessage));
}

}  // namespace
}  // namespace rocegw::probe
