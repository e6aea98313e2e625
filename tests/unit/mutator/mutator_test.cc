// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutator.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace rocegw::testing {
namespace {

const std::vector<std::vector<uint8_t>> kCorpus = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                                                   std::vector<uint8_t>(2000, 0x55)};

TEST(Mutator, EqualSeeds_GiveEqualInputs) {
  Mutator one(kCorpus);
  Mutator other(kCorpus);
  (void)other.Input(99);
  for (uint64_t seed = 0; seed < 1000; ++seed)
    EXPECT_EQ(one.Input(seed), std::vector<uint8_t>(other.Input(seed)));
}

TEST(Mutator, InputsDiffer_AndStayBounded) {
  Mutator mutator(kCorpus);
  std::set<std::vector<uint8_t>> seen;
  size_t longest = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    seen.insert(mutator.Input(seed));
    longest = std::max(longest, mutator.Input(seed).size());
  }
  EXPECT_GT(seen.size(), 17000u);
  EXPECT_GT(longest, 2000u);
  EXPECT_LE(longest, 2000u + 4096);
}

TEST(Mutator, EmptyEntries_AreChanged) {
  Mutator mutator(std::vector<std::vector<uint8_t>>(1));
  std::set<std::vector<uint8_t>> seen;
  for (uint64_t seed = 0; seed < 1000; ++seed) seen.insert(mutator.Input(seed));
  EXPECT_GT(seen.size(), 100u);
}

}  // namespace
}  // namespace rocegw::testing
